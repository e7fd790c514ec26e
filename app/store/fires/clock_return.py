"""Clock return: rows that a clock that was ahead has left in the future, and their return to now."""

from collections.abc import Collection

from sqlalchemy import and_, delete, func, not_, or_, select, update
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import affected
from app.database.rows import bulk
from app.domain.enums import FireState
from app.domain.runs.trigger_keys import ONCE
from app.models.fire import Fire
from app.models.log import JobLog
from app.models.skip import Skip
from app.store.fires import prepared_fires
from app.store.fires.queue import OUTSIDE
from app.store.limits.slots import NO_END

#: DATETIME columns hold local time, in which an hour occurs twice when clocks are set back
LOCAL_TIME_SLACK_MS: Millis = 7_200_000


def find_started(session: Session, *, after_ms: Millis) -> dict[int, Millis]:
    """Return job id -> the latest instant after ``after_ms`` that already has a run."""
    recent = JobLog.trigger_time >= after_ms - LOCAL_TIME_SLACK_MS
    rows = (
        select(JobLog.job_id, func.max(JobLog.fire_time))
        .where(recent, JobLog.fire_time > after_ms, not_(prepared_fires.is_ahead()))
        .group_by(JobLog.job_id)
    )
    return {row[0]: row[1] for row in bulk.read_rows(session, rows)}


def find_skips(session: Session, *, after_ms: Millis) -> list[Skip]:
    """Return the skips with instants after ``after_ms``, earliest first."""
    return list(session.scalars(select(Skip).where(Skip.to_ms > after_ms).order_by(Skip.from_ms, Skip.id)))


def delete_skips(session: Session, skip_ids: Collection[int]) -> int:
    """Delete skips whose instants are still to come."""
    return affected(session, delete(Skip).where(Skip.id.in_(skip_ids))) if skip_ids else 0


def bring_back_open(session: Session, *, now_ms: Millis, soon_ms: Millis, far_ms: Millis) -> int:
    """Bring open fires back to now; return how many changed.

    Checks and leases are changed if later than ``far_ms``, acceptances and immediate runs if later than
    ``soon_ms``, as other nodes may write them with a clock that is slightly ahead.
    """
    is_unknown, is_accepted = Fire.state == FireState.UNKNOWN, Fire.state == FireState.ACCEPTED
    is_claimed = Fire.state.in_([FireState.SENDING, FireState.ROUTING])
    is_immediate = Fire.trigger_type.in_(OUTSIDE)
    # Planned runs keep their instant.
    is_due_at_once = and_(is_immediate, Fire.fire_key.not_like(f"{ONCE}:%"))
    is_ahead = Fire.due_time > soon_ms
    is_waiting = and_(Fire.state == FireState.WAITING, is_due_at_once, is_ahead)
    changes = (
        (and_(or_(is_unknown, is_accepted), Fire.deadline_ms > far_ms), {"deadline_ms": now_ms}),
        (and_(is_accepted, Fire.accepted_ms > soon_ms), {"accepted_ms": now_ms}),
        (
            or_(and_(is_unknown, Fire.lease_until > soon_ms), and_(is_claimed, Fire.lease_until > far_ms)),
            {"lease_until": now_ms},
        ),
        # Its place in the order and the end of its wait stay as far from its due time.
        (
            is_waiting & (Fire.lease_until < NO_END),
            {"lease_until": Fire.lease_until - Fire.due_time + now_ms},
        ),
        (is_waiting, {"deadline_ms": Fire.deadline_ms - Fire.due_time + now_ms}),
        (
            and_(Fire.state.in_([FireState.PENDING, FireState.WAITING]), is_due_at_once, is_ahead),
            {"due_time": now_ms},
        ),
    )
    return sum(affected(session, update(Fire).where(late).values(values)) for late, values in changes)
