"""Neighbours of a run in the history of its job, its user and its attempt."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import Millis
from app.console.ui.filters import outcome
from app.domain.access.permissions import Actor, Right
from app.domain.enums import TriggerType
from app.domain.runs.trigger_report import due_in_trace
from app.models.log import JobLog
from app.services.runs.rows import LogRow
from app.store.runs import neighbours
from app.store.runs.neighbours import Neighbour

#: colour of a run's banner by its outcome; others are ``danger``
COLOURS = {"success": "success", "running": "primary", "sending": "warning", "unresolved": "warning"}


@dataclass(frozen=True, slots=True)
class Around:
    """Context of a run on its page; ids are None without such a run, or a visible one."""

    previous_id: int | None
    next_id: int | None
    #: the last success before a run that did not succeed, and when it was triggered
    success_id: int | None
    success_ms: Millis | None
    #: who triggered it by hand; empty: not by hand, or not known
    username: str
    #: number of the attempt, and attempts in all; None: the job has no retries
    attempt: tuple[int, int] | None
    colour: str


def around(session: Session, row: LogRow, *, actor: Actor) -> Around:
    """Return the context of a run; runs of groups the actor cannot see are left out."""
    log, result = row.log, outcome(row.log)

    def visible(run: Neighbour | None) -> int | None:
        return run.id if run is not None and actor.may(run.job_group, Right.VIEW) else None

    if log.trigger_time is None:  # another program has written the row
        return Around(None, None, None, None, "", _attempt(row), COLOURS.get(result, "danger"))
    wants_success = result not in ("success", "running", "sending")
    success = neighbours.find_previous_success(session, log) if wants_success else None
    success_id = visible(success)
    return Around(
        previous_id=visible(neighbours.find_previous(session, log)),
        next_id=visible(neighbours.find_next(session, log)),
        success_id=success_id,
        success_ms=success.trigger_time if success is not None and success_id else None,
        username=_username(session, log),
        attempt=_attempt(row),
        colour=COLOURS.get(result, "danger"),
    )


def _username(session: Session, log: JobLog) -> str:
    """Return who triggered a run; the change history has the same millisecond as the run's trace."""
    due_ms = due_in_trace(log.trigger_msg) if log.trigger_type == TriggerType.MANUAL else None
    return neighbours.find_trigger_user(session, log.job_id, due_ms) if due_ms is not None else ""


def _attempt(row: LogRow) -> tuple[int, int] | None:
    """Return the attempt by the retries that are left; the job may have been changed since."""
    retries, remaining = (
        row.job.executor_fail_retry_count if row.job is not None else 0,
        row.log.executor_fail_retry_count,
    )
    return (retries - remaining + 1, retries + 1) if 0 <= remaining <= retries and retries > 0 else None
