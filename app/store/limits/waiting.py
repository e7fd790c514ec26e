"""Fires that wait for a limit, as a claim reads and writes them."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.database.sql.in_list import among
from app.domain.enums import FireState
from app.models.fire import Fire


class WaitingColumns(NamedTuple):
    """What a waiting fire has besides those of every due one."""

    #: place in the order
    place: Millis
    limit_key: str
    waits_for: str


_COLUMNS = select(Fire.id, Fire.state, Fire.deadline_ms, Fire.limit_key, Fire.waits_for).where(among(Fire.id))


def find_waiting(session: Session, fire_ids: Collection[int]) -> dict[int, WaitingColumns]:
    """Return those of the fires that wait, by id."""
    rows = bulk.read_among(session, _COLUMNS, sorted(fire_ids)) if fire_ids else ()
    return {row[0]: WaitingColumns(*row[2:]) for row in rows if row[1] == FireState.WAITING}
