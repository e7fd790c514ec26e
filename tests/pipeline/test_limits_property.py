"""Limits over all interleavings: never more runs than slots, and none waits while there is room for it.

Source: docs/reference/limits.md. The slots in use are counted here from the rows, by other code than the
claim's.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from sqlalchemy import delete, update

from app.clock import Millis
from app.database.engine import session_scope, transact
from app.domain.enums import FireState
from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job
from app.models.limit import Limit, LimitUse
from app.models.log import JobLog
from app.models.skip import Skip
from app.pipeline.claim import ClaimBatch
from app.pipeline.claimed_run import ClaimedRun
from app.pipeline.limits.claim_limited import claim_limited, end_waits, find_ready
from app.store.fires.queue import source_of
from tests.pipeline.steps import (
    as_due,
    call_back,
    claim_fires,
    claimer,
    give_back_all,
    run_concurrently,
    unresolve,
)
from tests.support.factories import (
    FIRST,
    SECOND,
    T0,
    THIRD,
    make_fire,
    make_group,
    make_job,
    plain_rows,
    save,
)
from tests.support.plan import every_database

pytestmark = every_database

TABLES = (Fire, JobLog, Skip, LimitUse, Limit, Job, Group)
#: states of fires whose run may be in progress
OPEN = ("ROUTING", "SENDING", "ACCEPTED", "UNKNOWN", "HELD")
#: what counts runs: ``job 3``, of a job with keys ``job 3 acme``; ``group 1``; ``limit 2``
Name = str
#: which of the runs, counted around: what is drawn must not depend on two nodes at once
PICK = st.integers(0, 50)


class Limits(RuleBasedStateMachine):
    """Jobs that share limits, and everything that happens to their runs."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms: Millis = T0
        #: claimed runs without a result, by log id
        self.running: dict[int, ClaimedRun] = {}
        self.unresolved: set[int] = set()
        #: keys of the fires whose caller has forced them
        self.forced: set[str] = set()
        #: log ids of their runs, whose retries keep their slots
        self.forced_runs: set[int] = set()
        self.former: Counter[Name] = Counter()

    @initialize()
    def begin(self) -> None:
        with session_scope() as session:
            for table in TABLES:
                session.execute(delete(table))
        limited = make_group(app_name="limited", address_list=f"{FIRST},{SECOND},{THIRD}", max_running=4).id
        other = make_group(app_name="other", address_list=FIRST).id
        self.database = save(Limit(kind="named", name="database", slots=3))
        self.weights: dict[int, int] = {}
        self.count = 0
        self.jobs = [
            self._job(limited, max_running=1),
            self._job(other, weight=2, max_running=2),
            self._job(limited, weight=1, when_full="skip"),
            self._job(limited, max_running=1, limit_key="${param}", priority=7),
            self._job(limited, weight=1, max_running=1, executor_route_strategy="SHARDING_BROADCAST"),
            self._job(other, max_running=1, when_full="newest", max_wait_s=900),
            self._job(other, max_running=2, when_full="replace", weight=1, delivery="at_least_once"),
            self._job(other),
        ]

    def _job(self, group_id: int, *, weight: int = 0, **fields: Any) -> Job:
        limits = f'[{{"limit":"database","weight":{weight}}}]' if weight else None
        job = make_job(job_group=group_id, limits=limits, executor_fail_retry_count=1, **fields)
        if weight:
            save(LimitUse(job_id=job.id, limit_id=self.database.id, weight=weight))
            self.weights[job.id] = weight
        return job

    @rule(
        number=st.integers(0, 7),
        kind=st.sampled_from(["CRON", "MANUAL"]),
        key=st.sampled_from(["acme", "globex", "initech"]),
        count=st.integers(1, 3),
        is_forced=st.sampled_from([False] * 7 + [True]),
    )
    def trigger(self, number: int, kind: str, key: str, count: int, *, is_forced: bool) -> None:
        for _ in range(count):
            self.count += 1
            admitted = {"admitted_ms": self.now_ms} if is_forced else {}
            fire = make_fire(
                self.jobs[number],
                due_time=self.now_ms,
                trigger_type=kind,
                executor_param=key,
                fire_key=f"property:{self.count}",
                **admitted,
            )
            if is_forced:
                self.forced.add(fire.fire_key)
            self.now_ms += 1

    @rule(seconds=st.integers(1, 2_000))
    def pass_time(self, seconds: int) -> None:
        self.now_ms += seconds * 1000

    @rule(free=st.sampled_from([0, 1, 1_000]))
    def claim(self, free: int) -> None:
        self._keep(claim_due(free, self.now_ms))

    @rule()
    def claim_on_two_nodes(self) -> None:
        due = [fire for fire in plain_rows(Fire) if fire.state in ("PENDING", "WAITING") and not fire.attempt]
        halves = [[fire for fire in due if fire.id % 2 == number] for number in (0, 1)]
        self._keep(run_concurrently(*[partial(claim_with_limits, half, self.now_ms) for half in halves]))

    @rule()
    def look_at_the_list(self) -> None:
        self._keep([look(self.now_ms)])

    @rule(pick=PICK, code=st.sampled_from([200, 500]))
    def report(self, pick: int, code: int) -> None:
        if self.running:
            log_id = sorted(self.running)[pick % len(self.running)]
            del self.running[log_id]
            assert call_back(log_id, code, now_ms=self.now_ms)

    @rule(pick=PICK)
    def lose(self, pick: int) -> None:
        if self.running:
            log_id = sorted(self.running)[pick % len(self.running)]
            del self.running[log_id]
            assert unresolve(log_id, now_ms=self.now_ms)
            self.unresolved.add(log_id)

    @rule(pick=PICK)
    def report_late(self, pick: int) -> None:
        if self.unresolved:
            log_id = sorted(self.unresolved)[pick % len(self.unresolved)]
            self.unresolved.discard(log_id)
            call_back(log_id, now_ms=self.now_ms)

    @rule(pick=PICK)
    def give_back(self, pick: int) -> None:
        if self.running:
            log_id = sorted(self.running)[pick % len(self.running)]
            give_back_all(self.running.pop(log_id))

    @rule(pick=PICK)
    def send_again(self, pick: int) -> None:
        if self.running:
            log_id = sorted(self.running)[pick % len(self.running)]
            fire_id = self.running.pop(log_id).fire_id
            with session_scope() as session:
                session.execute(update(Fire).where(Fire.id == fire_id).values(state="PENDING", owner=""))

    @rule(slots=st.integers(0, 4))
    def edit_limit(self, slots: int) -> None:
        with session_scope() as session:
            session.execute(update(Limit).where(Limit.id == self.database.id).values(slots=slots))
        self.database.slots = slots

    @rule(number=st.integers(0, 7), most=st.integers(0, 3))
    def edit_job(self, number: int, most: int) -> None:
        with session_scope() as session:
            session.execute(update(Job).where(Job.id == self.jobs[number].id).values(max_running=most))
        self.jobs[number].max_running = most

    @rule()
    def end_waits(self) -> None:
        end_waits(zone="Asia/Shanghai", now_ms=self.now_ms)

    @rule()
    def settle(self) -> None:
        while True:
            batches = claim_due(1_000, self.now_ms) + [look(self.now_ms)]
            self._keep(batches)
            if not any(batch.claims or batch.new_fires for batch in batches):
                break
        used, slots = self._used(forced=True), self._slots()
        waiting = sorted(
            (fire for fire in plain_rows(Fire) if fire.state == "WAITING"),
            key=lambda fire: (fire.deadline_ms, fire.id),
        )
        if waiting:
            taken = self._taken(waiting[0])
            is_blocked = [
                used[name] + count > slots[name] and not (used[name] == 0 < slots[name])
                for name, count in taken.items()
            ]
            assert any(is_blocked), (waiting[0].id, waiting[0].waits_for, taken, used, slots)

    @invariant()
    def has_no_run_too_many(self) -> None:
        if not hasattr(self, "jobs"):
            return
        used, slots = self._used(forced=False), self._slots()
        for name, count in used.items():
            # A limit that is edited ends no run; a broadcast may need more than there is.
            most = max(slots[name], self.former[name], 3 if name.startswith(("group", "limit")) else 0)
            assert count <= most, (name, count, slots[name], self.former[name])
        self.former = used

    def _keep(self, batches: list[ClaimBatch]) -> None:
        for batch in batches:
            self.running |= {run.log_id: run for run in batch.claims}
        if self.forced:
            rows = [fire for fire in plain_rows(Fire) if fire.log_id]
            self.forced_runs |= {fire.log_id or 0 for fire in rows if self._is_forced(whole_key(fire))}

    def _slots(self) -> dict[Name, int]:
        slots: defaultdict[Name, int] = defaultdict(lambda: 10**9)
        slots[f"limit {self.database.id}"] = self.database.slots
        slots[f"group {self.jobs[0].job_group}"] = 4
        for job in self.jobs:
            if job.max_running:
                for key in ("", "acme", "globex", "initech"):
                    slots[f"job {job.id} {key}".strip()] = job.max_running
        return slots

    def _taken(self, fire: Fire) -> dict[Name, int]:
        job = next(job for job in self.jobs if job.id == fire.job_id)
        is_broadcast = job.executor_route_strategy == "SHARDING_BROADCAST"
        shards = 3 if is_broadcast and not fire.sharding_param else 1
        key = fire.limit_key if job.limit_key else ""
        taken = {f"job {job.id} {key}".strip(): 1, f"group {job.job_group}": shards}
        if weight := self.weights.get(job.id):
            taken[f"limit {self.database.id}"] = weight * shards
        return taken

    def _used(self, *, forced: bool) -> Counter[Name]:
        used: Counter[Name] = Counter()
        seen: set[tuple[int, str]] = set()
        for fire in plain_rows(Fire):
            is_open = fire.state in OPEN or (
                fire.state == "PENDING" and (fire.admitted_ms > 0 or fire.attempt > 0)
            )
            whole = (fire.job_id, whole_key(fire))
            if not is_open or (not forced and self._is_forced(whole[1])):
                continue
            taken = self._taken(fire)
            if whole in seen:
                taken = {name: count for name, count in taken.items() if not name.startswith("job")}
            seen.add(whole)
            used.update(taken)
        return used

    def _is_forced(self, key: str) -> bool:
        return key in self.forced or (key.startswith("retry:") and source_of(key) in self.forced_runs)


