"""Kill and repeat a run by the id that programs have, and kill several runs."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import read_scope
from app.domain.access.permissions import Actor, Right
from app.domain.enums import ParamForm
from app.domain.runs.log_copies import ELLIPSIS
from app.domain.runs.logical_times import logical_of
from app.domain.runs.outcome import state_of
from app.domain.text.texts import N_
from app.errors import Conflict, ExecutorUnreachable, NotFound
from app.models.log import JobLog
from app.services.executors.callers import Caller
from app.services.jobs.triggers import InChain, QueuedRun, trigger_job
from app.services.runs import logs
from app.services.runs.run_lookup import get_run, row_of
from app.store.fires import logs as run_rows
from app.store.jobs import listing as job_lists

#: message about a run whose parameter cannot be repeated
PARAM_CUT = N_(
    "The log has only the beginning of this parameter; run the job with a parameter that you enter"
)
#: executors called at the same time to kill several runs
AT_A_TIME = 8
#: seconds after which no further run is killed by the same request
KILL_S = 15.0
#: further executors that an error names
NAMED = 20


class _Outcome(NamedTuple):
    """How many runs of one executor were killed, and why the others were not."""

    kill_count: int
    failure: ExecutorUnreachable | None = None


def find_killable(run_id: str, *, actor: Actor) -> list[JobLog]:
    """Return the rows of a run to kill, of a broadcast those of all shards that are running.

    Raises NotFound, PermissionDenied, and Conflict if nothing is running.
    """
    with read_scope() as session:
        run = get_run(session, run_id, actor=actor, right=Right.OPERATE)
        if run.skipped:
            raise Conflict(N_("The run was skipped and has not started"))
        if not run.rows:
            raise Conflict(N_("The run waits for the scheduler: withdraw it instead"))
        running = [log for log in run.rows if state_of(log.trigger_code, log.handle_code) == "running"]
        # Without a running one, the first one names the reason.
        return [logs.get_killable(session, log.id, actor=actor) for log in running or run.rows[:1]]


def kill_run(run_id: str, *, actor: Actor, caller: Caller, now_ms: Millis) -> None:
    """Kill a run, of a broadcast all shards that are running.

    Opens its own transactions; raises the errors of ``find_killable`` and ``kill_runs``.
    """
    if not kill_runs(find_killable(run_id, actor=actor), actor=actor, caller=caller, now_ms=now_ms):
        raise Conflict(N_("The run has ended already"))


def kill_runs(
    running: Sequence[JobLog], *, actor: Actor, caller: Caller, now_ms: Millis, settle_ms: Millis = 0
) -> int:
    """Kill runs under one permit; return how many, without those that have ended meanwhile.

    ``settle_ms``: as in ``kill_log``.

    Opens its own transactions. An executor that does not answer holds up no other: raises ExecutorUnreachable
    once the runs of the others are killed; and TooManyCalls.
    """
    by_address: dict[str, list[int]] = {}
    for log in running:
        by_address.setdefault(log.executor_address or "", []).append(log.id)
    until_s = time.monotonic() + KILL_S
    with caller.permit() as permit, ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="kill") as pool:
        kill = partial(logs.kill_log, actor=actor, caller=permit, now_ms=now_ms, settle_ms=settle_ms)
        # Each thread gets a copy of the context, which has the id of the request for log lines.
        work = [
            pool.submit(copy_context().run, _kill_there, address, log_ids, kill, until_s)
            for address, log_ids in by_address.items()
        ]
    outcomes = [future.result() for future in work]
    count = sum(outcome.kill_count for outcome in outcomes)
    if failures := [outcome.failure for outcome in outcomes if outcome.failure is not None]:
        raise failures[0] if len(running) == 1 else _merge(failures, count, len(running))
    return count


def _kill_there(
    address: str, log_ids: Sequence[int], kill: Callable[[int], object], until_s: float
) -> _Outcome:
    """Kill the runs of one executor, until it does not answer or the time is over."""
    count = 0
    for log_id in log_ids:
        if time.monotonic() > until_s:
            late = N_("not called, because no time was left")
            return _Outcome(count, ExecutorUnreachable(address, late))
        try:
            kill(log_id)
            count += 1
        except (Conflict, NotFound):  # the run has ended, perhaps with another run of its job, or was cleared
            continue
        except ExecutorUnreachable as exc:
            return _Outcome(count, exc)
    return _Outcome(count)


def _merge(failures: Sequence[ExecutorUnreachable], count: int, runs: int) -> ExecutorUnreachable:
    """Return one error for several executors, with how many runs were killed."""
    first, other_addresses = failures[0], [failure.address for failure in failures[1:]]
    reason = first.reason
    if other_addresses:
        names, more = ", ".join(other_addresses[:NAMED]), len(other_addresses) - NAMED
        list_text = N_("%(named)s and %(n)s more", named=names, n=more) if more > 0 else names
        reason = N_("%(reason)s; also failed: %(others)s", reason=reason, others=list_text)
    return ExecutorUnreachable(
        first.address,
        N_("%(reason)s; runs killed: %(killed)s of %(runs)s", reason=reason, killed=count, runs=runs),
    )


def retry_run(
    session: Session, run_id: str, *, actor: Actor, now_ms: Millis, force: bool = False
) -> QueuedRun:
    """Queue a run with the parameter of this one, filled in as it was, and the checkpoint if it failed.

    A shard runs on its own instance again, as the same shard. ``force``: no limit and no blackout counts.
    """
    log = row_of(get_run(session, run_id, actor=actor))
    param = param_to_repeat(session, log)
    if param is None:
        raise Conflict(PARAM_CUT)
    return trigger_job(
        session,
        log.job_id,
        executor_param=param,
        address_list=address_to_repeat(log),
        actor=actor,
        now_ms=now_ms,
        repeats=log.id if log.failed or log.param_form == ParamForm.TEMPLATE else None,
        former_logical_ms=logical_of(log),
        param_form=ParamForm(log.param_form),
        force=force,
        in_chain=InChain(chain=log.chain, round_id=log.round_id, shard=log.executor_sharding_param),
    )


def param_to_repeat(session: Session, log: JobLog) -> str | None:
    """Return the parameter of a run; None if the log has only its beginning and the job another one."""
    param = log.executor_param or ""
    if not run_rows.is_cut(session, "executor_param", param):
        return param
    job_param = job_lists.find_params(session, [log.job_id]).get(log.job_id) or ""
    return job_param if job_param.startswith(param.removesuffix(ELLIPSIS)) else None


def address_to_repeat(log: JobLog) -> str:
    """Return the address for a repeated run: of a shard its own; empty: the route strategy decides."""
    return (log.executor_address or "") if log.executor_sharding_param else ""
