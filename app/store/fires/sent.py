"""Claimed fires as their sender reads them: whether its claim still holds."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.database.rows import bulk
from app.database.sql.in_list import among
from app.domain.enums import FireState
from app.models.fire import Fire
from app.store.fires.queue import by_id


class SentFire(NamedTuple):
    """A claimed fire as its sender reads it."""

    id: int
    log_id: int | None
    state: str
    owner: str
    epoch: int
    attempt: int

    def belongs_to(self, owner: str, epoch: int) -> bool:
        """Whether this claim still holds the row.

        UNKNOWN: its lease has ended and no other claim followed.
        """
        return self.is_of(owner, epoch) and self.state in (
            FireState.SENDING,
            FireState.ROUTING,
            FireState.UNKNOWN,
        )

    def is_of(self, owner: str, epoch: int) -> bool:
        """Whether this claim is the latest one, whatever the state of the run."""
        return (self.owner, self.epoch) == (owner, epoch)


_SENT = (
    by_id(select(Fire.id, Fire.log_id, Fire.state, Fire.owner, Fire.epoch, Fire.attempt))
    .where(among(Fire.id))
    .order_by(Fire.id)
    .with_for_update()
)


def lock_sent(session: Session, fire_ids: Collection[int]) -> dict[int, SentFire]:
    """Lock the fires that exist; return them by id."""
    rows = bulk.read_among(session, _SENT, sorted(fire_ids))
    return {row[0]: SentFire._make(row) for row in rows}
