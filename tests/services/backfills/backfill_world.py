"""Jobs with backfills, and everything that happens to their runs: a world for tests, with a model of its own.

What became of an instant is kept here from what was done to its runs, not read from where the steps read it.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sqlalchemy import update
from sqlalchemy.orm import Session

from app.clock import DAY_MS, MINUTE_MS, Millis
from app.database.engine import session_scope, transact
from app.domain.runs.evidence import Fate
from app.errors import Conflict
from app.models.backfill import Backfill, BackfillInstant
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.models.round import Arrival, Round
from app.pipeline.calendars.explaining import tick_explained
from app.pipeline.calendars.pauses import resume
from app.pipeline.claim import ClaimBatch, claim
from app.pipeline.claimed_run import ClaimedRun
from app.pipeline.complete import Result, Source
from app.pipeline.limits.claim_limited import claim_limited, end_waits, find_ready
from app.pipeline.scan import scan
from app.services.backfills.steps import advance
from app.services.jobs.jobs import remove_job
from app.services.jobs.replan import switch_off, switch_on
from app.store.runs import clearing
from tests.pipeline.calendar_steps import account_of, add_blackout, end_blackout, ruled_job
from tests.pipeline.round_steps import follow, look
from tests.pipeline.steps import (
    as_due,
    call_back,
    claimer,
    end,
    give_back_all,
    record_sent,
    run_concurrently,
    sent,
    unresolve,
)
from tests.services.backfills.backfill_steps import ACTOR, draft, start
from tests.services.backfills.backfill_steps import change as change_backfill
from tests.support.factories import FIRST, SECOND, T0, all_rows, make_fire, make_group, make_job

ZONE = "UTC"
MINUTELY = {"schedule_type": "CRON", "schedule_conf": "0 * * * * ?"}
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


class World:
    """The jobs, their backfills, and a clock."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now_ms: Millis = T0
        self.sent: dict[int, ClaimedRun] = {}
        self.unresolved: list[int] = []
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
        self.blackouts: list[int] = []
        self.cleared: set[int] = set()
        self.group = make_group(app_name="demo", address_list=f"{FIRST},{SECOND}").id
        self.make_jobs()

    def make_jobs(self) -> None:
        live = partial(ruled_job, T0 // MINUTE_MS * MINUTE_MS + MINUTE_MS, "CRON", "0 * * * * ?")
        child = self.job(schedule_type="NONE")
        self.live = [
            live(job_group=self.group, executor_fail_retry_count=1, child_jobid=str(child.id)),
            live(job_group=self.group, max_running=1, when_full="wait"),
        ]
        self.delayed = self.job(
            schedule_type="FIX_DELAY",
            schedule_conf="60",
            trigger_status=1,
            trigger_next_time=DELAYED_MS,
            executor_fail_retry_count=1,
        )
        others = [
            self.job(**MINUTELY, max_running=1, when_full="skip", executor_fail_retry_count=1),
            self.job(**MINUTELY, max_running=1, when_full="newest", max_wait_s=60),
            self.job(**MINUTELY, executor_route_strategy="SHARDING_BROADCAST", executor_fail_retry_count=1),
            self.job(**MINUTELY, delivery="at_least_once", executor_fail_retry_count=2, max_running=2),
            self.delayed,
            self.job(schedule_type="FIX_RATE", schedule_conf="60"),
            self.job(**MINUTELY, executor_fail_retry_count=1, retry_interval_s=60),
        ]
        self.jobs = [*self.live, *self.random.sample(others, 2)]
        self.follower = follow(*self.live, job=self.job(schedule_type="NONE"), deadline_s=600)

    def job(self, **columns: Any) -> Job:
        return make_job(job_group=self.group, **columns)

    # What is asked for

    def make(self) -> None:
        """Start a backfill; what shares instants with an active one is refused."""
        job = self.random.choice(self.jobs)
        first = self.random.randint(1, 8)
        values: dict[str, Any] = {
            "which": self.random.choice(["all", "all", "missing", "failed"]),
            "order": self.random.choice(["oldest_first", "newest_first"]),
            "max_running": self.random.choice([1, 1, 2, 4]),
            "children": self.random.choice(["none", "none", "as_configured", "chain"]),
            "on_failure": self.random.choice(["stop", "go_on"]),
        }
        if job.schedule_type == "FIX_DELAY" or self.random.random() < 0.2:
            values["times"] = [T0 - number * 7_000 for number in range(first)]
        taken = {each.logical_ms for each in self.left_of(job.id)}
        present = self.random.choice([T0, self.now_ms])
        entered = draft(first, 0, **values | {"to_ms": present})
        try:
            backfill_id = start(job, entered, now_ms=self.now_ms)
        except Conflict:
            return
        rows = sorted(all_rows(BackfillInstant, backfill_id=backfill_id), key=lambda row: row.number)
        times = [row.logical_ms for row in rows]
        assert not taken & set(times)
        assert times == sorted(times, reverse=values["order"] == "newest_first")
        self.orders[backfill_id, 1] = times

    def left_of(self, job_id: int) -> Iterable[BackfillInstant]:
        """Return the instants of active backfills of a job that have not ended."""
        ids = {row.id for row in all_rows(Backfill, job_id=job_id) if row.state in ACTIVE}
        rows = all_rows(BackfillInstant)
        return [row for row in rows if row.backfill_id in ids and row.state in ("waiting", "running")]

    def change(self, action: str = "") -> None:
        rows = all_rows(Backfill)
        if not rows:
            return
        waiting = {self.origins[log_id][0] for log_id in self.retried()}
        busy = [row for row in rows if row.id in waiting and row.state in ACTIVE]
        row = self.random.choice(busy if busy and self.random.random() < 0.5 else rows)
        action = action or self.random.choice(["pause", "resume", "resume", "cancel"])
        left = {each.logical_ms: each for each in all_rows(BackfillInstant, backfill_id=row.id)}
        may = {
            "pause": row.state in ("running", "paused"),
            "resume": row.state in ("running", "paused", "failed"),
            "cancel": row.state in ACTIVE | {"failed"},
        }
        try:
            change_backfill(row.id, action, now_ms=self.now_ms)
        except Conflict:
            shared = {each.logical_ms for each in self.left_of(row.job_id)} & left.keys()
            assert not may[action] or (row.state == "failed" and shared), (action, row.state)
        else:
            assert may[action], (action, row.state)
            if action == "cancel":
                unsent = [fire for fire in all_rows(Fire, log_id=None) if not fire.attempt]
                assert not any(each[0] == row.id for each in self.open_instants(unsent))
            if (row.state, action) == ("failed", "resume"):
                rows = sorted(all_rows(BackfillInstant, backfill_id=row.id), key=lambda each: each.number)
                again = [each.logical_ms for each in rows if each.state in ("waiting", "running")]
                assert {each.logical_ms for each in rows if each.state == "failed"} == set()
                self.orders[row.id, row.attempt + 1] = again

    # What the monitor and the dispatchers do

    def step(self) -> None:
        active = [row.id for row in all_rows(Backfill) if row.state in ACTIVE]
        if active:
            backfill_id = self.random.choice(active)
            works = [partial(advance, backfill_id, clock=lambda: self.now_ms)] * self.random.choice([1, 2])
            run_concurrently(*works)

    def step_all(self) -> None:
        for row in all_rows(Backfill):
            while advance(row.id, clock=lambda: self.now_ms):
                pass
        self.check_states()

    def pass_time(self) -> None:
        self.now_ms += self.random.choice([1_000, 5_000, 30_000, 90_000])
        scan(node="one", zone=ZONE, now_ms=self.now_ms)
        if self.random.random() < 0.5:
            tick_explained(self.now_ms)
        resume(now_ms=self.now_ms)
        look(self.now_ms)
        end_waits(zone=ZONE, now_ms=self.now_ms)

    def claim(self) -> None:
        self.note_fires()
        by, most = claimer(), self.random.choice([1, 3, 1_000])
        due = as_due(
            [each for each in all_rows(Fire, state="PENDING") if each.due_time <= self.now_ms][:most]
        )
        batches = [transact(lambda session: claim(session, due, by, now_ms=self.now_ms))]
        limited = batches[0].limited + find_ready()
        batches.append(transact(lambda session: claim_limited(session, limited, by, now_ms=self.now_ms)))
        self.note_fires()
        for expanded in [batch.expanded for batch in batches if batch.expanded]:
            for limits in (False, True):
                self.note_claimed(
                    transact(partial(self._claim, due=expanded, by=by, is_limited=limits)) for _ in (0,)
                )
        self.note_claimed(batches)

    def _claim(self, session: Session, *, due: Any, by: Any, is_limited: bool) -> ClaimBatch:
        return (claim_limited if is_limited else claim)(session, due, by, now_ms=self.now_ms)

    def note_fires(self) -> None:
        for fire in all_rows(Fire):
            self.keys[fire.id] = fire.fire_key

    def note_claimed(self, batches: Iterable[ClaimBatch]) -> None:
        for batch in batches:
            for run in batch.claimed:
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

    # What becomes of runs

    def pick(self) -> int | None:
        return self.random.choice(sorted(self.sent)) if self.sent else None

    def record(self) -> None:
        if (log_id := self.pick()) is not None:
            fate = self.random.choice([Fate.ACCEPTED, Fate.ACCEPTED, Fate.UNKNOWN])
            record_sent(sent(self.sent[log_id], fate), now_ms=self.now_ms)

    def lose(self) -> None:
        """A node dies before it has sent a run."""
        if (log_id := self.pick()) is not None and all_rows(Fire, log_id=log_id, state="SENDING"):
            give_back_all(self.sent.pop(log_id))

    def end(self) -> None:
        for _ in range(self.random.choice([1, 1, 3])):
            if (log_id := self.pick()) is not None:
                del self.sent[log_id]
                code = self.random.choice([200, 200, 200, 200, 500])
                self.note_end(
                    log_id,
                    "succeeded" if code == 200 else "failed",
                    call_back(log_id, code, now_ms=self.now_ms),
                )
                if self.random.random() < 0.2:
                    call_back(log_id, 500, now_ms=self.now_ms)

    def kill(self) -> None:
        if (log_id := self.pick()) is not None:
            del self.sent[log_id]
            killed = Result(log_id, Source.KILL, 500, "killed")
            self.note_end(log_id, "failed", bool(end(killed, now_ms=self.now_ms).won))

    def unresolve(self) -> None:
        if (log_id := self.pick()) is not None:
            del self.sent[log_id]
            self.note_end(log_id, "failed", unresolve(log_id, now_ms=self.now_ms))
            self.unresolved.append(log_id)

    def end_late(self) -> None:
        if self.unresolved:
            log_id = self.unresolved.pop(self.random.randrange(len(self.unresolved)))
            code = self.random.choice([200, 500])
            if call_back(log_id, code, now_ms=self.now_ms) and log_id in self.origins:
                run = self.run_of(log_id)
                run.is_open_to_doubt = True
                if run.logs[-1] == log_id:
                    run.outcome = "succeeded" if code == 200 else "failed"
                    run.is_retried = self.has_retry(log_id)

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

    # What else happens

    def trigger(self) -> None:
        """Something else runs for an instant."""
        job = self.random.choice([each for each in self.jobs if each is not self.delayed])
        if all_rows(Job, id=job.id):
            at_ms = T0 // MINUTE_MS * MINUTE_MS - self.random.randint(0, 8) * MINUTE_MS
            make_fire(job, due_time=self.now_ms, trigger_type="MANUAL", logical_ms=at_ms)

    def edit(self) -> None:
        job = self.random.choice(self.jobs)
        columns = self.random.choice(
            [
                {"max_running": self.random.randint(0, 2)},
                {"when_full": self.random.choice(["wait", "skip", "newest"])},
                {"executor_fail_retry_count": self.random.randint(0, 2)},
                {"max_wait_s": self.random.choice([0, 60])},
                {"executor_param": "edited"},
            ]
        )
        if job in self.live:
            columns = {"executor_fail_retry_count": self.random.randint(0, 2)}
        with session_scope() as session:
            session.execute(update(Job).where(Job.id == job.id).values(**columns))

    def switch(self) -> None:
        with session_scope() as session:
            job = session.get(Job, self.random.choice(self.live).id)
            if job is not None:
                (switch_off if job.trigger_status else switch_on)(
                    session, [job.id], clock=lambda: self.now_ms
                )

    def black_out(self) -> None:
        if self.blackouts and self.random.random() < 0.6:
            end_blackout(self.blackouts.pop(), now_ms=self.now_ms)
        else:
            until_ms = self.now_ms // 1_000 * 1_000 + 120_000
            self.blackouts.append(add_blackout(self.now_ms, until_ms, now_ms=self.now_ms))

    def clear(self) -> None:
        """Clear the log of a job: rows go with their fires, also those of runs in progress."""
        job = self.random.choice(self.jobs[2:] or [self.delayed])
        bounds = clearing.Clearing(0, job.id)
        logs = {log.id for log in all_rows(JobLog, job_id=job.id)}
        transact(lambda session: clearing.clear_batch(session, bounds))
        self.forget(logs - {log.id for log in all_rows(JobLog, job_id=job.id)})

    def forget(self, logs: set[int]) -> None:
        self.cleared |= logs
        for log_id in logs:
            self.sent.pop(log_id, None)
            if log_id in self.origins:
                run = self.run_of(log_id)
                run.is_open_to_doubt = True
                if run.logs[-1] == log_id:
                    run.outcome = run.outcome or "failed"

    def remove(self) -> None:
        """Delete a job."""
        job = self.random.choice(self.jobs[2:] or [self.delayed])
        if job is self.delayed or not all_rows(Job, id=job.id):
            return
        logs = {log.id for log in all_rows(JobLog, job_id=job.id)}
        transact(lambda session: remove_job(session, job.id, actor=ACTOR, now_ms=self.now_ms))
        self.forget(logs)
        self.jobs.remove(job)
        for row in all_rows(Backfill, job_id=job.id):
            while advance(row.id, clock=lambda: self.now_ms):
                pass
            assert all_rows(Backfill, id=row.id)[0].state not in ACTIVE

    # What holds

    def check(self) -> None:
        """Check what holds after everything that happens."""
        self.note_fires()
        fires = all_rows(Fire)
        open_by_backfill = self.open_instants(fires)
        fire_rows = {row.id: row for row in all_rows(Backfill)}
        for (backfill_id, attempt, at_ms), _ in open_by_backfill.items():
            self.begun[backfill_id, attempt].add(at_ms)
        for backfill_id, attempt, at_ms in self.instants:
            self.begun[backfill_id, attempt].add(at_ms)
        for (backfill_id, attempt), begun in self.begun.items():
            order = self.orders[backfill_id, attempt]
            assert begun == set(order[: len(begun)]), "out of order"
        for row in fire_rows.values():
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
        assert [row.trigger_next_time for row in all_rows(Job, id=self.delayed.id)] == [DELAYED_MS]

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
                instant = self.instants.get(key) if each.attempt else None
                expected = self.state_of(instant, has_fires=fires[key] > 0)
                assert each.state in expected, (row.id, row.state, key, each.state, expected, instant)
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

    def state_of(self, instant: Instant | None, *, has_fires: bool) -> set[str]:
        if has_fires:
            return {"running"}
        if instant is None:
            return {"waiting", "withdrawn"}
        runs = instant.runs.values()
        if any(not run.outcome for run in runs):
            return {"running"}
        outcomes = {"failed"} if any(run.outcome == "failed" for run in runs) else {"succeeded"}
        doubt = any(run.is_open_to_doubt for run in runs)
        return {"succeeded", "failed", "withdrawn"} if doubt else outcomes

    def settle(self) -> None:
        """Let everything end, and check that it does."""
        while self.blackouts:
            end_blackout(self.blackouts.pop(), now_ms=self.now_ms)
        for row in all_rows(Backfill, state="paused"):
            change_backfill(row.id, "resume", now_ms=self.now_ms)
        while self.unresolved:  # They hold slots.
            self.end_late()
        for _ in range(300):
            self.pass_time()
            self.claim()
            while self.sent:
                log_id = self.sent.popitem()[0]
                self.note_end(log_id, "succeeded", call_back(log_id, now_ms=self.now_ms))
            self.step_all()
            if not [row for row in all_rows(Backfill) if row.state in ACTIVE]:
                break
        self.check()
        assert not [(row.id, row.state) for row in all_rows(Backfill) if row.state in ACTIVE]
        self.now_ms += 3_600_000
        look(self.now_ms)
        assert not [row.id for row in all_rows(Round, state="open") if row.round_key.startswith("c:")]
        tick_explained(self.now_ms)
        for job in self.live:
            tally = account_of(job, self.now_ms - 3_600_000).tally
            assert (tally.unexplained, tally.unexpected) == (0, 0), tally
