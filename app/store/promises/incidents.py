"""Statements on `xxl_job_incident` and `xxl_job_incident_message`."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, ColumnElement, and_, bindparam, or_, select, update
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database import single_statement
from app.database.engine import affected
from app.database.rows import bulk
from app.database.sql.in_list import among
from app.domain.enums import AlarmReason, AlarmState, IncidentState
from app.models.alarm import Alarm
from app.models.promise import Incident, IncidentMessage

#: an incident that still matters
LIVE = (IncidentState.OPEN.value, IncidentState.ACKNOWLEDGED.value)


def insert_incidents(session: Session, rows: Sequence[bulk.Row]) -> None:
    """Insert incidents; one whose key is known stays as it is. Waits for others that insert it."""
    bulk.insert_ignore(session, Incident, rows)


def lock_by_keys(session: Session, keys: Collection[str]) -> list[Incident]:
    """Lock the incidents with these keys, by id."""
    return _lock(session, Incident.incident_key.in_(list(keys)))


def lock_incidents(session: Session, incident_ids: Collection[int]) -> list[Incident]:
    """Lock incidents, by id."""
    return _lock(session, Incident.id.in_(list(incident_ids)))


def lock_incident(session: Session, incident_id: int) -> Incident | None:
    """Lock an incident; None: there is none with this id."""
    return next(iter(lock_incidents(session, [incident_id])), None)


def _lock(session: Session, condition: ColumnElement[bool]) -> list[Incident]:
    query = select(Incident).where(condition).order_by(Incident.id).with_for_update()
    return list(session.scalars(query.execution_options(populate_existing=True)))


def find_incident(session: Session, incident_id: int) -> Incident | None:
    """Return an incident; None: there is none."""
    return session.get(Incident, incident_id)


def find_incidents(session: Session, incident_ids: Collection[int]) -> dict[int, Incident]:
    """Return incidents by id."""
    rows = session.scalars(select(Incident).where(Incident.id.in_(list(incident_ids))))
    return {row.id: row for row in rows}


def find_by_keys(session: Session, keys: Collection[str]) -> dict[str, Incident]:
    """Return incidents by key."""
    if not keys:
        return {}
    rows = session.scalars(select(Incident).where(Incident.incident_key.in_(list(keys))))
    return {row.incident_key: row for row in rows}


def find_live(session: Session, *, after_id: int, limit: int) -> list[Incident]:
    """Return incidents that have not ended, with an id above ``after_id``, oldest first."""
    query = select(Incident).where(Incident.state.in_(LIVE), Incident.id > after_id).order_by(Incident.id)
    return list(session.scalars(query.limit(limit)))


_REPORTED = select(Alarm.log_id).where(among(Alarm.log_id), Alarm.reason != AlarmReason.RECOVERED)


def find_reported(session: Session, log_ids: Collection[int]) -> set[int]:
    """Return the runs whose failure has been reported, or is about to be."""
    if not log_ids:
        return set()
    return {row[0] for row in bulk.read_among(session, _REPORTED, list(log_ids))}


def insert_messages(session: Session, rows: Sequence[bulk.Row]) -> None:
    """Insert messages; a step that an incident has already stays as it is."""
    bulk.insert_ignore(session, IncidentMessage, rows)


def messages_of(session: Session, incident_ids: Collection[int]) -> list[IncidentMessage]:
    """Return the messages about incidents, in the order of their writing."""
    query = select(IncidentMessage).where(IncidentMessage.incident_id.in_(list(incident_ids)))
    return list(session.scalars(query.order_by(IncidentMessage.id)))


_BEFORE = bindparam("before_ms", type_=BigInteger)
_SENDABLE = or_(
    and_(IncidentMessage.state == AlarmState.PENDING.value, IncidentMessage.next_ms <= _BEFORE),
    and_(
        IncidentMessage.state == AlarmState.SENDING.value,
        IncidentMessage.lease_until <= _BEFORE,
    ),
)
_DUE = select(IncidentMessage.id).where(_SENDABLE).limit(1)


def has_due_message(*, before_ms: Millis) -> bool:
    """Whether a message is to be sent; opens its own transaction."""
    return bool(single_statement.read(_DUE, {"before_ms": before_ms}))


def take_due_messages(
    session: Session, *, owner: str, before_ms: Millis, lease_until: Millis, limit: int
) -> list[IncidentMessage]:
    """Claim messages that are due, oldest first; one whose node has died is claimed again after its lease."""
    query = (
        select(IncidentMessage)
        .where(_SENDABLE)
        .order_by(IncidentMessage.next_ms, IncidentMessage.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    messages = list(session.scalars(query, {"before_ms": before_ms}))
    for message in messages:
        message.state, message.owner, message.lease_until = AlarmState.SENDING.value, owner, lease_until
        message.attempts += 1
    return messages


class SentMessage(NamedTuple):
    """When a message about an incident of a job was last sent."""

    job_id: int
    #: MessageStep
    step: str
    sent_ms: Millis


def find_sent_since(session: Session, job_ids: Collection[int], *, since_ms: Millis) -> list[SentMessage]:
    """Return the messages of jobs that were sent since, oldest first."""
    query = select(IncidentMessage.job_id, IncidentMessage.step, IncidentMessage.next_ms).where(
        IncidentMessage.job_id.in_(list(job_ids)),
        IncidentMessage.state.in_([AlarmState.SENT.value, AlarmState.PARTLY.value]),
        IncidentMessage.next_ms > since_ms,
    )
    rows = bulk.read_rows(session, query.order_by(IncidentMessage.next_ms))
    return [SentMessage._make(row) for row in rows]


def finish_messages(
    session: Session,
    messages: Sequence[IncidentMessage],
    *,
    state: AlarmState,
    next_ms: Millis,
    outcome: str | None = None,
    counts: bool = True,
) -> None:
    """Store what became of claimed messages; ``counts``: as an attempt."""
    ids, owners = [message.id for message in messages], {message.owner for message in messages}
    is_claimed = (
        IncidentMessage.id.in_(ids),
        IncidentMessage.state == AlarmState.SENDING.value,
        IncidentMessage.owner.in_(owners),
    )
    values: dict[str, Any] = {"state": state.value, "next_ms": next_ms}
    if outcome is not None:
        values["outcome"] = outcome
    if not counts:
        values["attempts"] = IncidentMessage.attempts - 1
    session.flush()
    affected(session, update(IncidentMessage).where(*is_claimed).values(values))
