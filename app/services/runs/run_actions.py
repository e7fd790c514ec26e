"""Kill and repeat a run by the id that programs have."""

from sqlalchemy.orm import Session

from app.clock import Millis
from app.db import read_scope
from app.domain.permissions import Actor, Right
from app.domain.run_outcome import state_of
from app.domain.texts import N_
from app.domain.trigger_keys import Trigger
from app.errors import Conflict
from app.models.log import JobLog
from app.services.jobs import jobs
from app.services.runs.found import get_row, get_run
from app.services.runs.logs import Caller, kill_log


def kill_run(run_id: str, *, actor: Actor, caller: Caller, now_ms: Millis) -> None:
    """Kill a run, of a broadcast all shards that are running. Opens its own transactions.

    Raises NotFound, PermissionDenied, ExecutorUnreachable, TooManyCalls, and Conflict if nothing is running.
    """
    with read_scope() as session:
        found = get_run(session, run_id, actor=actor, right=Right.OPERATE)
    if not found.rows:
        raise Conflict(N_("The run waits for the scheduler: withdraw it instead"))
    running = [log for log in found.rows if state_of(log.trigger_code, log.handle_code) == "running"]
    for log in running or found.rows[:1]:  # without a running one, the first one names the reason
        kill_log(log.id, actor=actor, caller=caller, now_ms=now_ms)


def retry_run(session: Session, run_id: str, *, actor: Actor, now_ms: Millis) -> Trigger:
    """Queue a run with the parameter of this one; a shard runs on its own instance again, as a single run."""
    log = get_row(session, run_id, actor=actor)
    return jobs.trigger_job(
        session,
        log.job_id,
        executor_param=log.executor_param or "",
        address_list=address_to_repeat(log),
        actor=actor,
        now_ms=now_ms,
    )


def address_to_repeat(log: JobLog) -> str:
    """Return the address for a repeated run: of a shard its own; empty: the route strategy decides."""
    return (log.executor_address or "") if log.executor_sharding_param else ""
