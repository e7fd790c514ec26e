"""Background tasks of users: submit, list, watch and cancel them.

The caller of ``submit_task`` has checked the rights; they are checked again for each piece of the work.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from threading import Event

from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from app.clock import Clock, Millis
from app.database.engine import session_scope
from app.database.faults import Fault, fault_of
from app.domain.access.permissions import Actor
from app.domain.enums import NodeKind
from app.domain.packed_text import unpack
from app.domain.tasks import ENDED, ResultLine, TaskKind
from app.domain.text.texts import N_
from app.errors import Conflict, NotFound, NotVisible
from app.models.task import Task
from app.services.auditing import audit
from app.services.tasks.task_step import record_end
from app.store.base.paging import Page
from app.store.nodes import nodes, tasks

MISSING = N_("Task id is invalid")
#: longest wait of a cancel for the end of the piece in progress, and the pause between attempts
CANCEL_WAIT_S, CANCEL_PAUSE_S = 2.0, 0.003


@dataclass(frozen=True, slots=True)
class TaskDraft:
    """A task as it is submitted."""

    kind: TaskKind
    parameters: Mapping[str, object]
    #: number of objects to process
    total: int
    #: key of the form: with the same user, kind and entered values it makes the same task
    form_key: str
    #: values that the user entered, where ``parameters`` are computed from them
    form_values: Mapping[str, object] | None = None
    #: action of a bulk change
    action: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """A task with what its page shows."""

    task: Task
    #: outcome -> objects
    outcomes: Mapping[str, int]
    #: only of a task that has ended
    lines: list[ResultLine]
    #: reason of a failure; empty: none
    error: str
    #: whether a node is alive that could work on it
    has_worker: bool

    @property
    def is_going(self) -> bool:
        """Whether more will be done."""
        return self.task.state not in ENDED


def submit_task(session: Session, draft: TaskDraft, *, actor: Actor, now_ms: Millis) -> tuple[int, bool]:
    """Store a task for the monitors; return its id, and False where the same form was sent before."""
    form_values = draft.parameters if draft.form_values is None else draft.form_values
    row = {
        "idempotency_key": _key(draft.kind, draft.form_key, form_values, actor),
        "kind": draft.kind.value,
        "action": draft.action,
        "parameters": _json(draft.parameters),
        "user_id": actor.user_id,
        "username": actor.username[:64],
        "address": actor.address[:64],
        "total": draft.total,
        "created_ms": now_ms,
        "updated_ms": now_ms,
    }
    task, is_new = tasks.insert_task(session, row)
    return task.id, is_new


def find_submitted(
    session: Session, kind: TaskKind, form_key: str, form_values: Mapping[str, object], *, actor: Actor
) -> int | None:
    """Return the id of the task that the same form has made already.

    Looked up before any check, because the task may have changed what is checked.
    """
    return tasks.find_submitted(session, _key(kind, form_key, form_values, actor))


def get_task(session: Session, task_id: int, *, actor: Actor) -> Task:
    """Return a task of this user, an administrator gets those of all; raises NotFound."""
    task = tasks.find_task(session, task_id)
    if task is None:
        raise NotFound(MISSING)
    if not (actor.is_admin or task.user_id == actor.user_id):
        raise NotVisible(MISSING, target=("task", task_id))
    return task


def get_progress(session: Session, task_id: int, *, actor: Actor, now_ms: Millis) -> Progress:
    """Return the progress of a task, with its results where it has ended."""
    task = get_task(session, task_id, actor=actor)
    has_ended = task.state in ENDED
    lines = [
        ResultLine(
            line.number,
            line.outcome,
            line.object_id,
            line.name,
            unpack(json.loads(line.detail)) if line.detail else None,
        )
        for line in (tasks.find_lines(session, task_id) if has_ended else [])
    ]
    return Progress(
        task,
        tasks.count_outcomes(session, task_id),
        lines,
        str_of(task.error),
        has_worker=has_ended or nodes.count_live(session, NodeKind.WORKERS, now_ms=now_ms) > 0,
    )


def list_tasks(session: Session, *, actor: Actor, start: int, length: int) -> Page[Task]:
    """Return a page of the user's own tasks, of all users for an administrator; newest first."""
    user_id = None if actor.is_admin else actor.user_id
    return tasks.list_tasks(session, user_id=user_id, start=start, length=length)


def cancel_task(task_id: int, *, actor: Actor, clock: Clock) -> bool:
    """Stop a task after the piece in progress; what is done stays. False where it has ended already.

    Raises Conflict where the piece takes too long.
    """
    until = time.monotonic() + CANCEL_WAIT_S
    while True:
        try:
            with session_scope() as session:
                return _cancel(session, task_id, actor=actor, now_ms=clock())
        except DBAPIError as exc:
            if fault_of(exc) is not Fault.BUSY:
                raise
            if time.monotonic() >= until:
                raise Conflict(N_("The task is busy; try again")) from exc
        Event().wait(CANCEL_PAUSE_S)


def _cancel(session: Session, task_id: int, *, actor: Actor, now_ms: Millis) -> bool:
    get_task(session, task_id, actor=actor)
    task = tasks.cancel_task(session, task_id, now_ms=now_ms)
    if task is None:
        return False
    changes = {"kind": task.kind, "done": task.done, "total": task.total}
    audit.record(
        session, "task.cancel", actor=actor, now_ms=now_ms, target=("task", task.id), changes=changes
    )
    record_end(session, task, now_ms=now_ms)
    return True


def str_of(error: str | None) -> str:
    """Return the text of a stored reason, to be translated; empty: none."""
    text = unpack(json.loads(error)) if error else ""
    return text if isinstance(text, str) else ""


def _key(kind: TaskKind, form_key: str, form_values: Mapping[str, object], actor: Actor) -> str:
    text = f"{actor.user_id}:{kind}:{form_key}:{_json(form_values)}"
    return sha256(text.encode("utf-8", "replace")).hexdigest()


def _json(values: Mapping[str, object]) -> str:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
