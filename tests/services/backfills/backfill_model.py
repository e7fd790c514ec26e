"""Model of backfills: what became of each instant, kept from what was done to its runs.

It is not read from where the steps of backfills read it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from app.clock import DAY_MS, Millis
from app.models.backfill import Backfill, BackfillInstant
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.models.round import Arrival
from app.pipeline.claim import ClaimBatch
from app.pipeline.claimed_run import ClaimedRun
from tests.support.factories import T0, all_rows

ACTIVE = {"running", "paused", "stopping", "cancelling"}
#: next time of the fixed delay, which no run of a backfill may move
DELAYED_MS = T0 + 40 * DAY_MS


@dataclass
class Run:
    """A first run of an instant, or of one of its shards, with its retries."""

    #: log ids, the last one is the latest retry
    logs: list[int] = field(default_factory=list)
    #: how the last one has ended; empty: it has not
    outcome: str = ""
    #: a retry of it waits
    is_retried: bool = False
    #: its rows were cleared before its end, or its end was changed later: either result is right
    is_open_to_doubt: bool = False


@dataclass
class Instant:
    """An instant in one attempt of its backfill."""

    #: shard -> run
    runs: dict[str, Run] = field(default_factory=dict)


class Model:
    """What is known of the runs of backfills, and what must hold."""

    def __init__(self) -> None:
        #: claimed runs without a result, by log id
        self.sent: dict[int, ClaimedRun] = {}
        #: fire id -> its key, of all that there were
        self.keys: dict[int, str] = {}
        #: log id -> backfill, attempt, logical time, shard
        self.origins: dict[int, tuple[int, int, Millis, str]] = {}
        self.instants: defaultdict[tuple[int, int, Millis], Instant] = defaultdict(Instant)
        #: backfill, attempt -> the instants to run, in their order, and those with a first run or fire
        self.orders: dict[tuple[int, int], list[Millis]] = {}
        self.begun: defaultdict[tuple[int, int], set[Millis]] = defaultdict(set)
        #: backfill, attempt -> how many had begun when a step saw a failure
        self.stopped: dict[tuple[int, int], int] = {}
        #: paused backfill -> how many had begun
        self.paused: dict[int, int] = {}
        #: runs whose rows were cleared
        self.cleared: set[int] = set()

    def left_of(self, job_id: int) -> Iterable[BackfillInstant]:
        """Return the instants of active backfills of a job that have not ended."""
        ids = {row.id for row in all_rows(Backfill, job_id=job_id) if row.state in ACTIVE}
        rows = all_rows(BackfillInstant)
        return [row for row in rows if row.backfill_id in ids and row.state in ("waiting", "running")]

    def note_fires(self) -> None:
        for fire in all_rows(Fire):
            self.keys[fire.id] = fire.fire_key

    def note_claimed(self, batches: Iterable[ClaimBatch]) -> None:
        for batch in batches:
            for run in batch.claims:
                self.sent[run.log_id] = run
                self.note_run(self.keys[run.fire_id], run.log_id)

    def note_run(self, key: str, log_id: int) -> None:
        """Note a run that was claimed, of whatever kind."""
        if log_id in self.origins:
            return
        kind, *parts = key.split(":")
        if kind == "backfill":
            backfill_id, _, attempt = parts[0].partition("-")
            origin = int(backfill_id), int(attempt or 1), int(parts[1]), ":".join(parts[2:])
            run = self.instants[origin[:3]].runs.setdefault(origin[3], Run())
            assert not run.logs, f"a second first run: {key}"
        elif kind == "retry" and int(parts[0]) in self.origins:
            origin = self.origins[int(parts[0])]
            run = self.instants[origin[:3]].runs[origin[3]]
        else:
            return
        self.origins[log_id] = origin
        run.logs.append(log_id)
        run.outcome, run.is_retried = "", False

    def is_retry(self, fire: Fire) -> bool:
        """Whether a fire is of the retry of a run of a backfill."""
        return fire.trigger_type == "RETRY" and int(fire.fire_key.split(":")[1]) in self.origins

    def is_unknown(self, fire: Fire) -> bool:
        """Whether a fire is of the retry of a run that was cleared: nothing says what it was."""
        return fire.trigger_type == "RETRY" and not self.cleared.isdisjoint(self.chain_of(fire))

    def chain_of(self, fire: Fire) -> list[int]:
        source = int(fire.fire_key.split(":")[1])
        return self.run_of(source).logs if source in self.origins else [source]

    def run_of(self, log_id: int) -> Run:
        origin = self.origins[log_id]
        return self.instants[origin[:3]].runs[origin[3]]

    def note_end(self, log_id: int, outcome: str, has_ended: bool) -> None:
        if log_id in self.cleared or log_id not in self.origins:
            return
        assert has_ended or not all_rows(JobLog, id=log_id)
        run = self.run_of(log_id)
        assert run.logs[-1] == log_id
        run.outcome, run.is_retried = outcome, self.has_retry(log_id)

    def retried(self) -> list[int]:
        """Return the runs of backfills whose retries wait."""
        sources = [fire.fire_key.split(":")[1] for fire in all_rows(Fire, trigger_type="RETRY", log_id=None)]
        return [int(source) for source in sources if int(source) in self.origins]

    def has_retry(self, log_id: int) -> bool:
        return any(fire.fire_key.startswith(f"retry:{log_id}:") for fire in all_rows(Fire))

    def forget(self, logs: set[int]) -> None:
        self.cleared |= logs
        for log_id in logs:
            self.sent.pop(log_id, None)
            if log_id in self.origins:
                run = self.run_of(log_id)
                run.is_open_to_doubt = True
                if run.logs[-1] == log_id:
                    run.outcome = run.outcome or "failed"

    def check(self) -> None:
        """Check what holds after everything that happens."""
        self.note_fires()
        fires = all_rows(Fire)
        open_by_backfill = self.open_instants(fires)
        backfills = {row.id: row for row in all_rows(Backfill)}
        for (backfill_id, attempt, at_ms), _ in open_by_backfill.items():
            self.begun[backfill_id, attempt].add(at_ms)
        for backfill_id, attempt, at_ms in self.instants:
            self.begun[backfill_id, attempt].add(at_ms)
        for (backfill_id, attempt), begun in self.begun.items():
            order = self.orders[backfill_id, attempt]
            assert begun == set(order[: len(begun)]), "out of order"
        for fire in fires:
            if fire.state == "WAITING" and not self.is_unknown(fire):
                is_last = fire.deadline_ms - fire.due_time > 3_000 * DAY_MS
                assert is_last == (fire.trigger_type == "BACKFILL" or self.is_retry(fire)), fire.fire_key
        for row in backfills.values():
            running = {at_ms for each, _, at_ms in open_by_backfill if each == row.id}
            assert len(running) <= row.max_running, (row.id, running)
            if row.state in ("cancelled", "done", "failed"):
                assert not running, (row.id, row.state, running)
            count = len(self.begun[row.id, row.attempt])
            assert self.stopped.get((row.id, row.attempt), count) == count, "it went on after a failure"
            if row.state == "paused":
                assert self.paused.setdefault(row.id, count) == count, "it went on in a pause"
            else:
                self.paused.pop(row.id, None)
        self.check_followers(fires)
        delayed = all_rows(Job, schedule_type="FIX_DELAY")
        assert [row.trigger_next_time for row in delayed] == [DELAYED_MS]

    def open_instants(self, fires: list[Fire]) -> Counter[tuple[int, int, Millis]]:
        """Return the instants that have a fire: of their first run or of a retry."""
        found = Counter[tuple[int, int, Millis]]()
        for fire in fires:
            if fire.state == "HELD":
                continue
            kind, *parts = fire.fire_key.split(":")
            if kind == "backfill":
                backfill_id, _, attempt = parts[0].partition("-")
                found[int(backfill_id), int(attempt or 1), int(parts[1])] += 1
            elif kind == "retry" and int(parts[0]) in self.origins:
                found[self.origins[int(parts[0])][:3]] += 1
        return found

    def check_followers(self, fires: list[Fire]) -> None:
        children = {row.id: row.children for row in all_rows(Backfill)}
        logs = {log.id: log for log in all_rows(JobLog)}
        chains = defaultdict[int, set[tuple[int, int, Millis]]](set)
        alone = set[int]()
        for log_id, origin in self.origins.items():
            if (log := logs.get(log_id)) is None:
                continue
            match children[origin[0]]:
                case "none":
                    assert log.chain == 0
                    alone.add(log_id)
                case "as_configured":
                    assert log.chain is None
                case _:
                    assert (log.chain or 0) > 0
                    chains[log.chain or 0].add(origin[:3])
            assert log.logical_ms == origin[2]
        assert all(len(instants) == 1 for instants in chains.values())
        assert not alone & {arrival.log_id for arrival in all_rows(Arrival)}
        sources = {fire.fire_key.split(":")[1] for fire in fires if fire.fire_key.startswith("child:")}
        assert not sources & {str(log_id) for log_id in alone}
        assert not [
            log for log in logs.values() if log.trigger_type == "PARENT" and log.source_log_id in alone
        ]

    def check_states(self) -> None:
        """Check, after all steps, that the states of instants are what became of their runs."""
        fires = self.open_instants(all_rows(Fire))
        for row in all_rows(Backfill):
            failed = set[Millis]()
            for each in all_rows(BackfillInstant, backfill_id=row.id):
                key = (row.id, each.attempt, each.logical_ms)
                expected = self.state_of(row, each, has_fires=fires[key] > 0)
                assert each.state in expected, (row.id, row.state, key, each.state, expected)
                if each.state == "failed" and each.attempt == row.attempt:
                    failed.add(each.logical_ms)
            if row.state not in ACTIVE:
                assert not any(key[0] == row.id for key in fires if fires[key])
                states = {each.state for each in all_rows(BackfillInstant, backfill_id=row.id)}
                assert not states & {"running"}
                assert row.state == "failed" or not states & {"waiting"}
                assert row.ended_ms > 0
            if failed and row.on_failure == "stop" and row.state not in ("paused", "cancelling", "cancelled"):
                assert row.state in ("stopping", "failed"), (row.id, row.state, failed)
                self.stopped[row.id, row.attempt] = len(self.begun[row.id, row.attempt])

    def state_of(self, row: Backfill, each: BackfillInstant, *, has_fires: bool) -> set[str]:
        """Return what an instant may be, by what became of its runs."""
        if has_fires:
            return {"running"}
        unasked = {"withdrawn"} if row.state in ("cancelling", "cancelled") else {"waiting"}
        if row.state == "cancelling":
            unasked.add("waiting")
        instant = self.instants.get((row.id, each.attempt, each.logical_ms))
        if instant is None:
            return unasked
        runs = instant.runs.values()
        if any(not run.outcome for run in runs):
            return {"running"}
        found = {"failed"} if any(run.outcome == "failed" for run in runs) else {"succeeded"}
        if any(run.is_open_to_doubt for run in runs):
            found = {"succeeded", "failed", "withdrawn"}
        # Since it was resumed it has not been asked for again.
        return found | unasked if each.attempt < row.attempt else found
