"""Equation of a period and the table of jobs: numbers with their names, reasons and links."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from app.clock import HOUR_MS, SECOND_MS
from app.console.report.completeness.period import Query
from app.console.report.completeness.terms import (
    MEANINGS,
    OUTCOMES,
    TERMS,
    Place,
    number_of,
    reasons_of,
)
from app.console.ui.completeness import flaws_of
from app.console.ui.filters import comma_list, number
from app.console.web.language import _, ngettext
from app.domain.completeness.equation import Tally, Term
from app.domain.completeness.expected_instants import Interval
from app.services.completeness.job_day import JobDay
from app.store.completeness.totals import JobSum

#: id of the table of jobs
JOBS = "#jobs"
#: reasons of a job that are shown
REASONS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Line:
    """Term of the equation, or a number beside it."""

    name: str
    tone: str
    icon: str
    meaning: str
    count: int
    share: str
    #: empty: there is nothing to list
    href: str
    reasons: Sequence[tuple[str, int]] = ()


@dataclass(frozen=True, slots=True)
class Equation:
    """Numbers of a period, and their verdict in words."""

    expected_count: int
    tone: str
    verdict: str
    terms: list[Line]
    outcomes: list[Line]
    others: list[Line]


@dataclass(frozen=True, slots=True)
class Cell:
    """Number of a job; 0 has no link."""

    title: str
    count: int
    href: str
    tone: str


@dataclass(frozen=True, slots=True)
class JobRow:
    """Row of the table."""

    name: str
    #: narrows the page to the job
    href: str
    group: str
    expected_count: int
    cells: list[Cell]
    reasons: str
    is_wrong: bool


def equation_of(tally: Tally, place: Place, elsewhere: str = JOBS) -> Equation:
    """Return the equation; numbers without a list of their own lead ``elsewhere``."""
    terms = []
    for term, (name, tone, icon) in TERMS.items():
        count = number_of(tally, term)
        href = place.term(term, elsewhere) if count else ""
        reasons = reasons_of(tally, term)
        share = _share(count, tally.expected)
        terms.append(Line(str(name), tone, icon, str(MEANINGS[term]), count, share, href, reasons))
    outcomes = [
        Line(str(name), outcome.value, "", "", count, "", place.runs(status) if count else "")
        for outcome, (name, status) in OUTCOMES.items()
        if (count := getattr(tally, outcome.value)) or outcome.value in ("finished", "failed")
    ]
    return Equation(tally.expected, _tone(tally), verdict_of(tally), terms, outcomes, _others(tally, place))


def _others(tally: Tally, place: Place) -> list[Line]:
    """Return what stands beside the equation."""
    unexpected_text = _("runs of instants that were not due, or the second one; must be 0")
    unknown_text = _("runs from before the history of their job")
    java = _("started by a Java admin on the same database; on time or late as well")
    href = place.runs() if place.job_id else JOBS
    lines = (
        (_("Unexpected"), "danger", unexpected_text, tally.unexpected),
        (_("Unknown"), "", unknown_text, tally.unknown),
        (_("By a Java admin"), "", java, tally.java),
    )
    return [
        Line(name, tone, "", meaning, count, "", href if count else "")
        for name, tone, meaning, count in lines
        if count or tone
    ]


def _tone(tally: Tally) -> str:
    if not tally.is_complete:
        return "danger"
    return "success" if tally.expected else "none"


def verdict_of(tally: Tally) -> str:
    """Return whether numbers are complete, in a sentence."""
    wrong = []
    if tally.unexplained:
        wrong.append(
            ngettext(
                "%(n)s instant is unexplained.",
                "%(n)s instants are unexplained.",
                tally.unexplained,
                n=number(tally.unexplained),
            )
        )
    if tally.unexpected:
        wrong.append(
            ngettext(
                "%(n)s run was not expected.",
                "%(n)s runs were not expected.",
                tally.unexpected,
                n=number(tally.unexpected),
            )
        )
    if wrong:
        return " ".join(wrong)
    if not tally.expected:
        return _("Nothing was due.")
    flaws = flaws_of(tally)
    sentence = ngettext(
        "The one expected instant is accounted for.",
        "All %(n)s expected instants are accounted for.",
        tally.expected,
        n=number(tally.expected),
    )
    return f"{sentence} {comma_list(flaws)}" if flaws else sentence


def _share(count: int, total: int) -> str:
    """Return a share in per cent, rounded down, so that 100 % are all."""
    if not total or not count:
        return ""
    tenths = count * 1_000 // total
    return f"{tenths / 10:.1f} %".replace(".0 %", " %") if tenths else "< 0.1 %"


def job_rows(
    jobs: Sequence[JobSum],
    query: Query,
    place: Place,
    titles: Mapping[int, str],
    job_texts: Mapping[int, str],
) -> list[JobRow]:
    """Return the rows of jobs; their numbers lead to their runs, their missed starts, or their days."""
    rows = []
    for job in jobs:
        of_job = Place(place.interval, 0, job.job_id)
        href = query.address(job_id=job.job_id, group_id=0)
        cells = [_cell(job.tally, term, of_job, href) for term in TERMS]
        wrong = job.tally.unexpected
        cells.append(Cell(_("Unexpected"), wrong, of_job.runs() if wrong else "", "danger"))
        rows.append(
            JobRow(
                job_texts.get(job.job_id, str(job.job_id)),
                href,
                titles.get(job.group_id, str(job.group_id)),
                job.tally.expected,
                cells,
                _reasons(job.tally),
                not job.tally.is_complete,
            )
        )
    return rows


@dataclass(frozen=True, slots=True)
class HourRow:
    """Hour of a job's day."""

    title: str
    href: str
    expected_count: int
    #: number and tone of each term
    counts: list[tuple[int, str]]


def hour_rows(job_day: JobDay, query: Query, zone: ZoneInfo) -> list[HourRow]:
    """Return the hours of a job's day, in the zone of the days; each leads to its runs."""
    return [
        HourRow(
            datetime.fromtimestamp(hour.from_ms // SECOND_MS, zone).strftime("%H:%M"),
            Place(Interval(hour.from_ms, hour.from_ms + HOUR_MS), job_id=query.job_id).runs(),
            hour.tally.expected,
            [
                (number_of(hour.tally, term), "" if term is Term.ON_TIME else tone)
                for term, (_name, tone, _icon) in TERMS.items()
            ],
        )
        for hour in job_day.hours
    ]


def _cell(tally: Tally, term: Term, place: Place, elsewhere: str) -> Cell:
    name, tone, _icon = TERMS[term]
    count = number_of(tally, term)
    href = place.term(term, elsewhere) if count else ""
    return Cell(str(name), count, href, tone if term is not Term.ON_TIME else "")


def _reasons(tally: Tally) -> str:
    reasons = [*reasons_of(tally, Term.NOT_STARTED), *reasons_of(tally, Term.SKIPPED)]
    texts = [f"{number(count)} × {text}" for text, count in reasons[:REASONS_SHOWN]]
    return comma_list([*texts, *(["…"] if len(reasons) > REASONS_SHOWN else [])])
