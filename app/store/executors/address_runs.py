"""Runs by address: how many an instance had, how many failed, and which it took and refused last."""

from collections.abc import Collection
from typing import Any, NamedTuple

from sqlalchemy import Select, case, func, select, union_all
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.domain.enums import TriggerCode
from app.models.base import lower_bound
from app.models.log import JobLog

#: newest runs that are read of all groups together, and least of one
READ_MAX, READ_MIN = 2_000, 50


class AddressRuns(NamedTuple):
    """Runs of one address of a group."""

    group_id: int
    #: as stored with the runs; None: they got none
    address: str | None
    runs: int
    failures: int
    #: the last run that was accepted, and the last one that was not
    accepted_ms: Millis | None
    refused_ms: Millis | None
    #: id of the newest failed run
    failed_id: int | None

    def merged_with(self, other: "AddressRuns") -> "AddressRuns":
        """Return the runs of two spellings of one address."""
        return AddressRuns(
            self.group_id,
            self.address,
            self.runs + other.runs,
            self.failures + other.failures,
            max(self.accepted_ms or 0, other.accepted_ms or 0) or None,
            max(self.refused_ms or 0, other.refused_ms or 0) or None,
            max(self.failed_id or 0, other.failed_id or 0) or None,
        )


class RunTime(NamedTuple):
    """When a run was triggered, where, and whether it failed."""

    #: as stored with the run; None: it got none
    address: str | None
    trigger_ms: Millis
    #: 0 or 1
    failed: int


def runs_read(groups: int) -> int:
    """Return how many of the newest runs of each group are read, for so many groups."""
    return max(READ_MIN, READ_MAX // max(1, groups))


def count_by_address(session: Session, group_ids: Collection[int], *, since_ms: Millis) -> list[AddressRuns]:
    """Return the runs since an instant by group and address.

    One statement, which reads ``runs_read`` runs of each group from the index of groups.
    """
    if not group_ids:
        return []
    limit = runs_read(len(group_ids))
    newest = union_all(*(_newest(group_id, since_ms, limit) for group_id in sorted(group_ids))).subquery()
    run = newest.c
    query = select(
        run.job_group,
        run.executor_address,
        func.count(),
        func.sum(run.failed),
        func.max(case((run.trigger_code == TriggerCode.ACCEPTED, run.trigger_time))),
        func.max(case((run.trigger_code == TriggerCode.REFUSED, run.trigger_time))),
        func.max(case((run.failed == 1, run.id))),
    )
    rows = bulk.read_rows(session, query.group_by(run.job_group, run.executor_address))
    return [AddressRuns._make((*row[:3], int(row[3] or 0), *row[4:])) for row in rows]


def list_newest(session: Session, group_id: int, *, since_ms: Millis) -> list[RunTime]:
    """Return the newest runs of a group since an instant, as many as are counted of it alone."""
    newest = _newest(group_id, since_ms, READ_MAX).subquery().c
    rows = bulk.read_rows(session, select(newest.executor_address, newest.trigger_time, newest.failed))
    return list(map(RunTime._make, rows))


def _newest(group_id: int, since_ms: Millis, limit: int) -> Select[Any]:
    columns = (JobLog.job_group, JobLog.executor_address, JobLog.trigger_code, JobLog.trigger_time)
    newest = (
        select(*columns, JobLog.failed, JobLog.id)
        .where(JobLog.job_group == group_id, JobLog.trigger_time >= lower_bound(since_ms))
        .order_by(JobLog.trigger_time.desc(), JobLog.id.desc())
        .limit(limit)
        .subquery()
    )
    return select(newest)
