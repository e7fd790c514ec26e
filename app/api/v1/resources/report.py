"""API: numbers of runs."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from app.api.v1.endpoint import Call, Resource
from app.api.v1.schemas.report import DayOut, ReportOut, ReportQuery, SummaryOut
from app.domain.completeness.days import start_of
from app.errors import InvalidInput
from app.services.report import dashboard
from app.services.report.summary import summarize
from app.store.runs.day_counts import DayCount

#: default and largest number of days of a report
DAYS, DAYS_MAX = 30, 366
resource = Resource("report", "Numbers of runs by day, and of now.")


@resource.get("/report", answer=ReportOut, query=ReportQuery)
def get_report(call: Call) -> ReportOut:
    """Return the runs of each day, as last counted."""
    zone = ZoneInfo(call.config.time_zone)
    first, last = _range_of(call.query, datetime.fromtimestamp(call.now_ms / 1000, zone).date())
    chart = dashboard.chart(
        call.session, call.actor, from_ms=start_of(first, zone), to_ms=start_of(last, zone)
    )
    count_by_day = {day.day: day for day in chart.days}
    days = [day.isoformat() for day in _days(first, last) if day.isoformat() > chart.uncounted]
    return ReportOut(
        time_zone=call.config.time_zone,
        days=[_day(count_by_day.get(day, DayCount(day, 0, 0, 0))) for day in days],
        uncounted_until=date.fromisoformat(chart.uncounted) if chart.uncounted else None,
    )


@resource.get("/report/summary", answer=SummaryOut)
def get_summary(call: Call) -> SummaryOut:
    """Return numbers of now."""
    summary = summarize(call.session, call.actor, config=call.config, now_ms=call.now_ms)
    return SummaryOut(
        at=call.now_ms,
        groups=summary.groups,
        jobs=summary.jobs,
        enabled_jobs=summary.enabled,
        online_instances=summary.online,
        waiting=summary.waiting,
        oldest_waiting_at=summary.oldest_waiting_ms,
        running=summary.running,
        succeeded_today=summary.today.success,
        failed_today=summary.today.failed,
        scheduling=summary.scheduling,
    )


def _range_of(query: ReportQuery, today: date) -> tuple[date, date]:
    """Return the first and the last day. Raises InvalidInput."""
    last = query.to or today
    first = query.from_ or last - timedelta(days=DAYS - 1)
    if first > last:
        raise InvalidInput("from", "must not be after `to`")
    if (last - first).days >= DAYS_MAX:
        raise InvalidInput("from", f"at most {DAYS_MAX} days")
    return first, last


def _days(first: date, last: date) -> Iterator[date]:
    return (first + timedelta(days=number) for number in range((last - first).days + 1))


def _day(count: DayCount) -> DayOut:
    return DayOut(
        day=date.fromisoformat(count.day),
        succeeded=count.success,
        failed=count.failed,
        running=count.running,
    )
