"""Runs by day: of all groups from the summary table, of some counted from their runs."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from sqlalchemy import Subquery, case, func, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.enums import HandleCode, TriggerCode
from app.models.base import local_datetime, zone_name
from app.models.log import JobLog
from app.models.report import DayReport

#: runs of one result but success that are read; of days before the oldest of them nothing is told
LOOKED_AT_MAX = 25_000
#: different results that are told from success
CODES_MAX = 50


@dataclass(frozen=True, slots=True)
class DayCount:
    """How the runs of one day stand; ``day`` is ``2024-05-01``."""

    day: str
    success: int
    failed: int
    running: int


def day_counts(session: Session, *, from_ms: Millis, to_ms: Millis) -> list[DayCount]:
    """Return the counts of all groups, from the summary table."""
    query = select(DayReport).where(DayReport.trigger_day.between(from_ms, to_ms)).order_by(DayReport.trigger_day)
    rows = session.scalars(query)
    return [
        DayCount(local_datetime(row.trigger_day or 0).date().isoformat(), row.suc_count, row.fail_count, row.running_count) for row in rows
    ]


def day_counts_of_groups(session: Session, group_ids: Collection[int], *, from_ms: Millis, to_ms: Millis) -> list[DayCount]:
    """Return the counts of some groups: the summary table knows all groups only together.

    All runs of a day are counted in the index alone; only those without a success are read, the newest LOOKED_AT_MAX of each result.
    """
    first_day, running, failed = _without_success(session, group_ids, from_ms, to_ms)
    totals = _totals(session, group_ids, from_ms, to_ms)
    counts = []
    for day, total in totals.items():
        if total and day >= first_day:
            out, bad = running.get(day, 0), failed.get(day, 0)
            counts.append(DayCount(day, max(0, total - out - bad), bad, out))
    return counts


def _totals(session: Session, group_ids: Collection[int], from_ms: Millis, to_ms: Millis) -> dict[str, int]:
    """Return the runs of each day, with one statement."""
    days = list(_days(local_datetime(from_ms).date(), local_datetime(to_ms).date()))
    if not days or not group_ids:
        return {}
    counted = [
        select(func.count())
        .select_from(JobLog)
        .where(
            JobLog.job_group.in_(list(group_ids)),
            JobLog.trigger_time >= max(from_ms, _midnight_ms(day)),
            JobLog.trigger_time <= min(to_ms, _midnight_ms(day + timedelta(days=1)) - 1),
        )
        .scalar_subquery()
        for day in days
    ]
    return {day.isoformat(): total for day, total in zip(days, session.execute(select(*counted)).one(), strict=True)}


def _without_success(
    session: Session, group_ids: Collection[int], from_ms: Millis, to_ms: Millis
) -> tuple[str, dict[str, int], dict[str, int]]:
    """Return the first day that can be told, and the running and the failed runs of each day."""
    first_day, running, failed = "", dict[str, int](), dict[str, int]()
    for code in _codes(session):
        newest = _newest_of(code)
        when = func.date(newest.c.trigger_time)
        asked = newest.c.job_group.in_(list(group_ids)) & newest.c.trigger_time.between(from_ms, to_ms)
        counts = select(when, newest.c.trigger_code, func.count(), func.sum(case((asked, 1), else_=0))).group_by(
            when, newest.c.trigger_code
        )
        rows = [(str(day)[:10], sent, int(read), int(count)) for day, sent, read, count in session.execute(counts)]
        if sum(read for _day, _sent, read, _count in rows) == LOOKED_AT_MAX:
            first_day = max(first_day, (date.fromisoformat(min(row[0] for row in rows)) + timedelta(days=1)).isoformat())
        for day, sent, _read, count in rows:
            counted = running if code == HandleCode.NONE and sent in (TriggerCode.NONE, TriggerCode.ACCEPTED) else failed
            counted[day] = counted.get(day, 0) + count
    return first_day, running, failed


def _codes(session: Session) -> list[int]:
    """Return the results but success that runs have: a step in the index each."""
    codes: list[int] = []
    after = select(func.min(JobLog.handle_code))
    code = session.scalar(after)
    while code is not None and len(codes) < CODES_MAX:
        if code != HandleCode.SUCCESS:
            codes.append(code)
        code = session.scalar(after.where(JobLog.handle_code > code))
    return codes


def _newest_of(code: int) -> Subquery:
    """The newest runs with a result, by the index of results alone: no other condition may lead the database astray."""
    columns = (JobLog.job_group, JobLog.trigger_time, JobLog.trigger_code)
    return select(*columns).where(JobLog.handle_code == code).order_by(JobLog.id.desc()).limit(LOOKED_AT_MAX).subquery()


def _days(first: date, last: date) -> list[date]:
    return [first + timedelta(days=number) for number in range(min((last - first).days + 1, 400))]


def _midnight_ms(day: date) -> Millis:
    return int(datetime.combine(day, time(), ZoneInfo(zone_name())).timestamp()) * 1000
