"""Completeness in short: what is to be said of numbers, and a line of them with a link to their page."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from flask import url_for

from app.console.ui.filters import comma_list, number
from app.console.web.language import _, ngettext
from app.domain.completeness.equation import Tally


@dataclass(frozen=True, slots=True)
class Line:
    """Sentence on the numbers of some days, and the page that has them."""

    text: str
    href: str
    #: ``danger`` if something is unexplained or unexpected, else empty
    tone: str


def flaws_of(tally: Tally) -> Sequence[str]:
    """Return what is to be said of numbers: ``2 unexplained``, ``12 skipped``; nothing if all ran."""
    parts = (
        (tally.unexplained, _("%(n)s unexplained", n=number(tally.unexplained))),
        (tally.unexpected, _("%(n)s unexpected", n=number(tally.unexpected))),
        (tally.not_started.total(), _("%(n)s not started", n=number(tally.not_started.total()))),
        (tally.skipped.total(), _("%(n)s skipped", n=number(tally.skipped.total()))),
        (tally.late, _("%(n)s late", n=number(tally.late))),
        (tally.waiting, _("%(n)s waiting", n=number(tally.waiting))),
    )
    return [text for count, text in parts if count]


def job_line(job_id: int, first: date, last: date, tally: Tally) -> Line | None:
    """Return the line of a job's last days; None if nothing was due."""
    if not tally.expected and tally.is_complete:
        return None
    on_time = _(
        "%(days)s days: %(n)s of %(all)s on time",
        days=(last - first).days + 1,
        n=number(tally.on_time),
        all=number(tally.expected),
    )
    text = comma_list([on_time, *flaws_of(tally)])
    return Line(text, _address(first, last, job_id=job_id), _tone(tally))


def yesterday_line(yesterday: date, tally: Tally) -> Line | None:
    """Return the line of yesterday; None if nothing was due."""
    if not tally.expected and tally.is_complete:
        return None
    flaws = list(flaws_of(tally))
    if tally.is_complete:
        complete = ngettext(
            "the only instant accounted for",
            "all %(n)s instants accounted for",
            tally.expected,
            n=number(tally.expected),
        )
        flaws.insert(0, complete)
    text = _("Yesterday: %(what)s", what=comma_list(flaws))
    return Line(text, _address(yesterday, yesterday), _tone(tally))


def _address(first: date, last: date, **filters: Any) -> str:
    days: dict[str, Any] = {"from": first.isoformat(), "to": last.isoformat()}
    return url_for("completeness.index", **filters, **days)


def _tone(tally: Tally) -> str:
    return "" if tally.is_complete else "danger"
