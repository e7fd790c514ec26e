"""Steps of a backfill: what became of its runs, and which instants are started next.

docs/reference/backfills.md. A step is one transaction that holds the row of the backfill, so that no two are
made at once, and all it decides by is in rows: a step that was interrupted changes nothing, and any node may
make the next.
"""

import json
import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import Clock, Millis
from app.database.engine import read_scope, transact
from app.database.rows import bulk
from app.domain.backfills.kinds import (
    ACTIVE,
    INSTANTS_MAX,
    RUNNING_MAX,
    BackfillState,
    Children,
    InstantState,
    OnFailure,
)
from app.domain.backfills.progress import Decision, decide, result_of
from app.domain.enums import HandleCode, TriggerType
from app.domain.packed_text import pack
from app.domain.rounds.round_keys import NONE_FOLLOWS
from app.domain.runs.trigger_keys import Trigger, backfill_key, trigger_of
from app.domain.text.texts import N_, Text
from app.errors import XxlJobError
from app.pipeline.rounds.ends import arrive_skipped
from app.services.rounds.chains import open_rounds
from app.store.backfills import steps
from app.store.backfills.steps import BackfillRow, EndOfRun, InstantRow, OpenFire
from app.store.fires import queue as fires
from app.store.fires.logs import find_origins, is_unfinished
from app.store.fires.queue import NewFire
from app.store.jobs import scheduling as jobs

logger = logging.getLogger(__name__)

JOB_GONE = N_("The job was deleted")
#: reason of runs that are withdrawn
WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class _Instant:
    """An instant whose run was asked for, and what there is of it."""

    row: InstantRow
    trigger: Trigger
    state: InstantState
    #: its last run
    log_id: int | None
    #: fires that no claim has taken
    unsent_ids: frozenset[int]
    #: runs that have not ended, several of a broadcast
    open_log_ids: tuple[int, ...] = ()

    def result(self, now_ms: Millis) -> bulk.Row:
        """Return the columns of an instant that has ended."""
        return {"id": self.row.id, "state": self.state.value, "log_id": self.log_id, "ended_ms": now_ms}


@dataclass(frozen=True, slots=True)
class _View:
    """A backfill as a step finds it."""

    row: BackfillRow
    instants: Sequence[_Instant]
    decision: Decision
    #: those that it may start, the next first
    waiting: Sequence[InstantRow]
    has_job: bool

    @property
    def done(self) -> list[_Instant]:
        return [instant for instant in self.instants if instant.state is not InstantState.RUNNING]

    @property
    def is_withdrawing(self) -> bool:
        """Whether there are fires to withdraw."""
        return self.decision.withdraws and any(instant.unsent_ids for instant in self.instants)

    @property
    def changes(self) -> bool:
        """Whether the step changes anything."""
        is_starting = bool(self.decision.start and self.waiting)
        return bool(self.done) or is_starting or self.is_withdrawing or self.decision.state != self.row.state


def advance(backfill_id: int, *, clock: Clock) -> bool:
    """Make a step of a backfill, if there is one to make; return whether another may be made at once.

    Opens its own transactions. What cannot be started pauses the backfill, with the reason.
    """
    with read_scope() as session:
        row = steps.find_row(session, backfill_id)
        if row is None or row.state not in ACTIVE or not _view(session, row).changes:
            return False
    try:
        return transact(partial(step, backfill_id=backfill_id, clock=clock))
    except XxlJobError as exc:
        logger.warning("backfill paused backfill_id=%s reason=%s", backfill_id, exc)
        transact(partial(_pause, backfill_id=backfill_id, reason=exc.args[0], clock=clock))
        return False


def _pause(session: Session, backfill_id: int, reason: Text, clock: Clock) -> None:
    row = steps.find_row(session, backfill_id, lock=True)
    if row is not None and row.state == BackfillState.RUNNING:
        state = {"state": BackfillState.PAUSED.value, "updated_ms": clock()}
        steps.write_backfill(session, backfill_id, reason=json.dumps(pack(reason)), **state)


def step(session: Session, backfill_id: int, *, clock: Clock) -> bool:
    """Make one step in the caller's transaction, which holds no lock of jobs, runs or fires.

    Return whether another may be made at once: a claim has locked fires that are to be withdrawn.
    """
    row = steps.find_row(session, backfill_id, lock=True)
    if row is None or row.state not in ACTIVE:
        return False
    view, now_ms = _view(session, row), clock()
    if view.decision.withdraws and _withdraw(session, view, now_ms):
        view = _view(session, row)
    results = [instant.result(now_ms) for instant in view.done]
    steps.write_instants(session, results)
    new_instants = view.waiting[: view.decision.start]
    if new_instants:
        _start(session, row, new_instants, now_ms)
    state = view.decision.state
    columns: dict[str, object] = {"updated_ms": now_ms, "state": state.value}
    if state not in ACTIVE:
        columns["ended_ms"] = now_ms
        if state is BackfillState.CANCELLED:
            steps.move_all(session, row.id, InstantState.WAITING, InstantState.WITHDRAWN)
        if not view.has_job:
            columns["reason"] = json.dumps(pack(JOB_GONE))
    if results or new_instants or state != row.state:
        steps.write_backfill(session, row.id, **columns)
    return view.is_withdrawing


