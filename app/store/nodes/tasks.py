"""Statements on `xxl_job_task` and `xxl_job_task_line`: background tasks, leases and results."""

from collections.abc import Collection, Sequence

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Select,
    and_,
    bindparam,
    delete,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session, defer

from app.clock import Millis
from app.database import single_statement
from app.database.engine import affected
from app.database.rows import bulk
from app.domain.tasks import EMPTIED, ENDED, UNDONE, TaskState
from app.models.task import Task, TaskLine
from app.store.base.paging import Page, fetch_page


def insert_task(session: Session, row: bulk.Row) -> tuple[Task, bool]:
    """Store a task unless there is one with its idempotency key; return it, and whether it is new.

    One that has failed or was cancelled gives its key to the new task.
    """
    same = select(Task).where(Task.idempotency_key == row["idempotency_key"])
    earlier = session.scalar(same)
    if earlier is not None and earlier.state not in UNDONE:
        return earlier, False
    if earlier is not None:
        statement = update(Task).where(Task.id == earlier.id).values(idempotency_key=f"undone:{earlier.id}")
        affected(session, statement)
        session.expire(earlier)
    bulk.insert_ignore(session, Task, [row])  # Another request may be storing the same task.
    return session.scalars(same).one(), True


def find_submitted(session: Session, idempotency_key: str) -> int | None:
    """Return the id of the task that a form has made; None: none, or one that it may make anew."""
    same = select(Task.id).where(Task.idempotency_key == idempotency_key, Task.state.not_in(UNDONE))
    return session.scalar(same)


def find_task(session: Session, task_id: int) -> Task | None:
    """Return a task or None."""
    return session.get(Task, task_id)


def list_tasks(session: Session, *, user_id: int | None, start: int, length: int) -> Page[Task]:
    """Return a page of the tasks of a user (None: of all), newest first."""
    query = select(Task).order_by(Task.id.desc()).options(defer(Task.parameters))
    if user_id is not None:
        query = query.where(Task.user_id == user_id)
    return fetch_page(session, query, start=start, length=length)


def has_free(*, now_ms: Millis) -> bool:
    """Whether there is a task that no live node works on; opens its own transaction."""
    return bool(single_statement.read(_ANY_FREE, {"now_ms": now_ms}))


def find_claimable(
    session: Session,
    *,
    now_ms: Millis,
    kinds: Collection[str],
    but_of: Collection[int] = (),
    but: Collection[int] = (),
) -> int | None:
    """Return the id of the oldest task of these kinds that no live node works on.

    Leaves out the tasks of the users ``but_of`` and the tasks ``but``.
    """
    conditions = (Task.kind.in_(kinds), Task.user_id.not_in(but_of), Task.id.not_in(but))
    return session.scalar(select(Task.id).where(_is_free(now_ms), *conditions).order_by(Task.id).limit(1))


def claim_task(
    session: Session, task_id: int, *, owner: str, now_ms: Millis, lease_ms: Millis
) -> Task | None:
    """Give a free task to a node; None where another node was first, or the task has ended.

    Never waits for a node that is working on it.
    """
    if not _lock_free(session, [task_id], _is_free(now_ms)):
        return None
    values = {
        "state": TaskState.RUNNING.value,
        "owner": owner,
        "epoch": Task.epoch + 1,
        "claims": Task.claims + 1,
        "lease_until": now_ms + lease_ms,
        "started_ms": func.coalesce(func.nullif(Task.started_ms, 0), now_ms),
    }
    affected(session, update(Task).where(Task.id == task_id).values(values))
    return _reread(session, task_id)


def renew_lease(session: Session, task: Task, *, now_ms: Millis, lease_ms: Millis) -> Task | None:
    """Lock a claimed task for a piece of its work and renew its lease; None where its owner has lost it.

    Lost means cancelled, taken over, or moved on by a commit whose answer did not arrive. There is no
    take-over and no cancel before the end of the transaction.
    """
    same = (
        Task.id == task.id,
        Task.state == TaskState.RUNNING,
        Task.owner == task.owner,
        Task.epoch == task.epoch,
        Task.done == task.done,
    )
    values = {"lease_until": now_ms + lease_ms, "updated_ms": now_ms}
    return _reread(session, task.id) if affected(session, update(Task).where(*same).values(values)) else None


