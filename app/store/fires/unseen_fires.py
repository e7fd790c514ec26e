"""PENDING fires that no time ring holds."""

from sqlalchemy import and_, bindparam, or_, select

from app.clock import Millis
from app.database import single_statement
from app.domain.enums import FireState
from app.domain.schedules.planning import DueFire
from app.models.fire import Fire

_UNSEEN = (
    select(Fire.id, Fire.job_id, Fire.due_time)
    .where(
        Fire.state == FireState.PENDING,
        Fire.id > bindparam("after_id"),
        or_(
            and_(Fire.owner.in_(["", bindparam("owner")]), Fire.due_time <= bindparam("now_ms")),
            Fire.due_time <= bindparam("late_ms"),
        ),
    )
    .order_by(Fire.id)
    .limit(bindparam("most"))
)


def find_unseen(*, owner: str, after_id: int, now_ms: Millis, orphan_ms: Millis, limit: int) -> list[DueFire]:
    """Return PENDING fires beyond ``after_id`` that no time ring holds; opens its own transaction.

    These are due fires without an owner, those of this node from before a restart, and those of other nodes
    that are late by ``orphan_ms``: the owner is a hint, not a right.
    """
    parameters = {"after_id": after_id, "owner": owner, "now_ms": now_ms, "late_ms": now_ms - orphan_ms}
    return [DueFire._make(row) for row in single_statement.read(_UNSEEN, parameters | {"most": limit})]
