"""Parameters of the completeness page: month, days, executor group and job."""

from datetime import date, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from flask import request, url_for

from app.clock import Millis
from app.console.ui.lists.listing import whole_number
from app.console.ui.lists.ranges import FIRST_YEAR, LAST_YEAR, read_day
from app.domain.completeness.days import day_of
from app.services.completeness.overview import Days, days_up_to

#: days of a period; a longer one is cut to its last days
DAYS_MAX = 31


class Query(NamedTuple):
    """What is asked for; 0 means all."""

    today: date
    #: first day of the month
    month: date
    period: Days
    #: whether the period is the month
    is_month: bool
    group_id: int
    job_id: int

    @property
    def one_day(self) -> date | None:
        """The day of the period, if it has one only."""
        return self.period.first if self.period.first == self.period.last else None

    @property
    def calendar_days(self) -> Days:
        """Days of the month up to today."""
        return days_up_to(self.month, self.today)

    def parameters(self, **changes: Any) -> dict[str, Any]:
        """Return the parameters of this page with changes; 0, None and empty leave one out."""
        days = {"month": f"{self.month:%Y-%m}"} if self.is_month else period_parameters(self.period)
        values = {"group_id": self.group_id, "job_id": self.job_id} | days | changes
        return {name: value for name, value in values.items() if value}

    def address(self, **changes: Any) -> str:
        """Return the URL of this page with changed parameters."""
        return url_for("completeness.index", **self.parameters(**changes))


def period_parameters(period: Days) -> dict[str, str]:
    """Return the parameters of a period."""
    return {"from": period.first.isoformat(), "to": period.last.isoformat()}


def read_query(zone: ZoneInfo, *, now_ms: Millis) -> Query:
    """Read the parameters; what is no day, month or id is left out."""
    today = day_of(now_ms, zone)
    group_id, job_id = max(0, whole_number("group_id", 0)), max(0, whole_number("job_id", 0))
    if of_hint := max(0, whole_number("jobId", 0)):  # a job that a hint of the search offers
        group_id, job_id = 0, of_hint
    period = _period()
    if period is not None:
        return Query(today, period.last.replace(day=1), period, False, group_id, job_id)
    month = _month() or today.replace(day=1)
    return Query(today, month, days_up_to(month, today), True, group_id, job_id)


def _period() -> Days | None:
    """Return the days between two dates in either order; with one date that day, without any None."""
    texts = request.args.get("from", ""), request.args.get("to", "")
    days = sorted(day for day in map(read_day, texts) if day is not None)
    if not days:
        return None
    return Days(max(days[0], days[-1] - timedelta(days=DAYS_MAX - 1)), days[-1])


def _month() -> date | None:
    """Return the first day of a month such as ``2026-11``."""
    text = request.args.get("month", "").strip()
    return read_day(f"{text}-01") if len(text) == len("2026-11") else None


def neighbour_month(month: date, by: int) -> date | None:
    """Return the first day of the month before (-1) or after (1); None beyond the years that are read."""
    day = month - timedelta(days=1) if by < 0 else (month.replace(day=28) + timedelta(days=4))
    return day.replace(day=1) if FIRST_YEAR <= day.year < LAST_YEAR else None
