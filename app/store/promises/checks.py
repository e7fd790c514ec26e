"""Statements on `xxl_job_check`: when promises are evaluated."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import bindparam, delete, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database import single_statement
from app.database.engine import affected
from app.database.rows import bulk
from app.models.promise import PromiseCheck


class Check(NamedTuple):
    """A check: when a promise is evaluated."""

    id: int
    job_id: int
    #: of the promise; 0: all that are judged when a run ends
    number: int
    logical_ms: Millis
    until_ms: Millis
    due_ms: Millis
    log_id: int


_COLUMNS = tuple(getattr(PromiseCheck, name) for name in Check._fields)
_DUE = select(PromiseCheck.id).where(PromiseCheck.due_ms <= bindparam("before_ms")).limit(1)


def has_due(*, before_ms: Millis) -> bool:
    """Whether a check is due at this time or before; opens its own transaction."""
    return bool(single_statement.read(_DUE, {"before_ms": before_ms}))


def take_due(session: Session, *, before_ms: Millis, limit: int) -> list[Check]:
    """Lock checks that are due, oldest first; those that another node has locked are left to it."""
    query = (
        select(*_COLUMNS)
        .where(PromiseCheck.due_ms <= before_ms)
        .order_by(PromiseCheck.due_ms, PromiseCheck.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    return [Check._make(row) for row in bulk.read_rows(session, query)]


def insert_checks(session: Session, rows: Sequence[bulk.Row]) -> None:
    """Insert checks; one that is there already stays as it is."""
    bulk.insert_ignore(session, PromiseCheck, rows)


def postpone(session: Session, due_by_id: dict[int, Millis]) -> None:
    """Give checks a later time."""
    bulk.update_many(session, PromiseCheck, [{"id": id_, "due_ms": ms} for id_, ms in due_by_id.items()])


def delete_checks(session: Session, ids: Collection[int]) -> None:
    """Delete checks that have been evaluated."""
    if ids:
        affected(session, delete(PromiseCheck).where(PromiseCheck.id.in_(list(ids))))


def delete_of_runs(session: Session, instants: Collection[tuple[int, Millis]]) -> None:
    """Delete the checks of instants, by job id, whose runs are deleted: nothing shows what became of them."""
    job_ids, times = {job_id for job_id, _instant in instants}, {instant for _job_id, instant in instants}
    conditions = (PromiseCheck.job_id.in_(list(job_ids)), PromiseCheck.logical_ms.in_(list(times)))
    query = select(PromiseCheck.id, PromiseCheck.job_id, PromiseCheck.logical_ms).where(*conditions)
    delete_checks(session, [row[0] for row in bulk.read_rows(session, query) if (row[1], row[2]) in instants])


def delete_planned(session: Session, job_id: int, number: int, *, after_ms: Millis) -> None:
    """Delete the checks of a promise for instants after another one."""
    affected(
        session,
        delete(PromiseCheck).where(
            PromiseCheck.job_id == job_id,
            PromiseCheck.number == number,
            PromiseCheck.logical_ms > after_ms,
        ),
    )