def whole_key(fire: Fire) -> str:
    """Return the key of a fire without the number of its shard."""
    return fire.fire_key.rpartition(":")[0] if fire.sharding_param else fire.fire_key


def claim_due(free: int, now_ms: Millis) -> list[ClaimBatch]:
    """Claim all due fires, then those with limits, as a dispatcher does."""
    by = claimer(capacity=lambda _: free)
    pending = [fire for fire in plain_rows(Fire) if fire.state == FireState.PENDING]
    batch = claim_fires(pending, by, now_ms=now_ms)
    limited = transact(lambda session: claim_limited(session, batch.limited_fires, by, now_ms=now_ms))
    return [
        batch,
        limited,
        claim_fires([fire for fire in plain_rows(Fire) if fire.admitted_ms], by, now_ms=now_ms),
    ]


def claim_with_limits(fires: Sequence[Fire], now_ms: Millis) -> ClaimBatch:
    """Claim fires as those with limits."""
    return transact(lambda session: claim_limited(session, as_due(fires), claimer(), now_ms=now_ms))


def look(now_ms: Millis) -> ClaimBatch:
    """Claim the waiting fires that have slots by now."""
    ready = find_ready()
    return transact(lambda session: claim_limited(session, ready, claimer(), now_ms=now_ms))


def test_there_is_never_a_run_too_many(database: str, pytestconfig: pytest.Config) -> None:
    run_state_machine_as_test(
        Limits,
        settings=settings(
            max_examples=150 if pytestconfig.getoption("all") else 50,
            stateful_step_count=30,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
