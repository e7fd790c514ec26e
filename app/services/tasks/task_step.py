"""One turn of a background task: a piece of its work, committed together with its progress."""

import json
from collections.abc import Callable
from functools import partial

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.orm import Session

from app.clock import SECOND_MS, Clock, Millis
from app.database.engine import read_scope, transact
from app.domain.access.permissions import Actor
from app.domain.packed_text import pack
from app.domain.tasks import EMPTIED, Step, TaskKind, TaskState
from app.domain.text.texts import N_, Text
from app.models.task import Task
from app.services.accounts.actors import actor_of
from app.services.auditing import audit
from app.store.accounts import users
from app.store.nodes import tasks

#: another node takes a task over when its owner has done no piece for so long
LEASE_MS: Millis = 10 * SECOND_MS
#: characters of a name that its column holds
NAME_MAX = 255
#: reason of a piece whose data the database refuses, see ``is_of_data``
DATABASE_REFUSED = N_("The database rejected the change; try again")

Work = Callable[[Session, Task, Actor], Step]


class TaskLost(Exception):
    """This node may not go on with the task: it was cancelled or taken over."""


class TaskRefused(Exception):
    """The task cannot go on, for a reason its user can read."""

    def __init__(self, reason: Text) -> None:
        super().__init__(reason)
        self.reason = reason


class Turn:
    """The present piece of a claimed task; used by one thread."""

    def __init__(self, task: Task, *, clock: Clock) -> None:
        #: as of the last commit
        self.task = task
        self.clock = clock

    def actor(self) -> Actor:
        """Return the user of the task with their present rights; gone or disabled: raises TaskRefused."""
        with read_scope() as session:
            return _actor_of(session, self.task)

    def commit(self, work: Work) -> None:
        """Do a piece and store its progress in one transaction, repeated where it loses a deadlock.

        Raises what ``work`` raises, TaskLost or TaskRefused; nothing is stored then.
        """
        self.task = transact(partial(self._write, work))

    def fail(self, reason: str) -> None:
        """End the task; what was committed before stays."""
        self.task = transact(lambda session: self._advance(session, self._renew(session), Step(error=reason)))

    def _write(self, work: Work, session: Session) -> Task:
        task = self._renew(session)
        return self._advance(session, task, work(session, task, _actor_of(session, task)))

    def _renew(self, session: Session) -> Task:
        task = tasks.renew_lease(session, self.task, now_ms=self.clock(), lease_ms=LEASE_MS)
        if task is None:
            raise TaskLost
        return task

    def _advance(self, session: Session, task: Task, step: Step) -> Task:
        tasks.insert_lines(
            session,
            [
                {
                    "task_id": task.id,
                    "number": line.number,
                    "object_id": line.object_id,
                    "name": line.name[:NAME_MAX],
                    "outcome": line.outcome,
                    "detail": None if line.detail is None else pack_value(line.detail),
                }
                for line in step.lines
            ],
        )
        task.done += step.advance
        if step.is_progress:
            task.claims = 0
        task.total = max(task.total, task.done)
        if step.is_done or step.error:
            task.state = TaskState.FAILED.value if step.error else TaskState.DONE.value
            task.error = pack_value(step.error) if step.error else None
            task.parameters = "{}" if task.kind in EMPTIED else task.parameters
            task.finished_ms, task.lease_until = self.clock(), 0
            record_end(session, task, now_ms=task.finished_ms)
        session.flush()
        return task


def is_of_data(error: DBAPIError) -> bool:
    """Whether the database refused the data: the same statement would fail again.

    Otherwise the database is away or busy, which passes.
    """
    return isinstance(error, IntegrityError | DataError | ProgrammingError) and not (
        error.connection_invalidated
    )


def pack_value(value: object) -> str:
    """Return a value as JSON whose texts can still be translated."""
    return json.dumps(pack(value), ensure_ascii=False, separators=(",", ":"))


def _actor_of(session: Session, task: Task) -> Actor:
    user = users.find_user(session, task.user_id)
    if user is None or user.disabled:
        raise TaskRefused(
            N_("The user %(user)s was deleted or disabled: the task has stopped", user=task.username)
        )
    return actor_of(session, user, address=task.address)


def record_end(session: Session, task: Task, *, now_ms: Millis) -> None:
    """Record the rows that a clearing of logs has deleted, however it ended.

    Every job of the other kinds is audited by itself.
    """
    if task.kind != TaskKind.CLEAR_LOGS or not task.done:
        return
    parameters = json.loads(task.parameters)
    changes = {
        "job_group": parameters["group_id"],
        "job_id": parameters["job_id"],
        "kind": parameters["kind_name"],
        "rows": task.done,
    }
    user = Actor(user_id=task.user_id, username=task.username, is_admin=False, address=task.address)
    target = ("job", parameters["job_id"])
    audit.record(session, "log.clear", actor=user, now_ms=now_ms, target=target, changes=changes)
