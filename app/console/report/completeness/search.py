"""Search field of the completeness page: executor, job and days that can be typed."""

from collections.abc import Mapping, Sequence

from flask import request
from sqlalchemy.orm import Session

from app.console.ui.lists.job_search import job_field, with_job
from app.console.ui.lists.ranges import read_day
from app.console.ui.lists.search import Changes, Hint, Search, SearchField, executor_field, read_terms
from app.console.web.language import _
from app.domain.access.permissions import Actor
from app.domain.lists.search_text import Term
from app.models.group import Group

#: parameters of the lists, as this page names them
_NAMES = {"jobGroup": "group_id", "jobId": "job_id"}


def read_search(session: Session, groups: Sequence[Group], *, actor: Actor) -> Search:
    """Return what the text of the search field means to a reader who sees these groups."""
    fields = (
        executor_field(groups),
        job_field(),
        _day_field(("from", "to"), "day", "days", _("Days")),
        _day_field(("from",), "from", _("From")),
        _day_field(("to",), "to", _("To")),
    )
    return with_job(session, read_terms(request.args.get("q", ""), fields), actor=actor)


def page_parameters(changes: Changes) -> Mapping[str, str | None]:
    """Return parameters of a search under the names that this page has for them."""
    return {_NAMES.get(name, name): value for name, value in changes.items()}


def _day_field(parameters: Sequence[str], *words: str) -> SearchField:
    """Return the filter that sets these parameters to a day."""

    def read(term: Term) -> Changes | Hint:
        day = read_day(term.value)
        if day is None:
            return Hint(_("“%(word)s:” is a time, as %(example)s.", word=term.word, example="2024-05-01"))
        return dict.fromkeys(parameters, day.isoformat()) | {"month": None}

    return SearchField(words, read)
