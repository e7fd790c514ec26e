"""Jobs with backfills, and everything that happens to their runs: a world for tests."""

import random
from functools import partial
from typing import Any

from sqlalchemy import update
from sqlalchemy.orm import Session

from app.clock import MINUTE_MS, Millis
from app.database.engine import session_scope, transact
from app.domain.runs.evidence import Fate
from app.errors import Conflict
from app.models.backfill import Backfill, BackfillInstant
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.models.round import Round
from app.pipeline.calendars.explaining import tick_explained
from app.pipeline.calendars.pauses import resume
from app.pipeline.claim import ClaimBatch, claim
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
from tests.services.backfills.backfill_model import ACTIVE, DELAYED_MS, Model
from tests.services.backfills.backfill_steps import ACTOR, draft, start
from tests.services.backfills.backfill_steps import change as change_backfill
from tests.support.factories import FIRST, SECOND, T0, all_rows, make_fire, make_group, make_job

ZONE = "UTC"
MINUTELY = {"schedule_type": "CRON", "schedule_conf": "0 * * * * ?"}


class World(Model):
    """The jobs, their backfills, and a clock."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = random.Random(seed)
        self.now_ms: Millis = T0
        self.unresolved: list[int] = []
        self.blackouts: list[int] = []
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
        limited = batches[0].limited_fires + find_ready()
        batches.append(transact(lambda session: claim_limited(session, limited, by, now_ms=self.now_ms)))
        self.note_fires()
        for expanded in [batch.new_fires for batch in batches if self.random.random() < 0.5]:
            for limits in (False, True):
                self.note_claimed(
                    transact(partial(self._claim, due=expanded, by=by, is_limited=limits)) for _ in (0,)
                )
        self.note_claimed(batches)

    def _claim(self, session: Session, *, due: Any, by: Any, is_limited: bool) -> ClaimBatch:
        return (claim_limited if is_limited else claim)(session, due, by, now_ms=self.now_ms)

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
            self.note_end(log_id, "failed", bool(end(killed, now_ms=self.now_ms).run_ids))

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