class RunningInstant(NamedTuple):
    """An instant in progress, and its runs."""

    logical_ms: Millis
    #: its last run; None: it has none yet
    log_id: int | None
    #: runs that have not ended, several of a broadcast
    open_log_ids: tuple[int, ...]


def find_running(session: Session, backfill_id: int) -> list[RunningInstant]:
    """Return the instants of a backfill that are in progress."""
    row = steps.find_row(session, backfill_id)
    if row is None or row.state not in ACTIVE:
        return []
    running = steps.find_instants(session, row.id, InstantState.RUNNING, limit=2 * RUNNING_MAX)
    return [
        RunningInstant(instant.row.logical_ms, instant.log_id, instant.open_log_ids)
        for instant in (_instants(session, row, running) if running else ())
    ]


def wait_again(session: Session, row: BackfillRow, now_ms: Millis) -> None:
    """Let the failed instants of a locked backfill wait again, but for those that have succeeded since.

    A result may arrive late, of a run that has ended as unresolved.
    """
    failed = steps.find_instants(session, row.id, InstantState.FAILED, limit=INSTANTS_MAX)
    success_rows = [
        instant.result(now_ms)
        for instant in _instants(session, row, failed)
        if instant.state is InstantState.SUCCEEDED
    ]
    steps.write_instants(session, success_rows)
    steps.move_all(session, row.id, InstantState.FAILED, InstantState.WAITING, ended_ms=0)


def _view(session: Session, row: BackfillRow) -> _View:
    running = steps.find_instants(session, row.id, InstantState.RUNNING, limit=2 * RUNNING_MAX)
    instants = _instants(session, row, running) if running else []
    open_count = sum(instant.state is InstantState.RUNNING for instant in instants)
    has_job = bool(jobs.find_names(session, [row.job_id]))
    waiting = steps.find_instants(session, row.id, InstantState.WAITING, limit=row.max_running)
    has_failed = any(instant.state is InstantState.FAILED for instant in instants)
    if row.on_failure == OnFailure.STOP and not has_failed:
        has_failed = steps.has_failed(session, row.id, row.attempt)
    decision = decide(
        BackfillState(row.state) if has_job else BackfillState.CANCELLING,
        OnFailure(row.on_failure),
        max_running=row.max_running,
        running=open_count,
        has_waiting=bool(waiting),
        has_failed=has_failed,
    )
    return _View(row, instants, decision, waiting, has_job)


def _instants(session: Session, row: BackfillRow, running: Sequence[InstantRow]) -> list[_Instant]:
    """Return what there is of instants whose runs were asked for.

    The fires are read first: what has ended by then has left its log row.
    """
    keys = {instant.id: backfill_key(row.id, instant.logical_ms, instant.attempt) for instant in running}
    triggers = {instant.id: _trigger(row.job_id, keys[instant.id]) for instant in running}
    open_fires = steps.find_fires(session, row.job_id)
    first = defaultdict[str, list[OpenFire]](list)
    retries = defaultdict[int, list[OpenFire]](list)
    for fire in open_fires:
        if fire.trigger_type == TriggerType.BACKFILL:
            # Of a broadcast the key of a shard begins with that of the whole.
            first[":".join(fire.fire_key.split(":")[:3])].append(fire)
        elif (source := fires.source_of(fire.fire_key)) is not None:
            retries[source].append(fire)
    runs = _chains(session, {trigger.number for trigger in triggers.values()})
    orphans = _orphans(session, runs, retries)
    return [
        _instant(
            instant,
            trigger,
            [*first[keys[instant.id]], *orphans.get((instant.logical_ms, _chain_of(row, trigger)), ())],
            runs[trigger.number],
            retries,
        )
        for instant in running
        for trigger in (triggers[instant.id],)
    ]


def _orphans(
    session: Session,
    chains: Mapping[int, list[list[EndOfRun]]],
    retries: Mapping[int, list[OpenFire]],
) -> Mapping[tuple[Millis, int | None], list[OpenFire]]:
    """Return the retries of runs whose log rows were cleared, by what they still show of their instant."""
    known_ids = {run.log_id for of_trigger in chains.values() for chain in of_trigger for run in chain}
    others = retries.keys() - known_ids
    origins = find_origins(session, others) if others else {}
    orphans = defaultdict[tuple[Millis, int | None], list[OpenFire]](list)
    for source in others - origins.keys():
        for fire in retries[source]:
            orphans[fire.logical_ms, fire.chain].append(fire)
    return orphans


