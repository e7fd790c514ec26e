"""Clearing run logs as a background task: rows are fixed at the submit, each piece deletes a batch."""

import json
from dataclasses import asdict, dataclass, replace

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor
from app.domain.tasks import Step, TaskKind
from app.models.task import Task
from app.services.runs.logs import ClearType, clearing_of
from app.services.tasks.task_step import Turn
from app.services.tasks.tasks import TaskDraft
from app.store.runs import clearing as log_clearing
from app.store.runs.clearing import Clearing


@dataclass(frozen=True, slots=True)
class ClearRequest:
    """Which runs to clear: of a group and a job (0: any), by kind; none beyond an id."""

    group_id: int
    job_id: int
    kind: int
    #: None: the newest there is
    up_to_id: int | None = None


def fix_rows(session: Session, wanted: ClearRequest, *, actor: Actor, now_ms: Millis) -> tuple[Clearing, int]:
    """Return the rows to delete as bounds that later runs do not change, and their number.

    Raises InvalidInput, or NotFound and PermissionDenied where the actor may not clear there.
    """
    clearing = clearing_of(session, wanted.group_id, wanted.job_id, wanted.kind, actor=actor, now_ms=now_ms)
    clearing = log_clearing.fixed(session, replace(clearing, up_to_id=wanted.up_to_id))
    return clearing, log_clearing.count_to_clear(session, clearing)


def draft_task(clearing: Clearing, wanted: ClearRequest, total: int, *, form_key: str) -> TaskDraft:
    """Return the task that deletes these rows."""
    parameters = {"kind": wanted.kind, "kind_name": ClearType(wanted.kind).name, **asdict(clearing)}
    return TaskDraft(TaskKind.CLEAR_LOGS, parameters, total, form_key, asdict(wanted))


def clear_next(turn: Turn) -> None:
    """Delete the next batch of rows; the audit entry with their number is written when the task ends."""
    turn.commit(lambda session, task, actor: _clear_batch(session, task, actor, turn.clock()))


def _clear_batch(session: Session, task: Task, actor: Actor, now_ms: Millis) -> Step:
    bounds = json.loads(task.parameters)
    kind = bounds.pop("kind")
    del bounds["kind_name"]
    clearing = Clearing(**bounds)
    allowed = clearing_of(session, clearing.group_id, clearing.job_id, kind, actor=actor, now_ms=now_ms)
    deleted, finished = log_clearing.clear_batch(session, replace(clearing, group_id=allowed.group_id))
    return Step(advance=deleted, finished=finished)