def end_leases(session: Session, owner: str) -> int:
    """End the leases of a node that has just started: it holds none. Returns how many there were."""
    is_leased = and_(Task.state == TaskState.RUNNING, Task.owner == owner, Task.lease_until > 0)
    ids = _lock_free(session, list(session.scalars(select(Task.id).where(is_leased))), is_leased)
    return affected(session, update(Task).where(Task.id.in_(ids)).values(lease_until=0)) if ids else 0


def cancel_task(session: Session, task_id: int, *, now_ms: Millis) -> Task | None:
    """End a task between two pieces and return it; None where it has ended already.

    Raises the database's error at once where a piece is in progress; SQLite waits for it first.
    """
    going = Task.state.in_((TaskState.PENDING, TaskState.RUNNING))
    query = _by_id([task_id], going).with_for_update(nowait=True)
    if session.scalar(query) is None:
        return None
    values = {"state": TaskState.CANCELLED.value, "finished_ms": now_ms, "lease_until": 0}
    affected(session, update(Task).where(Task.id == task_id).values(values))
    affected(session, update(Task).where(Task.id == task_id, Task.kind.in_(EMPTIED)).values(parameters="{}"))
    return _reread(session, task_id)


def insert_lines(session: Session, rows: Sequence[bulk.Row]) -> None:
    """Store result lines."""
    bulk.insert_many(session, TaskLine, rows)


def find_lines(session: Session, task_id: int) -> list[TaskLine]:
    """Return the result lines of a task, in order."""
    query = select(TaskLine).where(TaskLine.task_id == task_id)
    return list(session.scalars(query.order_by(TaskLine.number)))


def count_outcomes(session: Session, task_id: int) -> dict[str, int]:
    """Return outcome -> number of result lines."""
    query = select(TaskLine.outcome, func.count()).where(TaskLine.task_id == task_id)
    return {row[0]: row[1] for row in session.execute(query.group_by(TaskLine.outcome))}


def delete_ended(session: Session, *, before_ms: Millis, limit: int) -> int:
    """Delete tasks that ended before an instant, with their lines; return how many tasks."""
    old = select(Task.id).where(Task.finished_ms < before_ms, Task.state.in_(ENDED))
    ids = list(session.scalars(old.order_by(Task.finished_ms).limit(limit)))
    if ids:
        affected(session, delete(TaskLine).where(TaskLine.task_id.in_(ids)))
        affected(session, delete(Task).where(Task.id.in_(ids)))
    return len(ids)


def _is_free(now_ms: Millis | BindParameter[int]) -> ColumnElement[bool]:
    is_expired = and_(Task.state == TaskState.RUNNING, Task.lease_until < now_ms)
    return or_(Task.state == TaskState.PENDING, is_expired)


def _lock_free(session: Session, task_ids: list[int], condition: ColumnElement[bool]) -> list[int]:
    """Lock and return the tasks that meet the condition, except those locked by others."""
    return list(session.scalars(_by_id(task_ids, condition).with_for_update(skip_locked=True)))


def _by_id(task_ids: list[int], condition: ColumnElement[bool]) -> "Select[tuple[int]]":
    """Return a read by id; MySQL and MariaDB could otherwise lock rows of other tasks in an index."""
    rows = select(Task.id).with_hint(Task, "FORCE INDEX (PRIMARY)", "mysql")
    return rows.where(Task.id.in_(task_ids), condition).order_by(Task.id)


def _reread(session: Session, task_id: int) -> Task | None:
    return session.get(Task, task_id, populate_existing=True)


_ANY_FREE = select(Task.id).where(_is_free(bindparam("now_ms"))).limit(1)
