"""Backfills with two transactions at once: nothing runs twice, nothing is left, and no deadlock stays."""

from collections.abc import Callable
from functools import partial
from threading import Thread
from typing import Any

import pytest

from app.clock import MINUTE_MS
from app.database.engine import transact
from app.errors import Conflict
from app.models.backfill import Backfill, BackfillInstant
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.services.backfills.steps import advance, step
from app.services.jobs.jobs import remove_job
from app.store.backfills import records, steps
from tests.pipeline.round_steps import claim_due
from tests.pipeline.steps import call_back, run_concurrently
from tests.services.backfills.backfill_steps import (
    ACTOR,
    change,
    draft,
    go_on,
    minute,
    minutely,
    start,
    state,
    states,
)
from tests.support.factories import T0, all_rows

#: SQLite has one writing transaction at a time
pytestmark = pytest.mark.databases("mariadb", "postgresql")
ROUNDS = 8
LATER = T0 + MINUTE_MS


def go(backfill_id: int, *, now_ms: int = T0) -> None:
    advance(backfill_id, clock=lambda: now_ms)


def or_conflict(work: Callable[[], Any]) -> Any:
    """Return what a function does; None if it is refused."""
    try:
        return work()
    except Conflict:
        return None


def end_claimed() -> None:
    """Claim and end all that is due, until nothing is left."""
    while runs := claim_due(LATER):
        for run in runs:
            call_back(run.log_id, now_ms=LATER)


def test_of_two_backfills_of_the_same_instants_one_is_refused(database: str) -> None:
    for _ in range(ROUNDS):
        job = minutely()
        drafts = [draft(4, 2), draft(3, 1)]
        made = run_concurrently(*(partial(or_conflict, partial(start, job, each)) for each in drafts))
        assert sorted(each is None for each in made) == [False, True]
        assert len(all_rows(Backfill, job_id=job.id)) == 1


def test_of_a_resumption_and_a_new_one_one_is_refused(database: str) -> None:
    for _ in range(ROUNDS):
        job = minutely()
        backfill_id = start(job, draft(3, 1))
        [run] = claim_due()
        call_back(run.log_id, 500)
        assert go_on(backfill_id) == "failed"
        done = run_concurrently(
            partial(or_conflict, partial(change, backfill_id, "resume")),
            partial(or_conflict, partial(start, job, draft(3, 1))),
        )
        assert sorted(each is None for each in done) == [False, True]
        assert len(all_rows(Fire, job_id=job.id)) == 1
        for row in all_rows(Backfill, job_id=job.id):
            or_conflict(partial(change, row.id, "cancel"))


