"""Lists of alarms for pages and the API, newest first."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.enums import AlarmState
from app.models.alarm import Alarm
from app.models.log import JobLog
from app.store.base.paging import Slice, fetch_slice
from app.store.pickers.overview import GroupIds, in_groups

#: most alarms that are read for one part of a list
SEARCHED_MAX = 50_000


@dataclass(frozen=True, slots=True)
class AlarmFilter:
    """Filter of alarms; None and an empty collection match all."""

    job_id: int | None = None
    #: executor group of the run
    group_id: int | None = None
    states: Collection[AlarmState] = ()
    from_ms: Millis | None = None
    to_ms: Millis | None = None


def list_before(
    session: Session, criteria: AlarmFilter, group_ids: GroupIds, *, before_id: int | None, limit: int
) -> Slice[Alarm]:
    """Return the newest alarms with an id below ``before_id`` (None: of all), newest first.

    Of runs of these groups (None: of any); an alarm whose run was cleared has no group.
    """
    newest = before_id - 1 if before_id is not None else session.scalar(select(func.max(Alarm.id))) or 0
    first = max(newest - SEARCHED_MAX, 0) if criteria.job_id is None else 0
    query = _select(criteria, group_ids).where(Alarm.id.between(first, newest)).order_by(Alarm.id.desc())
    return fetch_slice(session, query, limit=limit, searched_to=first or None)


def _select(criteria: AlarmFilter, group_ids: GroupIds) -> Select[tuple[Alarm]]:
    query = select(Alarm).where(*_conditions(criteria))
    if group_ids is None and criteria.group_id is None:
        return query
    conditions = list(in_groups(JobLog.job_group, group_ids))
    if criteria.group_id is not None:
        conditions.append(JobLog.job_group == criteria.group_id)
    return query.join(JobLog, JobLog.id == Alarm.log_id).where(*conditions)


def _conditions(criteria: AlarmFilter) -> Iterator[ColumnElement[bool]]:
    if criteria.job_id is not None:
        yield Alarm.job_id == criteria.job_id
    if criteria.states:
        yield Alarm.state.in_([state.value for state in criteria.states])
    if criteria.from_ms is not None:
        yield Alarm.created_ms >= criteria.from_ms
    if criteria.to_ms is not None:
        yield Alarm.created_ms <= criteria.to_ms
