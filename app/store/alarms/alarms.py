"""Statements on `xxl_job_alarm`: pending alarms and recoveries and their outcome, one per run."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import (
    ColumnElement,
    and_,
    bindparam,
    case,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database import single_statement
from app.database.engine import affected
from app.database.rows import bulk
from app.domain.enums import AlarmReason, AlarmState, AlarmStatus
from app.models.alarm import Alarm
from app.models.log import JobLog
from app.store.pickers.overview import GroupIds, in_groups

#: the `alarm_status` of a run, by the final state of its alarm
_STATUS_OF_RUN = {
    AlarmState.SENT: AlarmStatus.SENT,
    AlarmState.FAILED: AlarmStatus.FAILED,
    AlarmState.PARTLY: AlarmStatus.FAILED,
    AlarmState.SILENT: AlarmStatus.NOT_NEEDED,
    AlarmState.MUTED: AlarmStatus.NOT_NEEDED,
}
#: states of alarms that were never sent; later alarms of the job are not delayed because of them
_NEVER_SENT = (AlarmState.SILENT, AlarmState.MUTED)
#: pattern of an outcome in which a target has accepted the message
_ACCEPTED = '%": "ok"%'


@dataclass(frozen=True, slots=True)
class HeldAlarms:
    """Alarms of one job that a mute holds back."""

    job_id: int
    count: int
    unresolved_count: int
    first_log_id: int
    last_log_id: int


def is_announced(alarm: type[Alarm] = Alarm) -> ColumnElement[bool]:
    """Return the condition that a target has accepted an alarm; it gets the recovery, too."""
    return and_(alarm.state.in_([AlarmState.SENT, AlarmState.PARTLY]), alarm.reason != AlarmReason.RECOVERED)


def insert_alarms(session: Session, rows: Sequence[bulk.Row]) -> None:
    """Insert alarms; a run that already has one keeps it."""
    bulk.insert_ignore(session, Alarm, rows)


def take_due(session: Session, *, owner: str, now_ms: Millis, lease_ms: Millis, limit: int) -> list[Alarm]:
    """Claim alarms that are due, oldest first.

    An alarm whose notifier has died is claimed again after its lease.
    """
    due = or_(
        and_(Alarm.state == AlarmState.PENDING, Alarm.next_ms <= now_ms),
        and_(Alarm.state == AlarmState.SENDING, Alarm.lease_until < now_ms),
    )
    alarms = list(
        session.scalars(
            select(Alarm)
            .where(due)
            .order_by(Alarm.next_ms, Alarm.id)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
    )
    for alarm in alarms:
        alarm.state, alarm.owner, alarm.lease_until = AlarmState.SENDING, owner, now_ms + lease_ms
        alarm.attempts += 1
    return alarms


_DUE = (
    select(Alarm.id)
    .where(Alarm.state.in_([AlarmState.PENDING, AlarmState.SENDING]), Alarm.next_ms <= bindparam("now_ms"))
    .limit(1)
)


def has_due(*, now_ms: Millis) -> bool:
    """Whether an alarm may be due; opens its own transaction."""
    return bool(single_statement.read(_DUE, {"now_ms": now_ms}))


def find_last_attempts(
    session: Session, job_ids: Collection[int], *, apart_from: Collection[int]
) -> dict[int, Millis]:
    """Return job id -> end of the lease of the last attempt to send one of its alarms.

    Attempts count whatever their outcome; recoveries do not. ``apart_from`` are alarms to ignore.
    """
    query = select(Alarm.job_id, func.max(Alarm.lease_until).label("lease_until")).where(
        Alarm.job_id.in_(job_ids),
        or_(Alarm.attempts > 0, Alarm.outcome.is_not(None)),
        Alarm.reason != AlarmReason.RECOVERED,
        Alarm.state.not_in(_NEVER_SENT),
        Alarm.id.not_in(apart_from),
    )
    return {row.job_id: row.lease_until for row in session.execute(query.group_by(Alarm.job_id))}


def list_of_job(session: Session, job_id: int, *, group_ids: GroupIds, limit: int) -> list[Alarm]:
    """Return the newest alarms of a job, of its runs in these groups (None: in any)."""
    query = select(Alarm).where(Alarm.job_id == job_id)
    if group_ids is not None:
        query = query.join(JobLog, JobLog.id == Alarm.log_id).where(*in_groups(JobLog.job_group, group_ids))
    return list(session.scalars(query.order_by(Alarm.id.desc()).limit(limit)))


def put_off(session: Session, alarms: Sequence[Alarm], *, until_ms: Millis) -> None:
    """Postpone claimed alarms, because others of the same job have just been sent or are being sent."""
    if not alarms:
        return
    values = {"state": AlarmState.PENDING.value, "next_ms": until_ms, "attempts": Alarm.attempts - 1}
    session.flush()
    affected(session, update(Alarm).where(*_is_claimed(alarms)).values(values))


def _is_claimed(alarms: Sequence[Alarm]) -> tuple[ColumnElement[bool], ...]:
    """Return the condition that alarms are still claimed by the notifier that took them."""
    ids, owners = [alarm.id for alarm in alarms], {alarm.owner for alarm in alarms}
    return Alarm.id.in_(ids), Alarm.state == AlarmState.SENDING, Alarm.owner.in_(owners)


def finish(
    session: Session,
    alarms: Sequence[Alarm],
    *,
    state: AlarmState,
    outcome: str,
    next_ms: Millis,
    counts: bool = True,
) -> None:
    """Store the outcome of alarms and set the `alarm_status` of their runs; ``counts``: as an attempt.

    A recovery that was sent is closed.
    """
    sent_state = case(
        (Alarm.reason == AlarmReason.RECOVERED, AlarmState.CLOSED.value), else_=AlarmState.SENT.value
    )
    values = {
        "state": sent_state if state is AlarmState.SENT else state.value,
        "outcome": outcome,
        "next_ms": next_ms,
        "attempts": Alarm.attempts - (0 if counts else 1),
    }
    affected(session, update(Alarm).where(*_is_claimed(alarms)).values(values))
    _mark_runs(session, alarms, state)


def _mark_runs(session: Session, alarms: Sequence[Alarm], state: AlarmState) -> None:
    status = _STATUS_OF_RUN.get(state)
    if status is not None:
        runs = update(JobLog).where(
            JobLog.id.in_([alarm.log_id for alarm in alarms]), JobLog.alarm_status == AlarmStatus.LOCKED
        )
        affected(session, runs.values(alarm_status=status.value))


def hold(session: Session, alarms: Sequence[Alarm], *, mute_id: int, outcome: str) -> None:
    """Hold back claimed alarms, for the mute to summarize when it ends.

    ``outcome`` names the user who muted them.
    """
    session.flush()
    values = {"state": AlarmState.MUTED.value, "outcome": outcome, "next_ms": 0, "mute_id": mute_id}
    affected(session, update(Alarm).where(Alarm.id.in_([alarm.id for alarm in alarms])).values(values))
    _mark_runs(session, alarms, AlarmState.MUTED)


def find_held(session: Session, mute_id: int) -> list[HeldAlarms]:
    """Return the alarms a mute holds back, by job."""
    unresolved_count = func.sum(case((Alarm.reason == AlarmReason.UNRESOLVED, 1), else_=0))
    columns = (Alarm.job_id, func.count(), unresolved_count, func.min(Alarm.log_id), func.max(Alarm.log_id))
    rows = bulk.read_rows(
        session,
        select(*columns).where(Alarm.mute_id == mute_id).group_by(Alarm.job_id).order_by(Alarm.job_id),
    )
    return [HeldAlarms(row[0], row[1], int(row[2]), row[3], row[4]) for row in rows]


def holds(session: Session, mute_id: int, *, job_id: int | None = None) -> bool:
    """Whether a mute holds back alarms, of a job if one is given."""
    query = select(Alarm.id).where(Alarm.mute_id == mute_id)
    if job_id is not None:
        query = query.where(Alarm.job_id == job_id)
    return session.execute(query.limit(1)).first() is not None


def hand_over(session: Session, mute_id: int, mute_by_job: Mapping[int, int]) -> None:
    """Transfer alarms held by an ending mute to other mutes; ``mute_by_job``: job id -> mute id."""
    for job_id, other_id in mute_by_job.items():
        affected(
            session,
            update(Alarm).where(Alarm.mute_id == mute_id, Alarm.job_id == job_id).values(mute_id=other_id),
        )


def release(
    session: Session, mute_id: int, *, log_ids: Collection[int], outcome: str, lease_until: Millis
) -> None:
    """Release the alarms of a mute and mark those of the runs ``log_ids`` as sent.

    A recovery is announced only for jobs with a sent alarm.
    """
    mark_sent(session, mute_id, log_ids, outcome=outcome, lease_until=lease_until)
    _release(session, Alarm.mute_id == mute_id)


def release_until(session: Session, mute_id: int, last_log_ids: Mapping[int, int]) -> None:
    """Release the alarms of a mute up to a run: job id -> last run. Those of later runs stay held."""
    for job_id, log_id in last_log_ids.items():
        _release(session, Alarm.mute_id == mute_id, Alarm.job_id == job_id, Alarm.log_id <= log_id)


def release_sent(session: Session, mute_id: int) -> None:
    """Release the alarms of a mute that a summary has reported to a target."""
    conditions = (Alarm.mute_id == mute_id, Alarm.state == AlarmState.SENT)
    last = select(Alarm.job_id, func.max(Alarm.log_id)).where(*conditions).group_by(Alarm.job_id)
    release_until(session, mute_id, {row[0]: row[1] for row in session.execute(last)})


def _release(session: Session, *conditions: ColumnElement[bool]) -> None:
    """Release alarms; those that a target had accepted before they were muted are partly sent."""
    was_accepted = and_(Alarm.state == AlarmState.MUTED, Alarm.outcome.like(_ACCEPTED))
    state = case((was_accepted, AlarmState.PARTLY.value), else_=Alarm.state)
    affected(session, update(Alarm).where(*conditions).values(state=state, mute_id=None))


def mark_sent(
    session: Session, mute_id: int, log_ids: Collection[int], *, outcome: str, lease_until: Millis
) -> None:
    """Mark the alarms a mute holds for these runs as sent, so that recoveries of their jobs are announced."""
    if log_ids:
        values = {"state": AlarmState.SENT.value, "outcome": outcome, "lease_until": lease_until}
        affected(
            session,
            update(Alarm).where(Alarm.mute_id == mute_id, Alarm.log_id.in_(list(log_ids))).values(values),
        )
