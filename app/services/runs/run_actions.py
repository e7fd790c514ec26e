"""Kill and repeat a run by the id that programs have."""

from sqlalchemy.orm import Session

from app.clock import Millis
from app.db import read_scope
from app.domain.permissions import Actor, Right
from app.domain.run_outcome import state_of
from app.domain.texts import N_
from app.errors import Conflict
from app.models.log import JobLog
from app.services.jobs import jobs
from app.services.jobs.jobs import QueuedRun
from app.services.runs.found import get_run, row_of
from app.services.runs.logs import Caller, get_killable, kill_log


def find_killable(run_id: str, *, actor: Actor) -> list[int]:
    """Return the ids of the rows of a run to kill, of a broadcast of all shards that are running.

    Raises NotFound, PermissionDenied, and Conflict if nothing is running.
    """
    with read_scope() as session:
        found = get_run(session, run_id, actor=actor, right=Right.OPERATE)
        if not found.rows:
            raise Conflict(N_("The run waits for the scheduler: withdraw it instead"))
        running = [log for log in found.rows if state_of(log.trigger_code, log.handle_code) == "running"]
        # without a running one, the first one names the reason
        return [get_killable(session, log.id, actor=actor).id for log in running or found.rows[:1]]


def kill_run(run_id: str, *, actor: Actor, caller: Caller, now_ms: Millis) -> None:
    """Kill a run. Opens its own transactions; raises ExecutorUnreachable and TooManyCalls besides."""
    for log_id in find_killable(run_id, actor=actor):
        kill_log(log_id, actor=actor, caller=caller, now_ms=now_ms)


def retry_run(session: Session, run_id: str, *, actor: Actor, now_ms: Millis) -> QueuedRun:
    """Queue a run with the parameter of this one, and the checkpoint if it failed.

    A shard runs on its own instance again, as a single run.
    """
    log = row_of(get_run(session, run_id, actor=actor))
    return jobs.trigger_job(
        session,
        log.job_id,
        executor_param=log.executor_param or "",
        address_list=address_to_repeat(log),
        actor=actor,
        now_ms=now_ms,
        repeats=log.id if log.failed else None,
    )


def address_to_repeat(log: JobLog) -> str:
    """Return the address for a repeated run: of a shard its own; empty: the route strategy decides."""
    return (log.executor_address or "") if log.executor_sharding_param else ""
