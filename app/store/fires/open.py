"""Open fires: statements on `xxl_job_fire` for checks of runs that were sent and have no known outcome."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import bindparam, or_, select, update
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database import single_statement
from app.database.engine import affected
from app.domain.enums import FireState
from app.domain.executors.addresses import spellings
from app.models.fire import Fire
from app.store.fires.queue import by_id

#: runs whose check is brought forward at once: ten rounds of the resolver; the others are checked when due
SOON_MAX = 2_000


class OpenFire(NamedTuple):
    """A sent run without a known outcome, as the resolver reads it."""

    id: int
    job_id: int
    log_id: int
    state: str
    address: str
    attempt: int
    epoch: int
    lease_until: Millis
    accepted_ms: Millis
    probe_count: int
    boot_id: str
    owner: str
    due_time: Millis
    trigger_type: str
    sent_ms: Millis


_CHECKED_BY = tuple(getattr(Fire, name) for name in OpenFire._fields)
_LEASED = select(Fire.id).where(Fire.state.in_([FireState.SENDING, FireState.ROUTING])).limit(1)


def has_leased() -> bool:
    """Whether a run is being sent, by any node; opens its own transaction."""
    return bool(single_statement.read(_LEASED, {}))


_OPEN = (
    select(Fire.id)
    .where(Fire.state.in_([FireState.UNKNOWN, FireState.ACCEPTED]), Fire.deadline_ms <= bindparam("now_ms"))
    .limit(1)
)


def has_open(*, now_ms: Millis) -> bool:
    """Whether a check of a sent run is due; opens its own transaction."""
    return bool(single_statement.read(_OPEN, {"now_ms": now_ms}))


def take_open(session: Session, *, now_ms: Millis, next_check_ms: Millis, limit: int) -> list[OpenFire]:
    """Return UNKNOWN fires, then ACCEPTED ones, whose check is due, the longest due first.

    UNKNOWN ones leave a quarter to the others. Postpones their check, so that no other resolver takes the
    same fires.
    """
    due_fires: list[OpenFire] = []
    for state, most in ((FireState.UNKNOWN, limit - limit // 4), (FireState.ACCEPTED, limit)):
        due = select(*_CHECKED_BY).where(
            Fire.state == state,
            Fire.deadline_ms <= now_ms,
            Fire.log_id.is_not(None),
            Fire.address.is_not(None),
        )
        first = due.order_by(Fire.deadline_ms, Fire.id).limit(most - len(due_fires))
        due_fires += [OpenFire(*row) for row in session.execute(first.with_for_update(skip_locked=True))]
    if due_fires:
        affected(
            session,
            update(Fire)
            .where(Fire.id.in_([fire.id for fire in due_fires]))
            .values(deadline_ms=next_check_ms),
        )
    return due_fires


def check_soon(session: Session, addresses: Collection[str], *, now_ms: Millis, boot_id: str = "") -> int:
    """Bring forward the first check of accepted runs at addresses that refuse connections or have restarted.

    Return how many: at most SOON_MAX, the oldest first. Skips runs accepted since the restart (``boot_id``),
    runs checked before, and rows locked by others, so the caller may hold other locks.
    """
    conditions = [
        Fire.state == FireState.ACCEPTED,
        Fire.address.in_(spellings(addresses)),
        Fire.deadline_ms > now_ms,
        Fire.probe_count == 0,
    ]
    if boot_id:
        conditions.append(Fire.boot_id != boot_id)
    # The ids are read first, because MySQL and MariaDB would lock all rows that they sort.
    oldest = list(session.scalars(select(Fire.id).where(*conditions).order_by(Fire.id).limit(SOON_MAX)))
    rows = by_id(select(Fire.id)).where(Fire.id.in_(oldest), *conditions).order_by(Fire.id)
    ids = list(session.scalars(rows.with_for_update(skip_locked=True))) if oldest else []
    return affected(session, update(Fire).where(Fire.id.in_(ids)).values(deadline_ms=now_ms)) if ids else 0


def lock_open(session: Session, fire_ids: Collection[int]) -> dict[int, tuple[str, int, Millis]]:
    """Lock the fires that still exist; return id -> (state, epoch, end of the lease).

    The lease distinguishes two UNKNOWN periods of a fire: its sender may have renewed it, sent again and lost
    the outcome.
    """
    columns = by_id(select(Fire.id, Fire.state, Fire.epoch, Fire.lease_until))
    rows = columns.where(Fire.id.in_(sorted(fire_ids))).order_by(Fire.id).with_for_update()
    return {row.id: (row.state, row.epoch, row.lease_until) for row in session.execute(rows)}


def expire_leases(session: Session, *, now_ms: Millis, dead_owners: Collection[str], limit: int) -> int:
    """Expire the leases of fires whose sender is dead or has not reported.

    SENDING becomes UNKNOWN; ROUTING, of which no byte was sent, becomes PENDING again.
    """
    is_expired = (
        or_(Fire.lease_until < now_ms, Fire.owner.in_(dead_owners))
        if dead_owners
        else Fire.lease_until < now_ms
    )
    count = 0
    for state, values in (
        (
            FireState.SENDING,
            {
                "state": FireState.UNKNOWN.value,
                "deadline_ms": now_ms,
                "lease_until": now_ms,
                "probe_count": 0,
            },
        ),
        (
            FireState.ROUTING,
            {"state": FireState.PENDING.value, "owner": "", "lease_until": 0, "attempt": Fire.attempt - 1},
        ),
    ):
        rows = select(Fire.id).where(Fire.state == state, is_expired).order_by(Fire.id).limit(limit)
        ids = list(session.scalars(rows.with_for_update(skip_locked=True)))
        if ids:
            count += affected(session, update(Fire).where(Fire.id.in_(ids)).values(values))
    return count
