"""State of an installation for monitors: a few indexed statements, whatever the size of the log."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import ColumnElement, func, select, text
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.clock import MINUTE_MS, Millis
from app.domain.enums import (
    AddressType,
    AlarmReason,
    AlarmState,
    FireState,
    RegistryGroup,
    TriggerCode,
)
from app.models.alarm import Alarm
from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.models.registry import Registration
from app.models.skip import Skip
from app.store.executors.registry import DEAD_AFTER_MS
from app.store.pickers.overview import newest_without_result

#: rows that are counted at most, so that a backlog does not slow a monitor down
COUNTED_MAX = 100_000
#: newest skips that are searched for missed instants, and the reasons of these
SKIPS_MAX = 2_000
MISSED = ("misfire", "invalid")
#: failed alarms and missed instants are shown for this long
RECENT_MS: Millis = 60 * MINUTE_MS


@dataclass(frozen=True, slots=True)
class Queues:
    """Fires by state; those due are waiting to be sent."""

    due: int
    #: when the oldest of them was due; None: none is
    oldest_due_ms: Millis | None
    #: others by state: claimed ones of any node
    by_state: Mapping[FireState, int]


def ping(session: Session) -> None:
    """Run the cheapest statement; raises SQLAlchemyError if the database does not answer."""
    session.execute(text("SELECT 1"))


def find_queues(session: Session, *, now_ms: Millis) -> Queues:
    """Count the fires."""
    due = (Fire.state == FireState.PENDING, Fire.due_time <= now_ms)
    others = select(Fire.state, func.count()).where(Fire.state != FireState.PENDING).group_by(Fire.state)
    counts = {row[0]: row[1] for row in session.execute(others)}
    return Queues(
        _count(session, Fire.id, *due),
        session.scalar(select(func.min(Fire.due_time)).where(*due)),
        {state: counts.get(state.value, 0) for state in FireState if state is not FireState.PENDING},
    )


def count_alarms(session: Session, *, now_ms: Millis) -> tuple[int, int]:
    """Return how many alarms wait to be delivered, and how many failed recently."""
    open_alarms = Alarm.state.in_([AlarmState.PENDING, AlarmState.SENDING])
    waiting_count = _count(session, Alarm.id, open_alarms, Alarm.reason != AlarmReason.RECOVERED)
    has_failed = (
        Alarm.state.in_([AlarmState.FAILED, AlarmState.PARTLY]),
        Alarm.next_ms >= now_ms - RECENT_MS,
    )
    return waiting_count, _count(session, Alarm.id, *has_failed)


def count_jobs(session: Session) -> dict[int, int]:
    """Return `trigger_status` -> number of jobs."""
    rows = session.execute(select(Job.trigger_status, func.count()).group_by(Job.trigger_status))
    return {row[0]: row[1] for row in rows}


def find_group_names(session: Session, *, limit: int) -> dict[int, str]:
    """Return the names of the executor groups by id, the oldest groups first."""
    rows = session.execute(select(Group.id, Group.app_name).order_by(Group.id).limit(limit))
    return {row[0]: row[1] for row in rows}


def count_instances(session: Session, *, now_ms: Millis) -> dict[int, int]:
    """Return id of a group with automatic registration -> instances with a recent heartbeat."""
    alive = (
        select(func.count())
        .where(
            Registration.registry_group == RegistryGroup.EXECUTOR,
            Registration.registry_key == Group.app_name,
            Registration.update_time >= now_ms - DEAD_AFTER_MS,
        )
        .correlate(Group)
        .scalar_subquery()
    )
    groups = select(Group.id, alive).where(Group.address_type == AddressType.AUTOMATIC)
    return {row[0]: row[1] for row in session.execute(groups.order_by(Group.id))}


def count_unresolved(session: Session) -> dict[int, int]:
    """Return group id -> unresolved runs, among the newest WITHOUT_RESULT_MAX runs without a result."""
    newest = newest_without_result(JobLog.job_group, JobLog.trigger_code)
    query = select(newest.c.job_group, func.count()).where(newest.c.trigger_code == TriggerCode.UNRESOLVED)
    return {row[0]: row[1] for row in session.execute(query.group_by(newest.c.job_group))}


def count_missed(session: Session, *, now_ms: Millis) -> dict[int, int]:
    """Return group id -> instants recently missed, among the newest SKIPS_MAX skips."""
    newest = select(Skip).order_by(Skip.id.desc()).limit(SKIPS_MAX).subquery()
    query = (
        select(Job.job_group, func.sum(newest.c.skipped))
        .join(newest, newest.c.job_id == Job.id)
        .where(newest.c.reason.in_(MISSED), newest.c.recorded_ms >= now_ms - RECENT_MS)
    )
    return {row[0]: int(row[1]) for row in session.execute(query.group_by(Job.job_group))}


def _count(session: Session, column: "InstrumentedAttribute[int]", *conditions: ColumnElement[bool]) -> int:
    rows = select(column).where(*conditions).limit(COUNTED_MAX).subquery()
    return session.scalar(select(func.count()).select_from(rows)) or 0