def test_one_that_is_resumed_while_old_ones_are_deleted_stays_whole_or_goes(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    backfill_id = start(minutely(), draft(3, 1))
    [run] = claim_due()
    call_back(run.log_id, 500)
    assert go_on(backfill_id) == "failed"
    remove = records.affected

    def remove_slowly(*arguments: Any) -> int:
        if state(backfill_id) == "failed":
            run_concurrently(partial(change, backfill_id, "resume"))
        return remove(*arguments)

    monkeypatch.setattr(records, "affected", remove_slowly)
    assert transact(partial(records.delete_ended, before_ms=LATER, limit=1)) == 0
    assert states(backfill_id) == ["running", "waiting", "waiting"]


@pytest.mark.parametrize("action", ["cancel", "pause", "resume"])
def test_a_change_beside_steps(database: str, action: str) -> None:
    for _ in range(ROUNDS):
        backfill_id = start(minutely(), draft(6, 1, max_running=2))
        runs = claim_due()
        if action == "resume":
            change(backfill_id, "pause")
        call_back(runs[0].log_id)
        run_concurrently(
            partial(go, backfill_id), partial(change, backfill_id, action), partial(go, backfill_id)
        )
        go_on(backfill_id)
        fires = {fire.logical_ms for fire in all_rows(Fire)}
        assert minute(5) in fires
        assert fires <= {minute(5), minute(4)}
        if action == "cancel":
            assert fires == {minute(5)}
            call_back(runs[1].log_id)
            assert go_on(backfill_id) == "cancelled"
            assert states(backfill_id) == ["succeeded"] * 2 + ["withdrawn"] * 4
        else:
            change(backfill_id, "resume")
            while go_on(backfill_id, now_ms=LATER) != "done":
                for fire in all_rows(Fire):
                    call_back(fire.log_id or 0, now_ms=LATER)
                end_claimed()
            assert len(all_rows(JobLog, job_id=all_rows(Backfill)[-1].job_id)) == 6
        assert not all_rows(Fire)


def test_a_claim_beside_a_cancellation(database: str) -> None:
    for _ in range(ROUNDS):
        backfill_id = start(minutely(), draft(4, 1, max_running=4))
        works: list[Callable[[], Any]] = [claim_due, partial(change, backfill_id, "cancel")]
        run_concurrently(*works)
        left = all_rows(Fire)
        assert all(fire.log_id for fire in left)
        for fire in left:
            call_back(fire.log_id or 0)
        assert go_on(backfill_id) == "cancelled"
        ended = states(backfill_id)
        assert ended == ["succeeded" if row.log_id else "withdrawn" for row in rows(backfill_id)]
        assert ended.count("succeeded") == len(left)
        assert not all_rows(Fire)


def rows(backfill_id: int) -> list[BackfillInstant]:
    return sorted(all_rows(BackfillInstant, backfill_id=backfill_id), key=lambda row: row.number)


def test_a_job_is_deleted_beside_steps(database: str) -> None:
    for _ in range(ROUNDS):
        job = minutely(executor_fail_retry_count=1)
        backfill_id = start(job, draft(4, 1, max_running=2))
        first, _ = claim_due()
        call_back(first.log_id, 500)
        remove = partial(remove_job, job_id=job.id, actor=ACTOR, now_ms=T0)
        run_concurrently(partial(go, backfill_id), partial(transact, remove), partial(go, backfill_id))
        assert not all_rows(Job, id=job.id)
        assert go_on(backfill_id) == "cancelled"
        assert not all_rows(Fire)
        assert not set(states(backfill_id)) & {"waiting", "running"}


def test_runs_end_beside_steps(database: str) -> None:
    for _ in range(ROUNDS):
        job = minutely(executor_fail_retry_count=1)
        backfill_id = start(job, draft(6, 1, max_running=3))
        for number in range(20):
            claimed = [run.log_id for run in claim_due(T0 + number * MINUTE_MS)]
            ends = [partial(call_back, log_id, 200 if number else 500) for log_id in claimed]
            run_concurrently(partial(go, backfill_id), *ends, partial(go, backfill_id))
            assert len(all_rows(Fire)) <= 3
            if go_on(backfill_id) == "done":
                break
        assert states(backfill_id) == ["succeeded"] * 6
        logs = all_rows(JobLog, job_id=job.id)
        assert [log.trigger_type for log in logs].count("BACKFILL") == 6


def test_a_run_that_ends_while_a_step_reads_is_no_failure(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = minutely(executor_fail_retry_count=1)
    backfill_id = start(job, draft(2, 1))
    [run] = claim_due()
    call_back(run.log_id, 500)
    reads = list[str]()

    def reading(name: str, read: Callable[..., Any]) -> Callable[..., Any]:
        def read_then_end(*arguments: Any) -> Any:
            found = read(*arguments)
            reads.append(name)
            if len(reads) == 1:
                run_concurrently(end_claimed)
            return found

        return read_then_end

    for name in ("find_fires", "find_retries"):
        monkeypatch.setattr(steps, name, reading(name, getattr(steps, name)))
    for expected in (["running", "waiting"], ["succeeded", "running"]):
        assert go_on(backfill_id, now_ms=LATER) == "running"
        assert states(backfill_id) == expected


def test_two_steps_at_once_start_no_more_than_may_run(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    backfill_id = start(minutely(), draft(4, 1))
    end_claimed()
    find, others = steps.find_instants, list[Thread]()

    def find_slowly(*arguments: Any, **options: Any) -> Any:
        found = find(*arguments, **options)
        if not others and states(backfill_id)[0] == "running":
            others.append(Thread(target=go_on, args=(backfill_id,)))
            others[0].start()
            others[0].join(0.5)
        return found

    monkeypatch.setattr(steps, "find_instants", find_slowly)
    transact(partial(step, backfill_id=backfill_id, clock=lambda: T0))
    for other in others:
        other.join()
    assert others
    assert [fire.logical_ms for fire in all_rows(Fire)] == [minute(3)]
    assert state(backfill_id) == "running"
