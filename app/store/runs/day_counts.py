"""Daily counts of runs, of all groups or of some, as the report counted them last."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.models.base import local_datetime
from app.models.report import DayReport, GroupDay


@dataclass(frozen=True, slots=True)
class DayCount:
    """Runs of one day; ``day`` is ``2024-05-01``."""

    day: str
    success: int
    failed: int
    running: int


def day_counts(session: Session, *, from_ms: Millis, to_ms: Millis) -> list[DayCount]:
    """Return the counts of all groups, from the summary table."""
    query = (
        select(DayReport).where(DayReport.trigger_day.between(from_ms, to_ms)).order_by(DayReport.trigger_day)
    )
    rows = session.scalars(query)
    return [
        DayCount(
            local_datetime(row.trigger_day or 0).date().isoformat(),
            row.suc_count,
            row.fail_count,
            row.running_count,
        )
        for row in rows
    ]


def day_counts_of_groups(
    session: Session, group_ids: Collection[int], *, from_ms: Millis, to_ms: Millis
) -> list[DayCount]:
    """Return the counts of some groups, for the days that have been counted by group."""
    in_range = GroupDay.trigger_day.between(from_ms, to_ms)
    sums = [func.sum(column) for column in (GroupDay.suc_count, GroupDay.fail_count, GroupDay.running_count)]
    query = select(GroupDay.trigger_day, *sums).where(in_range, GroupDay.job_group.in_(list(group_ids)))
    rows = bulk.read_rows(session, query.group_by(GroupDay.trigger_day).order_by(GroupDay.trigger_day))
    return [DayCount(local_datetime(row[0]).date().isoformat(), *map(int, row[1:])) for row in rows]
