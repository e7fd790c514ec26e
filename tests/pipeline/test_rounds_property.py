"""Rounds over all interleavings: one run for each that has started, none for the others, and none that hangs.

Source: docs/reference/rounds.md.
"""

from collections import Counter
from functools import partial
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from sqlalchemy import delete

from app.clock import Millis
from app.database.engine import session_scope
from app.domain.rounds.evaluation import RoundArrival, evaluate
from app.domain.rounds.kinds import ArrivalOutcome, RoundState
from app.domain.rounds.runs_after import parse_runs_after
from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.models.round import After, Arrival, Round
from app.models.skip import Skip
from tests.pipeline.round_steps import claim_due, follow, look
from tests.pipeline.steps import call_back, run_concurrently, unresolve
from tests.support.factories import (
    FIRST,
    SECOND,
    T0,
    all_rows,
    make_fire,
    make_group,
    make_job,
    only_row,
    plain_rows,
)
from tests.support.plan import every_database

pytestmark = every_database

TABLES = (Fire, JobLog, Skip, Arrival, Round, After, Job, Group)
PICK = st.integers(0, 50)
MINUTE: Millis = 60_000


class Rounds(RuleBasedStateMachine):
    """Jobs that run after each other, and everything that happens to their runs."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms: Millis = T0
        self.running: list[int] = []
        self.unresolved: list[int] = []
        self.ended: list[int] = []

    @initialize()
    def begin(self) -> None:
        with session_scope() as session:
            for table in TABLES:
                session.execute(delete(table))
        self.group = make_group(app_name="demo", address_list=f"{FIRST},{SECOND}").id
        first, second = self._job(executor_fail_retry_count=1), self._job(schedule_type="CRON")
        shards = self._job(schedule_type="CRON", executor_route_strategy="SHARDING_BROADCAST")
        self.sources = [first, second, shards]
        join = follow(first, second, shards, job=self._job())
        some = follow(first, second, shards, job=self._job(), rule="k_of_n", k=2, shards="any")
        ended = follow(join, some, job=self._job(), rule="all_ended", deadline_s=600, at_deadline="run")
        since = follow(first, second, job=self._job(), round="since_last")
        gate = follow(first, join, job=self._job(schedule_type="CRON"), deadline_s=900)
        often = follow(first, job=self._job(schedule_type="CRON"), round="since_last", deadline_s=900)
        self.followers = [join, some, ended, since, gate, often, follow(gate, job=self._job(), round="day")]
        self.rules = {job.id: parse_runs_after(job.runs_after) for job in all_rows(Job)}
        self.gates, self.often = {gate.id: gate, often.id: often}, often

    def _job(self, **fields: Any) -> Job:
        return make_job(job_group=self.group, **fields)

    @rule(number=st.integers(0, 4), instant=st.integers(0, 2))
    def fall_due(self, number: int, instant: int) -> None:
        job = [*self.sources, *self.gates.values()][number]
        due_ms = T0 + instant * MINUTE
        key = f"cron:{job.id}:{due_ms}:{len(plain_rows(JobLog))}"
        if not all_rows(Fire, fire_key=key):
            make_fire(job, due_time=due_ms, fire_key=key)
        self.now_ms = max(self.now_ms, due_ms)

    @rule(instant=st.integers(0, 2))
    def fall_due_together(self, instant: int) -> None:
        for number in range(3):
            self.fall_due(number, instant)

    @rule()
    def claim(self) -> None:
        self.running += [each.log_id for each in claim_due(self.now_ms)]

    @rule(pick=PICK, code=st.sampled_from([200, 200, 200, 500]), is_repeated=st.booleans())
    def end(self, pick: int, code: int, *, is_repeated: bool) -> None:
        if self.running:
            log_id = self.running.pop(pick % len(self.running))
            call_back(log_id, code, now_ms=self.now_ms)
            if is_repeated:
                call_back(log_id, 500, now_ms=self.now_ms)
            self.ended.append(log_id)

    @rule(code=st.sampled_from([200, 200, 500]))
    def end_all_at_once(self, code: int) -> None:
        log_ids, self.running = self.running[:4], self.running[4:]
        if log_ids:
            run_concurrently(*(partial(call_back, log_id, code, now_ms=self.now_ms) for log_id in log_ids))
            self.ended += log_ids

    @rule(pick=PICK)
    def lose(self, pick: int) -> None:
        if self.running:
            log_id = self.running.pop(pick % len(self.running))
            unresolve(log_id, now_ms=self.now_ms)
            self.unresolved.append(log_id)

    @rule(pick=PICK, code=st.sampled_from([200, 500]))
    def end_late(self, pick: int, code: int) -> None:
        if self.unresolved:
            call_back(self.unresolved.pop(pick % len(self.unresolved)), code, now_ms=self.now_ms)

    @rule(pick=PICK)
    def run_again(self, pick: int) -> None:
        if self.ended:
            log = only_row(JobLog, id=self.ended[pick % len(self.ended)])
            job = only_row(Job, id=log.job_id)
            make_fire(
                job,
                due_time=self.now_ms,
                trigger_type="MANUAL",
                logical_ms=log.logical_ms,
                repeats_log_id=log.id,
                round_id=log.round_id,
            )

    @rule(seconds=st.sampled_from([1, 60, 600]))
    def wait(self, seconds: int) -> None:
        self.now_ms += seconds * 1_000
        look(self.now_ms)

    @invariant()
    def each_started_round_has_one_run(self) -> None:
        fires = plain_rows(Fire)
        runs = Counter(fire.round_id for fire in fires if fire.trigger_type == "AFTER")
        with_fire = {fire.log_id for fire in fires}
        for log in plain_rows(JobLog):
            if log.trigger_type == "AFTER" and log.id not in with_fire:
                runs[log.round_id] += 1
        for row in plain_rows(Round):
            is_gate = row.job_id in self.gates
            if row.state == "started" and not is_gate:
                assert runs[row.id] == 1, (row.id, row.round_key)
            else:
                assert runs[row.id] <= is_gate, (row.id, row.state)

    @invariant()
    def no_instant_runs_before_its_round(self) -> None:
        state_by_id = {row.id: row.state for row in plain_rows(Round)}
        for log in plain_rows(JobLog):
            assert log.job_id not in self.gates or state_by_id[log.round_id] == "started"
        for fire in plain_rows(Fire):
            assert fire.state != "GATED" or fire.round_id in state_by_id

    @invariant()
    def a_round_since_the_last_one_has_one_instant(self) -> None:
        fires = [row for row in plain_rows(Fire) if row.job_id == self.often.id]
        logs = [row for row in plain_rows(JobLog) if row.job_id == self.often.id]
        with_log = {log.id for log in logs}
        first = [each.round_id for each in logs if each.trigger_type == "CRON"]
        first += [
            each.round_id for each in fires if each.trigger_type == "CRON" and each.log_id not in with_log
        ]
        assert max(Counter(each for each in first if each is not None).values(), default=0) <= 1

    @invariant()
    def open_rounds_can_not_be_decided_and_others_have_a_cause(self) -> None:
        logs = {log.id for log in plain_rows(JobLog)}
        arrived: dict[int, list[RoundArrival]] = {}
        for row in plain_rows(Arrival):
            value = RoundArrival(
                row.predecessor_id,
                row.shard,
                row.total,
                ArrivalOutcome(row.outcome),
                row.at_ms,
                row.log_id,
                row.reason,
            )
            arrived.setdefault(row.round_id, []).append(value)
        for row in plain_rows(Round):
            value = self.rules[row.job_id]
            assert value is not None
            if row.state == "open":
                assert evaluate(value, arrived.get(row.id, [])).state is RoundState.OPEN
            if row.state == "not_run" and row.reason == "predecessor":
                # What was too late for its own round, or skipped, has no run.
                has_reason = any(each.reason for each in arrived[row.id])
                assert row.cause_log_id in logs or (row.cause_log_id is None and has_reason)


def test_each_round_has_its_run(database: str) -> None:
    run_state_machine_as_test(
        Rounds,
        settings=settings(
            max_examples=40 if database.startswith("sqlite") else 12,
            stateful_step_count=40,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
