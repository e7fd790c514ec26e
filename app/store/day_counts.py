"""Runs by day: of all groups from the summary table, of some counted from their runs."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import BindParameter, Integer, ScalarSelect, Select, bindparam, case, func, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.enums import HandleCode, TriggerCode
from app.models.base import EpochMillis, local_datetime, zone_name
from app.models.log import JobLog
from app.models.report import DayReport
from app.store.logs import is_failed

#: runs of one kind, running or failed, that are read; of days before the oldest of them nothing is told
LOOKED_AT_MAX = 25_000
#: days that are asked for at once
DAYS_MAX = 400


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

    All runs of a day are counted in the index alone; only those without a success are read, the newest LOOKED_AT_MAX of each kind.
    """
    first_day, running = _running(session, group_ids, from_ms, to_ms)
    first_day = max(first_day, _day_after_cut(session, from_ms, to_ms))
    days = [day for day in _days(local_datetime(from_ms).date(), local_datetime(to_ms).date()) if day.isoformat() >= first_day]
    counts = []
    for day, (total, bad) in _totals_and_failed(session, group_ids, days, from_ms, to_ms).items():
        if total:
            out = running.get(day, 0)
            counts.append(DayCount(day, max(0, total - out - bad), bad, out))
    return counts


def _running(session: Session, group_ids: Collection[int], from_ms: Millis, to_ms: Millis) -> tuple[str, dict[str, int]]:
    """Return the first day that can be told, and the running runs of each day.

    They are found by the index of results alone: no other condition may lead the database astray.
    """
    columns = (JobLog.job_group, JobLog.trigger_time, JobLog.trigger_code)
    newest = select(*columns).where(JobLog.handle_code == HandleCode.NONE).order_by(JobLog.id.desc()).limit(LOOKED_AT_MAX).subquery()
    asked = newest.c.job_group.in_(list(group_ids)) & newest.c.trigger_time.between(from_ms, to_ms)
    asked &= newest.c.trigger_code.in_([TriggerCode.NONE, TriggerCode.ACCEPTED])
    when = func.date(newest.c.trigger_time)
    counts = select(when, func.count(), func.sum(case((asked, 1), else_=0))).group_by(when)
    rows = [(str(day)[:10], int(read), int(count)) for day, read, count in session.execute(counts)]
    is_cut = sum(read for _day, read, _count in rows) == LOOKED_AT_MAX
    return _day_after(min(row[0] for row in rows)) if is_cut else "", {day: count for day, _read, count in rows}


def _day_after_cut(session: Session, from_ms: Millis, to_ms: Millis) -> str:
    """Return the day after the oldest failed run that may be read; empty where all of this time may be."""
    failed = select(JobLog.trigger_time).where(is_failed(), JobLog.trigger_time.between(from_ms, to_ms))
    oldest_ms = session.scalar(failed.order_by(JobLog.trigger_time.desc()).offset(LOOKED_AT_MAX - 1).limit(1))
    return "" if oldest_ms is None else _day_after(local_datetime(oldest_ms).date().isoformat())


def _totals_and_failed(
    session: Session, group_ids: Collection[int], days: list[date], from_ms: Millis, to_ms: Millis
) -> dict[str, tuple[int, int]]:
    """Return all runs and the failed ones of each day, with one statement."""
    if not days or not group_ids:
        return {}
    bounds: dict[str, Any] = {"groups": list(group_ids), "most": LOOKED_AT_MAX}
    for number, day in enumerate(days):
        bounds[f"from_{number}"] = max(from_ms, _midnight_ms(day))
        bounds[f"to_{number}"] = min(to_ms, _midnight_ms(day + timedelta(days=1)) - 1)
    row = session.execute(_of_days(len(days)), bounds).one()
    return {day.isoformat(): (row[2 * number], row[2 * number + 1]) for number, day in enumerate(days)}


@lru_cache(DAYS_MAX)
def _of_days(count: int) -> Select[Any]:
    """Make the statement of so many days: kept, because making it costs as much as a small answer."""
    most = bindparam("most", type_=Integer)
    mine: BindParameter[Any] = bindparam("groups", expanding=True)
    columns: list[ScalarSelect[int]] = []
    for number in range(count):
        first, last = bindparam(f"from_{number}", type_=EpochMillis), bindparam(f"to_{number}", type_=EpochMillis)
        of_day = JobLog.trigger_time.between(first, last)
        # with a limit of its own the inner query keeps to the index of the failed runs
        failed = select(JobLog.job_group, JobLog.handle_code).where(is_failed(), of_day).limit(most).subquery()
        total = select(func.count()).select_from(JobLog).where(JobLog.job_group.in_(mine), of_day)
        bad = select(func.count()).select_from(failed).where(failed.c.job_group.in_(mine), failed.c.handle_code != HandleCode.SUCCESS)
        columns += [total.scalar_subquery(), bad.scalar_subquery()]
    return select(*columns)


def _day_after(day: str) -> str:
    return (date.fromisoformat(day) + timedelta(days=1)).isoformat()


def _days(first: date, last: date) -> list[date]:
    return [first + timedelta(days=number) for number in range(min((last - first).days + 1, DAYS_MAX))]


def _midnight_ms(day: date) -> Millis:
    return int(datetime.combine(day, time(), ZoneInfo(zone_name())).timestamp()) * 1000
