"""Search field of the run list: filters that can be typed, a job by its name, a run by its number."""

import re
from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.console.ui.labels import LOG_STATUSES
from app.console.ui.lists.job_search import job_field, with_job
from app.console.ui.lists.search import Hint, Search, SearchField, choice_field, executor_field, read_terms
from app.console.ui.lists.time_search import range_fields, time_field
from app.console.web.language import _
from app.domain.access.permissions import Actor
from app.models.group import Group
from app.store.runs.listing import LogStatus

_RUN_NUMBER = re.compile(r"#?([0-9]{1,18})")
#: what may be typed for a status beside its title
_STATUS_WORDS: dict[str, tuple[str, ...]] = {
    str(int(status)): words
    for status, words in {
        LogStatus.SUCCESS: ("succeeded", "success", "ok"),
        LogStatus.RUNNING: ("running",),
        LogStatus.FAILED: ("failed", "failing"),
        LogStatus.ONLY_FAILED: ("failed in the handler", "handler"),
        LogStatus.TIMED_OUT: ("timed out", "timeout"),
        LogStatus.KILLED: ("killed",),
        LogStatus.NOT_STARTED: ("not started", "refused"),
        LogStatus.UNRESOLVED: ("unresolved",),
        LogStatus.WAITING: ("waiting",),
    }.items()
}


def run_number(text: str) -> int:
    """Return the number of the run that a text is, as ``#6379`` or ``6379``; 0 if it is anything else."""
    match = _RUN_NUMBER.fullmatch(text.strip())
    return int(match[1]) if match else 0


def read_run_search(session: Session, text: str, groups: Sequence[Group], *, actor: Actor) -> Search:
    """Return what a text means to a reader who sees these groups; a job is looked up by its name."""
    if number := run_number(text):
        hint = _("There is no run %(id)s. To list the runs of a job, type job:%(id)s.", id=number)
        return Search({}, "", [Hint(hint)])
    return with_job(session, read_terms(text, _fields(groups)), actor=actor)


def _fields(groups: Sequence[Group]) -> tuple[SearchField, ...]:
    statuses = {str(value): title for value, title in LOG_STATUSES.items()}
    return (
        executor_field(groups),
        job_field(),
        choice_field("logStatus", ("status", "state", _("Status")), statuses, aliases=_STATUS_WORDS),
        *range_fields(),
        time_field("logical_from", "logical_from"),
        time_field("logical_to", "logical_to", is_end=True),
    )
