"""Bulk changes: one action on several jobs, as a background task.

Each job is a piece of its own: a refusal leaves the others alone.
"""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from app.clock import Clock, Millis
from app.domain.access.permissions import Actor, Right
from app.domain.runs.logical_times import second_of
from app.domain.tasks import ResultLine, Step, TaskKind
from app.domain.text.texts import N_
from app.errors import InvalidInput, XxlJobError
from app.models.task import Task
from app.services.jobs import jobs
from app.services.tasks.task_step import DATABASE_REFUSED, Turn, is_of_data
from app.services.tasks.tasks import TaskDraft
from app.store.jobs import listing as job_lists
from app.store.jobs import removal
from app.store.jobs.filtering import JobFilter

logger = logging.getLogger(__name__)

#: most jobs that one request names: a whole page of the list
JOBS_MAX = 100
#: most jobs that a filter may match if all of them are to be changed
MATCHING_MAX = 2_000


class BulkAction(StrEnum):
    """Action on several jobs."""

    START = "start"
    STOP = "stop"
    RUN = "run"
    MOVE = "move"
    TAG = "tag"
    UNTAG = "untag"
    REMOVE = "delete"


class BulkOutcome(StrEnum):
    """Outcome for one job."""

    DONE = "done"
    REFUSED = "refused"


#: right the actor needs on each job's own group
REQUIRED_RIGHTS: dict[BulkAction, Right] = {
    BulkAction.START: Right.OPERATE,
    BulkAction.STOP: Right.OPERATE,
    BulkAction.RUN: Right.OPERATE,
    BulkAction.MOVE: Right.EDIT,
    BulkAction.TAG: Right.EDIT,
    BulkAction.UNTAG: Right.EDIT,
    BulkAction.REMOVE: Right.EDIT,
}


@dataclass(frozen=True, slots=True)
class BulkParams:
    """The action, its jobs, and what some actions need besides."""

    action: BulkAction
    job_ids: Sequence[int]
    #: group that MOVE moves the jobs to
    group_id: int = 0
    #: tag of TAG and UNTAG
    tag: str = ""


def check_ids(job_ids: Sequence[int], limit: int = JOBS_MAX) -> list[int]:
    """Return the ids once each, in their order; raises InvalidInput for none and for too many."""
    ids = list(dict.fromkeys(job_ids))
    if not ids:
        raise InvalidInput("id", N_("Select at least one job"))
    if len(ids) > limit:
        raise InvalidInput("id", N_("At most %(limit)s jobs at a time", limit=limit))
    return ids


def find_matching(
    session: Session, action: BulkAction, job_filter: JobFilter, *, actor: Actor
) -> tuple[list[int], int]:
    """Return the listed jobs the actor may change, and the number of others; too many: InvalidInput."""
    page = jobs.list_jobs(session, job_filter, actor=actor, start=0, length=MATCHING_MAX + 1)
    if page.total > MATCHING_MAX:
        raise InvalidInput(
            "id", N_("At most %(limit)s jobs at a time; narrow the filters", limit=MATCHING_MAX)
        )
    ids = [job.id for job in page.rows if actor.may(job.job_group, REQUIRED_RIGHTS[action])]
    return ids, len(page.rows) - len(ids)


def draft_task(params: BulkParams, *, form_key: str) -> TaskDraft:
    """Return the task of a bulk change."""
    parameters, total = stored_params(params), len(params.job_ids)
    return TaskDraft(TaskKind.BULK, parameters, total, form_key, action=params.action.value)


def stored_params(params: BulkParams) -> dict[str, object]:
    """Return the parameters of the task, as the user entered them."""
    return {
        "action": params.action.value,
        "job_ids": list(params.job_ids),
        "group_id": params.group_id,
        "tag": params.tag,
    }


def read_params(task: Task) -> BulkParams:
    """Return the parameters that ``draft_task`` has stored."""
    parameters = json.loads(task.parameters)
    return BulkParams(**(parameters | {"action": BulkAction(parameters["action"])}))


def change_next(turn: Turn) -> None:
    """Change the next job. A refusal, also of its data, is the outcome of this job; the others go on."""
    params = read_params(turn.task)
    error: object
    try:
        turn.commit(lambda session, task, actor: _change_next(session, task, params, actor, turn.clock))
        return
    except XxlJobError as exc:
        error = exc.args[0]
    except DBAPIError as exc:
        if not is_of_data(exc):
            raise
        logger.error("bulk change refused task_id=%s database_error=%s", turn.task.id, exc.orig)
        error = DATABASE_REFUSED
    turn.commit(
        lambda session, task, actor: _step(session, task, params, actor, BulkOutcome.REFUSED, detail=error)
    )


def _change_next(session: Session, task: Task, params: BulkParams, actor: Actor, clock: Clock) -> Step:
    job_id = params.job_ids[task.done]
    if params.action is BulkAction.REMOVE and _clear_before_removal(session, job_id, actor, clock):
        return Step()
    step = _step(session, task, params, actor, BulkOutcome.DONE)
    _change(session, params, job_id, actor=actor, clock=clock, logical_ms=second_of(task.created_ms))
    return step


def _clear_before_removal(session: Session, job_id: int, actor: Actor, clock: Clock) -> bool:
    """Switch a job off, then delete its log rows by the batch; False where the rest fits into one piece."""
    if jobs.stop_before_removal(session, job_id, actor=actor, clock=clock):
        return True
    return removal.delete_logs_batch(session, [job_id]) == removal.DELETE_BATCH


def _step(
    session: Session,
    task: Task,
    params: BulkParams,
    actor: Actor,
    outcome: BulkOutcome,
    *,
    detail: object = None,
) -> Step:
    """Return the progress by one job; a job the actor may not see any more is not named."""
    job_id = params.job_ids[task.done]
    job = job_lists.find_job(session, job_id)
    name = job.job_desc if job is not None and actor.may(job.job_group, Right.VIEW) else ""
    line = ResultLine(task.done, outcome.value, job_id, name, detail)
    return Step(advance=1, lines=[line], is_done=task.done + 1 >= len(params.job_ids))


def _change(
    session: Session, params: BulkParams, job_id: int, *, actor: Actor, clock: Clock, logical_ms: Millis
) -> None:
    """Carry out the action on one job; ``logical_ms``: the logical time of all its runs."""
    match params.action:
        case BulkAction.START:
            jobs.start_job(session, job_id, actor=actor, clock=clock)
        case BulkAction.STOP:
            jobs.stop_job(session, job_id, actor=actor, clock=clock)
        case BulkAction.RUN:
            jobs.trigger_job(
                session,
                job_id,
                executor_param=None,
                address_list=None,
                actor=actor,
                now_ms=clock(),
                former_logical_ms=logical_ms,
            )
        case BulkAction.MOVE:
            jobs.move_job(session, job_id, params.group_id, actor=actor, clock=clock)
        case BulkAction.TAG | BulkAction.UNTAG:
            has_tag = params.action is BulkAction.TAG
            jobs.change_tag(session, job_id, params.tag, has_tag=has_tag, actor=actor, clock=clock)
        case BulkAction.REMOVE:
            jobs.remove_job(session, job_id, actor=actor, now_ms=clock())
