"""Runs by the id that programs have: of a log row, or of the trigger that leads to one or several."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import read_scope
from app.domain.access.permissions import Actor, Right, require_right
from app.domain.enums import TriggerType
from app.domain.runs.logical_times import logical_of
from app.domain.runs.outcome import ENDED, state_of, state_of_all
from app.domain.runs.trigger_keys import Trigger, parse_id, trigger_of
from app.domain.text.texts import N_
from app.errors import Conflict, NotFound
from app.models.log import JobLog
from app.runtime.interruptible_wait import pause
from app.services.jobs import job_list
from app.services.runs import logs, waiting
from app.services.runs.trigger_runs import NO_RUN, find_trigger_runs
from app.services.runs.waiting import WaitingRun
from app.store.limits.waiting_list import ListedFire


class _Ending(Protocol):
    """Run or chain that ends."""

    @property
    def has_ended(self) -> bool:
        """Whether it has a result."""


Ending = TypeVar("Ending", bound=_Ending)

#: pauses between two looks at a run that is waited for, in seconds: the first, the factor, the longest
PAUSE_S, SLOWER, PAUSE_MAX_S = 0.1, 1.3, 0.5
#: digits of an id of the log
ID_DIGITS = 18


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A run, also one that has no row yet, or a broadcast with several."""

    #: of its row; of its trigger while there is none, and of a broadcast
    id: str
    job_id: int
    group_id: int
    state: str
    #: the row, or those of the shards; none: it waits
    rows: tuple[JobLog, ...]
    #: when it is due, while it waits for a scheduler
    due_ms: Millis | None = None
    #: whether several instances run it, each a shard
    is_broadcast: bool = False
    #: what it stands for; None: its row has no time
    logical_ms: Millis | None = None
    trigger_type: str = TriggerType.MANUAL.value
    #: reason of its skip, because it was not to wait for a limit
    skipped: str = ""
    #: the round or limit it waits for; None: it waits for a scheduler, or not
    waiting: WaitingRun | None = None
    #: number of the trigger that asked for the chain
    chain: int | None = None
    #: round that it waits for or belongs to
    round_id: int | None = None

    @property
    def has_ended(self) -> bool:
        """Whether it has a result."""
        return self.state in ENDED


def get_run(session: Session, run_id: str, *, actor: Actor, right: Right = Right.VIEW) -> FoundRun:
    """Return the run an id names; raises NotFound if there is none, or none the actor may see."""
    if (trigger := parse_id(run_id)) is not None:
        return _of_trigger(session, trigger, actor, right)
    if (fire := waiting.find_fire(session, run_id)) is not None:
        return _of_fire(session, fire, actor, right)
    if waiting.fire_id_of(run_id) is not None:
        raise NotFound(NO_RUN)
    if not (run_id.isascii() and run_id.isdecimal() and len(run_id) <= ID_DIGITS):
        raise NotFound(N_("This is not the id of a run"))
    return _of_row(logs.get_log(session, int(run_id), actor=actor, right=right))


def row_of(run: FoundRun) -> JobLog:
    """Return the row of a run; raises Conflict while it has none, and for a broadcast with several."""
    if run.is_broadcast:
        ids = ", ".join(str(log.id) for log in run.rows)
        raise Conflict(N_("This run has several shards; use the id of one of them: %(ids)s", ids=ids))
    if run.skipped:
        raise Conflict(N_("The run was skipped and has not started"))
    if run.waiting is not None and run.waiting.is_gated:
        raise Conflict(N_("The run waits for its predecessors and has not started"))
    if run.waiting is not None and run.waiting.is_missed:
        raise Conflict(N_("The run waits for the missed run before it and has not started"))
    if run.waiting is not None:
        raise Conflict(N_("The run waits for a limit and has not started"))
    if not run.rows:
        raise Conflict(N_("The run waits for the scheduler and has not started"))
    return run.rows[0]


def wait_for_end(run_id: str, *, actor: Actor, timeout_s: float) -> FoundRun:
    """Return a run once it has ended, or as it is after ``timeout_s`` or when the console stops.

    Each look has its own transaction.
    """
    return look_until_ended(partial(get_run, run_id=run_id, actor=actor), timeout_s=timeout_s)


def look_until_ended(look: Callable[[Session], Ending], *, timeout_s: float) -> Ending:
    """Return what a look finds once that has ended, or after ``timeout_s`` or when the console stops."""
    until, pause_s = time.monotonic() + timeout_s, PAUSE_S
    while True:
        with read_scope() as session:
            view = look(session)
        left_s = until - time.monotonic()
        if view.has_ended or left_s <= 0 or pause(min(pause_s, left_s)):
            return view
        pause_s = min(pause_s * SLOWER, PAUSE_MAX_S)


def _of_row(log: JobLog) -> FoundRun:
    state = state_of(log.trigger_code, log.handle_code, log.killed)
    return FoundRun(str(log.id), log.job_id, log.job_group, state, (log,), logical_ms=logical_of(log))


def _of_trigger(session: Session, trigger: Trigger, actor: Actor, right: Right) -> FoundRun:
    outcome = find_trigger_runs(session, trigger)
    if len(outcome.log_ids) == 1 and outcome.due_ms is None:
        return _of_row(logs.get_log(session, outcome.log_ids[0], actor=actor, right=right))
    if not outcome.log_ids and outcome.due_ms is None and not outcome.skipped:
        raise NotFound(NO_RUN)
    job = job_list.get_job(session, trigger.job_id, actor=actor, right=right)
    if outcome.skipped:
        return FoundRun(
            trigger.id, job.id, job.job_group, "not_started", (), trigger.due_ms, skipped=outcome.skipped
        )
    rows = tuple(logs.get_log(session, log_id, actor=actor, right=right) for log_id in outcome.log_ids)
    states = [state_of(log.trigger_code, log.handle_code, log.killed) for log in rows]
    state = state_of_all(states, is_waiting=outcome.due_ms is not None)
    return FoundRun(
        trigger.id,
        job.id,
        job.job_group,
        state,
        rows,
        outcome.due_ms,
        is_broadcast=bool(outcome.log_ids),
        logical_ms=logical_of(rows[0]) if rows else outcome.logical_ms,
        waiting=waiting.find_waiting(session, trigger.id, actor=actor) if outcome.is_limited else None,
        chain=rows[0].chain if rows else outcome.chain,
        round_id=rows[0].round_id if rows else outcome.round_id,
    )


def _of_fire(session: Session, fire: ListedFire, actor: Actor, right: Right) -> FoundRun:
    """Return the run of an instant of the schedule, a child or a retry by the id of its fire."""
    trigger = trigger_of(fire.job_id, fire.fire_key)
    if trigger is not None:
        return _of_trigger(session, trigger, actor, right)
    if fire.log_id is not None:
        return _of_row(logs.get_log(session, fire.log_id, actor=actor, right=right))
    require_right(actor, fire.group_id, right, missing=NO_RUN)
    run_id = waiting.id_of(fire)
    return FoundRun(
        run_id,
        fire.job_id,
        fire.group_id,
        "waiting",
        (),
        fire.due_ms,
        logical_ms=fire.logical_ms,
        trigger_type=fire.trigger_type,
        waiting=waiting.find_waiting(session, run_id, actor=actor),
        chain=fire.chain,
        round_id=fire.round_id,
    )
