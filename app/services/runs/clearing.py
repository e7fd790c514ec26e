"""Clearing run logs as a background task: bounds are frozen at the submit, each piece deletes a batch."""

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
    #: None: up to the newest run
    up_to_id: int | None = None


def freeze_bounds(
    session: Session, request: ClearRequest, *, actor: Actor, now_ms: Millis
) -> tuple[Clearing, int]:
    """Return bounds of the rows to delete, which later runs do not change, and the number of rows.

    Raises InvalidInput, or NotFound and PermissionDenied where the actor may not clear there.
    """
    bounds = clearing_of(session, request.group_id, request.job_id, request.kind, actor=actor, now_ms=now_ms)
    bounds = log_clearing.fix_bounds(session, replace(bounds, up_to_id=request.up_to_id))
    return bounds, log_clearing.count_to_clear(session, bounds)


def draft_task(bounds: Clearing, request: ClearRequest, total: int, *, form_key: str) -> TaskDraft:
    """Return the task that deletes these rows."""
    parameters = {"kind": request.kind, "kind_name": ClearType(request.kind).name, **asdict(bounds)}
    return TaskDraft(TaskKind.CLEAR_LOGS, parameters, total, form_key, asdict(request))


def clear_next(turn: Turn) -> None:
    """Delete the next batch of rows; the audit entry with their number is written when the task ends."""
    turn.commit(lambda session, task, actor: _clear_batch(session, task, actor, turn.clock()))


def _clear_batch(session: Session, task: Task, actor: Actor, now_ms: Millis) -> Step:
    bounds = json.loads(task.parameters)
    kind = bounds.pop("kind")
    del bounds["kind_name"]
    clearing = Clearing(**bounds)
    scope = clearing_of(session, clearing.group_id, clearing.job_id, kind, actor=actor, now_ms=now_ms)
    count, is_done = log_clearing.clear_batch(session, replace(clearing, group_id=scope.group_id))
    return Step(advance=count, is_done=is_done)
