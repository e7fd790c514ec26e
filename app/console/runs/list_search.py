"""Search field of the run list: filters that can be typed, a job by its name, a run by its number."""

import re
from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.console.ui.labels import LOG_STATUSES, RANGES
from app.console.ui.lists.job_search import find_job
from app.console.ui.lists.ranges import field_text
from app.console.ui.lists.search import (
    Changes,
    Hint,
    Search,
    SearchField,
    choice_field,
    executor_field,
    read_terms,
    text_field,
)
from app.console.web.language import _, lazy_pgettext
from app.domain.access.permissions import Actor
from app.domain.lists.search_text import Term, searched_words
from app.models.group import Group
from app.store.runs.listing import LogStatus

#: what a job is called, until it has been looked up
JOB_NAME = "job"
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
    search = read_terms(text, _fields(groups))
    parameters, hints = dict(search.parameters), list(search.hints)
    if name := " ".join([parameters.pop(JOB_NAME, None) or "", *searched_words(text)]).strip():
        result = find_job(session, name, parameters.get("jobGroup") or "", actor=actor)
        if isinstance(result, Hint):
            hints.append(result)
        else:
            parameters.update(result)
    return Search(parameters, "", hints)


def _fields(groups: Sequence[Group]) -> tuple[SearchField, ...]:
    statuses = {str(value): title for value, title in LOG_STATUSES.items()}
    periods = {name: title for name, title in RANGES.items() if name != "custom"}
    time = str(lazy_pgettext("run", "Time"))
    return (
        executor_field(groups),
        text_field(JOB_NAME, "job", _("Job")),
        choice_field("logStatus", ("status", "state", _("Status")), statuses, aliases=_STATUS_WORDS),
        choice_field("range", ("period", "range", "time", time), periods, removes=("from", "to")),
        _time_field("from", "from", _("From")),
        _time_field("to", "to", _("To"), is_end=True),
        _time_field("logical_from", "logical_from"),
        _time_field("logical_to", "logical_to", is_end=True),
    )


def _time_field(parameter: str, *words: str, is_end: bool = False) -> SearchField:
    def read(term: Term) -> Changes | Hint:
        text = field_text(term.value, is_end=is_end)
        if not text:
            example = '2024-05-01, "2024-05-01 10:00"'
            return Hint(_("“%(word)s:” is a time, as %(example)s.", word=term.word, example=example))
        return {parameter: text} | ({"range": "custom"} if parameter in ("from", "to") else {})

    return SearchField(words, read)
