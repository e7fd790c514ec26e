"""Inherited runs: sent by a Java admin, so without a fire here, and still without a result."""

from sqlalchemy import ColumnElement, exists, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.enums import HandleCode, TriggerCode
from app.models.log import JobLog
from app.models.registry import Registration
from app.store.planner_hints import unindexed_but_on_mysql


def has_open(session: Session) -> bool:
    """Whether any inherited run waits for its result."""
    return session.scalar(select(JobLog.id).where(*_open()).limit(1)) is not None


def find_lost(session: Session, *, before_ms: Millis, limit: int) -> list[int]:
    """Return the ids of inherited runs, triggered before then, whose addresses are not registered."""
    registered = exists().where(Registration.registry_value == JobLog.executor_address)
    old = unindexed_but_on_mysql(JobLog.trigger_time) <= before_ms
    return list(session.scalars(select(JobLog.id).where(*_open(), old, ~registered).limit(limit)))


def _open() -> tuple[ColumnElement[bool], ...]:
    """Match runs under way that are not ours; they are few, and found through the index on their result."""
    return (
        JobLog.handle_code == HandleCode.NONE,
        JobLog.trigger_code == TriggerCode.ACCEPTED,
        JobLog.trigger_type.is_(None),
    )
