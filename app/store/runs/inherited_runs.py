"""Inherited runs: runs of a Java admin, which have no fire here and no result yet."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, and_, exists, or_, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.sql.in_list import WANTED, among
from app.domain.enums import HandleCode, TriggerCode
from app.models.log import JobLog
from app.models.registry import Registration


def find_open(session: Session, *, limit: int) -> list[int]:
    """Return the ids of inherited runs that wait for their result, those with registered addresses last.

    Reads every run without a result, of which a failed sending leaves one.
    """
    query = select(JobLog.id).where(*_open()).order_by(_is_registered(), JobLog.id)
    return list(session.scalars(query.limit(limit)))


def find_waiting(session: Session, log_ids: Sequence[int], *, before_ms: Millis) -> dict[int, bool]:
    """Return those of the runs that still wait: log id -> whether it is lost.

    Lost: triggered before then, or at a time that is unknown, and the address is not registered.
    """
    old = or_(JobLog.trigger_time.is_(None), JobLog.trigger_time <= before_ms)
    query = select(JobLog.id, and_(old, ~_is_registered())).where(among(JobLog.id), *_open())
    return {log_id: bool(is_lost) for log_id, is_lost in session.execute(query, {WANTED: log_ids})}


def _is_registered() -> ColumnElement[bool]:
    return exists().where(Registration.registry_value == JobLog.executor_address)


def _open() -> tuple[ColumnElement[bool], ...]:
    return (
        JobLog.handle_code == HandleCode.NONE,
        JobLog.trigger_code == TriggerCode.ACCEPTED,
        JobLog.trigger_type.is_(None),
    )
