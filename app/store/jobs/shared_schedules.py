"""Statements on the schedules of enabled jobs, by executor group, for the planned load."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import ColumnElement, case, func, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.domain.enums import ScheduleType, TriggerStatus
from app.models.job import Job

#: fixed periods are counted from the next time
_COUNTED_FROM = case(
    (Job.schedule_type.in_([ScheduleType.FIX_RATE, ScheduleType.FIX_DELAY]), Job.trigger_next_time), else_=0
)
_STARTED_BY = (
    Job.job_group,
    Job.schedule_type,
    Job.schedule_conf,
    Job.time_zone,
    Job.not_before_ms,
    Job.not_after_ms,
    Job.calendar,
    _COUNTED_FROM,
)


class ScheduleGroup(NamedTuple):
    """A schedule with the number of enabled jobs of an executor group that have it."""

    job_group: int
    schedule_type: str
    schedule_conf: str | None
    time_zone: str
    not_before_ms: Millis
    not_after_ms: Millis
    #: day rule as JSON text; None: all days
    calendar: str | None
    #: of fixed rates and delays; otherwise 0
    next_ms: Millis
    jobs: int
    #: the lowest id
    first_id: int


def find_scheduled(session: Session, group_ids: Collection[int] | None, *, limit: int) -> list[ScheduleGroup]:
    """Return the schedules of the enabled jobs of these groups (None: all), the most used first."""
    query = (
        select(*_STARTED_BY, func.count(), func.min(Job.id))
        .where(*_is_scheduled(group_ids))
        .group_by(*_STARTED_BY)
    )
    rows = bulk.read_rows(session, query.order_by(func.count().desc(), func.min(Job.id)).limit(limit))
    return list(map(ScheduleGroup._make, rows))


def find_of_schedule(
    session: Session, group_ids: Collection[int] | None, schedule: ScheduleGroup, *, limit: int
) -> list[int]:
    """Return the lowest ids of the jobs with a schedule."""
    same = [column == value for column, value in zip(_STARTED_BY, schedule, strict=False)]
    return list(
        session.scalars(select(Job.id).where(*_is_scheduled(group_ids), *same).order_by(Job.id).limit(limit))
    )


def count_scheduled(session: Session, group_ids: Collection[int] | None) -> int:
    """Return the number of enabled jobs with a schedule."""
    return session.scalar(select(func.count()).select_from(Job).where(*_is_scheduled(group_ids))) or 0


def _is_scheduled(group_ids: Collection[int] | None) -> list[ColumnElement[bool]]:
    conditions = [Job.trigger_status == TriggerStatus.RUNNING, Job.schedule_type != ScheduleType.NONE]
    return conditions if group_ids is None else [*conditions, Job.job_group.in_(list(group_ids))]
