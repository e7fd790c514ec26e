"""List of what a backfill would run, by day."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby
from zoneinfo import ZoneInfo

from flask_babel import format_date

from app.clock import Millis
from app.console.ui.backfills.words import STANDINGS, Look
from app.console.web.current import translate
from app.domain.backfills.instants import ListedInstant, summary_of
from app.domain.backfills.kinds import Which
from app.domain.backfills.sentences import sentence_of

#: instants that are listed one by one; of further ones only the numbers of their days
LISTED_MAX = 2_500


@dataclass(frozen=True, slots=True)
class PlannedInstant:
    """An instant of the list."""

    ms: Millis
    #: local time of day
    text: str
    look: Look
    reason: str
    is_run: bool


@dataclass(frozen=True, slots=True)
class PlannedDay:
    """A day of the list."""

    day: str
    title: str
    summary: str
    instants: Sequence[PlannedInstant]


def planned_days(instants: Iterable[ListedInstant], which: Which, zone: ZoneInfo) -> list[PlannedDay]:
    """Return the instants, which ascend, by local day."""
    days, count = list[PlannedDay](), 0

    def day_of(instant: ListedInstant) -> date:
        return datetime.fromtimestamp(instant.logical_ms / 1000, zone).date()

    for day, group in groupby(instants, key=day_of):
        of_day = list(group)
        visible = of_day if count + len(of_day) <= LISTED_MAX else []
        count += len(of_day)
        rows = [_row(instant, zone) for instant in visible]
        summary = translate(sentence_of(summary_of(of_day), which))
        days.append(PlannedDay(day.isoformat(), str(format_date(day, "full")), summary, rows))
    return days


def _row(instant: ListedInstant, zone: ZoneInfo) -> PlannedInstant:
    text = f"{datetime.fromtimestamp(instant.logical_ms / 1000, zone):%H:%M:%S}".removesuffix(":00")
    return PlannedInstant(
        instant.logical_ms, text, STANDINGS[instant.standing], instant.reason, instant.is_run
    )
