"""Lists of alarms for pages and the API, newest first."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from sqlalchemy import ColumnElement, Select, and_, case, false, func, not_, or_, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.enums import AlarmState
from app.models.alarm import Alarm
from app.models.log import JobLog
from app.store.base.paging import Slice, fetch_slice
from app.store.pickers.overview import GroupIds, in_groups

#: most alarms that are read for one part of a list
SEARCHED_MAX = 50_000
#: alarms of several nodes are numbered nearly in the order of their times
NUMBERED_WITHIN = 1_000


@dataclass(frozen=True, slots=True)
class AlarmFilter:
    """Filter of alarms; None and an empty collection match all."""

    job_id: int | None = None
    #: executor group of the run
    group_id: int | None = None
    states: Collection[AlarmState] = ()
    #: how outcomes write the names of the targets of a channel
    targets: Collection[str] = ()
    #: whether one of these targets accepted it, or did not; None: either
    is_accepted: bool | None = None
    from_ms: Millis | None = None
    to_ms: Millis | None = None


class StateCount(NamedTuple):
    """Numbers of alarms of one state."""

    state: str
    alarms: int
    #: those that the targets of the filter accepted, and did not; of several targets one is enough
    accepted_count: int
    refused_count: int


def list_before(
    session: Session,
    criteria: AlarmFilter,
    group_ids: GroupIds,
    *,
    before_id: int | None,
    limit: int,
    searched_max: int = SEARCHED_MAX,
) -> Slice[Alarm]:
    """Return the newest alarms with an id below ``before_id`` (None: of all), newest first.

    Of runs of these groups (None: of any); an alarm whose run was cleared has no group.
    """
    newest = before_id - 1 if before_id is not None else find_newest_id(session)
    first = max(newest - searched_max, 0) if criteria.job_id is None else 0
    query = _select(criteria, group_ids).where(Alarm.id.between(first, newest)).order_by(Alarm.id.desc())
    return fetch_slice(session, query, limit=limit, searched_to=first or None)


def count_states(
    session: Session,
    criteria: AlarmFilter,
    group_ids: GroupIds,
    *,
    before_id: int | None,
    searched_max: int,
    limit: int,
) -> list[StateCount]:
    """Count the alarms by state, whatever state or answer the filter has.

    Of those that ``list_before`` searches first, at most ``limit`` are counted.
    """
    query = _select(replace(criteria, states=(), is_accepted=None), group_ids)
    newest = before_id - 1 if before_id is not None else find_newest_id(session)
    if criteria.job_id is None:
        query = query.where(Alarm.id.between(newest - searched_max, newest))
    accepted_count, refused_count = (
        case((or_(false(), *(_has_reached(target, is_accepted) for target in criteria.targets)), 1), else_=0)
        for is_accepted in (True, False)
    )
    alarms = query.with_only_columns(
        Alarm.state, accepted_count.label("accepted"), refused_count.label("refused")
    )
    row = alarms.limit(limit).subquery().c
    counts = select(row.state, func.count(), func.sum(row.accepted), func.sum(row.refused))
    return [StateCount(of[0], *map(int, of[1:])) for of in session.execute(counts.group_by(row.state))]


def find_newest_id(session: Session) -> int:
    """Return the highest id of an alarm; 0: there is none."""
    return session.scalar(select(func.max(Alarm.id))) or 0


def is_older(session: Session, before_id: int, *, than_ms: Millis) -> bool:
    """Whether all alarms with an id below ``before_id`` are older than an instant, or there are none."""
    query = select(Alarm.created_ms).where(Alarm.id < before_id).order_by(Alarm.id.desc()).limit(1)
    created_ms = session.scalar(query)
    return created_ms is None or created_ms < than_ms


def find_id_after(session: Session, at_ms: Millis) -> int:
    """Return an id beyond those of the alarms up to an instant; reads a row a step of a binary search."""
    low, high = 0, find_newest_id(session) + 1
    step = select(Alarm.id, Alarm.created_ms).order_by(Alarm.id).limit(1)
    while high - low > NUMBERED_WITHIN:
        middle = (low + high) // 2
        row = session.execute(step.where(Alarm.id >= middle)).first()
        if row is not None and row.created_ms <= at_ms:
            low = max(row.id, middle)
        else:
            high = middle
    return high + NUMBERED_WITHIN


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
    if criteria.targets:
        yield or_(*(_has_reached(target, criteria.is_accepted) for target in criteria.targets))
    if criteria.from_ms is not None:
        yield Alarm.created_ms >= criteria.from_ms
    if criteria.to_ms is not None:
        yield Alarm.created_ms <= criteria.to_ms


def _has_reached(target: str, is_accepted: bool | None) -> ColumnElement[bool]:
    """Return the condition that a target was asked, and what it answered."""
    was_asked, is_target_accepted = (
        Alarm.outcome.contains(f'{target}": {answer}', autoescape=True) for answer in ("", '"ok"')
    )
    if is_accepted is None:
        return was_asked
    return is_target_accepted if is_accepted else and_(was_asked, not_(is_target_accepted))
