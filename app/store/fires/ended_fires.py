"""Fires of runs that end: deleted, or kept while an unresolved run holds its slots."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk, deletion
from app.database.sql import direct
from app.database.sql.in_list import WANTED, among
from app.domain.enums import FireState
from app.models.fire import Fire


class EndedFire(NamedTuple):
    """A fire as the completion of its run reads it."""

    log_id: int
    #: when the run was sent last
    sent_ms: Millis
    #: null: the job's
    executor_param: str | None
    #: when it got its slots; 0: it had none
    admitted_ms: Millis
    limit_key: str
    #: TriggerType
    trigger_type: str


def end_of_logs(session: Session, log_ids: Collection[int]) -> dict[int, EndedFire]:
    """Delete the fires of runs that end; return them by log id.

    The caller holds the locks of the log rows.
    """
    rows = deletion.returning(session, Fire, "log_id", list(log_ids), columns=EndedFire._fields)
    return {row[0]: EndedFire._make(row[: len(EndedFire._fields)]) for row in rows}


_WITH_SLOTS = select(*(getattr(Fire, name) for name in EndedFire._fields)).where(
    among(Fire.log_id), Fire.admitted_ms > 0
)
_HELD = (
    update(Fire)
    .where(among(Fire.log_id), Fire.admitted_ms > 0)
    .values(state=FireState.HELD.value, owner="", lease_until=0, deadline_ms=0)
)


def hold_slots(session: Session, log_ids: Collection[int]) -> dict[int, EndedFire]:
    """Keep the fires of unresolved runs that have slots; return them by log id.

    The caller holds the locks of the log rows.
    """
    fires = {row[0]: EndedFire._make(row) for row in bulk.read_among(session, _WITH_SLOTS, sorted(log_ids))}
    if fires:
        direct.change(session, _HELD, {WANTED: sorted(fires)})
    return fires
