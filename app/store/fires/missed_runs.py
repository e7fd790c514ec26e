"""Missed runs of jobs that run all of them: each waits for the end of the one before it."""

from collections.abc import Collection
from typing import Final

from sqlalchemy import and_, bindparam, exists, func, or_, select, tuple_
from sqlalchemy.orm import Session, aliased

from app.database import single_statement
from app.database.rows import bulk
from app.database.sql.in_list import among
from app.domain.enums import FireState, TriggerType
from app.models.fire import Fire
from app.store.fires import queue as fires

#: what `waits_for` says of a missed run that waits for the one before it
MISSED: Final = "missed"
#: heads that are looked for at once; the next look finds the others
HEADS_MAX: Final = 10_000

_IS_HELD = (Fire.state == FireState.GATED, Fire.waits_for == MISSED)
_Other = aliased(Fire)
_is_held_too = and_(_Other.state == FireState.GATED, _Other.waits_for == MISSED)
#: an unresolved run that has ended holds its slots, not the next run
_is_out = and_(_Other.trigger_type == TriggerType.MISFIRE, _Other.state != FireState.HELD, ~_is_held_too)
_is_earlier = and_(_is_held_too, _Other.due_time < Fire.due_time)
#: The shards of a broadcast that are due at the same time go together. One statement reads both conditions:
#: of two that see different states, the second could miss a run that another scheduler releases between them.
_STILL_HEADS = select(Fire.id).where(
    among(Fire.id), *_IS_HELD, ~exists().where(_Other.job_id == Fire.job_id, or_(_is_out, _is_earlier))
)
#: The same of all: it reads each of many fires once, not once for each other.
_EARLIEST = select(Fire.job_id, func.min(Fire.due_time)).where(*_IS_HELD).group_by(Fire.job_id)
_FIRST_HEADS = (
    select(Fire.id)
    .where(*_IS_HELD, tuple_(Fire.job_id, Fire.due_time).in_(_EARLIEST))
    .where(~exists().where(_Other.job_id == Fire.job_id, _is_out))
    .order_by(Fire.id)
    .limit(bindparam("most"))
)
_ANY_HELD = select(Fire.id).where(*_IS_HELD).limit(1)
_LOCKED = fires.by_id(select(Fire.id)).where(among(Fire.id)).order_by(Fire.id).with_for_update()


def has_held() -> bool:
    """Whether any run waits for the missed run before it; opens its own transaction."""
    return bool(single_statement.read(_ANY_HELD, {}))


def find_heads() -> list[int]:
    """Return the fires that are next of their jobs, of which no missed run is on its way.

    Opens its own transaction.
    """
    return [row[0] for row in single_statement.read(_FIRST_HEADS, {"most": HEADS_MAX})]


def lock_heads(session: Session, fire_ids: Collection[int]) -> list[int]:
    """Lock these fires; return those that are still next of their jobs."""
    ids = [row[0] for row in bulk.read_among(session, _LOCKED, list(fire_ids))]
    return [row[0] for row in bulk.read_among(session, _STILL_HEADS, ids)] if ids else []