def _chain_of(row: BackfillRow, trigger: Trigger) -> int | None:
    """Return the `chain` of the runs of an instant."""
    return {Children.NONE: NONE_FOLLOWS, Children.CHAIN: trigger.number}.get(Children(row.children))


def _trigger(job_id: int, key: str) -> Trigger:
    trigger = trigger_of(job_id, key)
    if trigger is None:
        raise ValueError(f"no key of a backfill: {key}")
    return trigger


def _chains(session: Session, numbers: Iterable[int]) -> Mapping[int, list[list[EndOfRun]]]:
    """Return the runs of triggers, each with its retries, by the number of the trigger."""
    chains = defaultdict[int, list[list[EndOfRun]]](list)
    last: dict[int, list[EndOfRun]] = {}
    for run in steps.find_first_runs(session, [*numbers]):
        last[run.log_id] = [run]
        chains[run.source].append(last[run.log_id])
    while failed := [log_id for log_id, chain in last.items() if _has_failed(chain[-1])]:
        repeats = steps.find_retries(session, failed)
        last = {run.log_id: last[run.source] for run in repeats}
        for run in repeats:
            last[run.log_id].append(run)
    return chains


def _has_failed(run: EndOfRun) -> bool:
    return not is_unfinished(run.trigger_code, run.handle_code) and run.handle_code != HandleCode.SUCCESS


def _instant(
    row: InstantRow,
    trigger: Trigger,
    first: Sequence[OpenFire],
    chains: Sequence[Sequence[EndOfRun]],
    retries: Mapping[int, Sequence[OpenFire]],
) -> _Instant:
    outcomes, open_fires = list[InstantState](), list(first)
    for chain in chains:
        waiting = [fire for run in chain for fire in retries.get(run.log_id, ())]
        open_fires += waiting
        if waiting or is_unfinished(chain[-1].trigger_code, chain[-1].handle_code):
            outcomes.append(InstantState.RUNNING)
        else:
            outcomes.append(InstantState.FAILED if _has_failed(chain[-1]) else InstantState.SUCCEEDED)
    if first:
        outcomes.append(InstantState.RUNNING)
    log_id = max((run.log_id for chain in chains for run in chain), default=None)
    unsent_ids = frozenset(fire.id for fire in open_fires if fire.is_unsent)
    last_runs = [chain[-1] for chain in chains]
    open_ids = tuple(run.log_id for run in last_runs if is_unfinished(run.trigger_code, run.handle_code))
    return _Instant(row, trigger, result_of(outcomes), log_id, unsent_ids, open_ids)


def _withdraw(session: Session, view: _View, now_ms: Millis) -> bool:
    """Delete the fires that no claim has taken; return whether there were any."""
    fire_ids = sorted(fire_id for instant in view.instants for fire_id in instant.unsent_ids)
    if not fire_ids:
        return False
    fires_at_hand = [*fires.lock_unsent(session, fire_ids), *fires.lock_gated(session, fire_ids)]
    unsent = [fire for fire in fires_at_hand if fire.log_id is None and not fire.attempt and not fire.epoch]
    fires.delete_fires(session, [fire.id for fire in unsent])
    followed_ids = {
        job.id
        for job in jobs.find_planned(session, {fire.job_id for fire in unsent}).values()
        if job.has_followers
    }
    arrive_skipped(session, unsent, followed_ids, reason=WITHDRAWN, now_ms=now_ms)
    return bool(unsent)


def _start(session: Session, row: BackfillRow, instants: Sequence[InstantRow], now_ms: Millis) -> None:
    """Insert the fires of instants, each with its chain if the backfill asks for that."""
    new, round_times = list[NewFire](), dict[int, Millis]()
    for instant in instants:
        key = backfill_key(row.id, instant.logical_ms, row.attempt)
        trigger = _trigger(row.job_id, key)
        chain = _chain_of(row, trigger)
        new.append(
            NewFire(key, row.job_id, now_ms, TriggerType.BACKFILL, logical_ms=instant.logical_ms, chain=chain)
        )
        if row.children == Children.CHAIN:
            round_times[trigger.number] = instant.logical_ms
    fires.insert_unless_known(session, new, now_ms=now_ms)
    if round_times:
        open_rounds(session, row.job_id, round_times, opened_ms=now_ms)
    running = {"state": InstantState.RUNNING.value, "attempt": row.attempt, "begun_ms": now_ms}
    steps.write_instants(session, [{"id": instant.id, **running} for instant in instants])
