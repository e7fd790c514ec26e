"""Planned and unclaimed fires of a schedule: selection, and locking against claims."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from app.database.engine import session_scope, transact
from app.models.fire import Fire
from app.models.job import Job
from app.store.fires import open as open_fires
from app.store.fires import queue as fires
from app.store.fires import scheduled_fires
from tests.support.factories import T0, all_rows, make_fire, make_job


def withdraw(*jobs: Job) -> dict[int, list[int]]:
    return transact(lambda session: scheduled_fires.withdraw(session, [job.id for job in jobs]))


def make_shards(job: Job, total: int, *, due_time: int, claimed: int = 0) -> list[Fire]:
    """Commit a broadcast expanded into shards, the first of them claimed."""
    states: list[dict[str, Any]] = [{"state": "SENDING", "log_id": 1}] * claimed + [{}] * (total - claimed)
    return [
        make_fire(job, due_time=due_time, sharding_param=f"{index}/{total}", **state)
        for index, state in enumerate(states)
    ]


def test_a_withdrawal_takes_only_pending_fires_of_the_schedule(database: str) -> None:
    job, other = make_job(), make_job()
    due = [T0 - 2000, T0, T0 + 4000]
    for at_ms in due:
        make_fire(job, due_time=at_ms)
    make_fire(job, due_time=T0 - 3000, trigger_type="MISFIRE")
    kept = [make_fire(job, trigger_type=kind) for kind in ("MANUAL", "RETRY", "PARENT", "API")]
    kept += [
        make_fire(job, state=state, log_id=1, epoch=1)
        for state in ("ROUTING", "SENDING", "ACCEPTED", "UNKNOWN", "PENDING")
    ]
    kept.append(make_fire(other))
    assert withdraw(job) == {job.id: [*due, T0 - 3000]}
    assert [fire.id for fire in all_rows(Fire)] == [fire.id for fire in kept]
    assert withdraw(job) == withdraw() == {}


def test_a_broadcast_is_withdrawn_as_a_whole_or_not_at_all(database: str) -> None:
    job = make_job()
    make_shards(job, 3, due_time=T0)
    claimed_shards = make_shards(job, 3, due_time=T0 + 1000, claimed=1)
    assert withdraw(job) == {job.id: [T0] * 3}
    assert [fire.id for fire in all_rows(Fire)] == [fire.id for fire in claimed_shards]


def claim_slowly(*, concurrent_call: Callable[[], object]) -> list[Exception]:
    """Lock and mark pending fires as a claim does, with ``concurrent_call`` in a thread; return errors."""
    errors: list[Exception] = []

    def run(act: Callable[[], object]) -> None:
        try:
            act()
        except Exception as exc:  # the test looks at it
            errors.append(exc)

    second = threading.Thread(target=run, args=(concurrent_call,))

    def claim() -> None:
        with session_scope() as session:
            locked = fires.lock_pending(session, [fire.id for fire in all_rows(Fire, state="PENDING")])
            second.start()
            second.join(0.5)
            assert second.is_alive(), "it waits for the claim"
            for fire in locked:
                session.execute(
                    update(Fire)
                    .where(Fire.id == fire.id)
                    .values(state="SENDING", log_id=7, owner="one", epoch=1)
                )

    run(claim)
    second.join(10)
    return errors


def many_fires_under_way() -> None:
    """Fill the table until an index lookup is cheaper than a scan."""
    with session_scope() as session:
        for number in range(300):
            columns = {"state": "ACCEPTED", "log_id": 100 + number, "fire_key": f"under way:{number}"}
            session.add(Fire(job_id=7_000, due_time=T0, trigger_type="CRON", **columns))


def delete_of_job(session: Session, job_id: int) -> None:
    fires.delete_of_jobs(session, [job_id])


def withdraw_of_job(session: Session, job_id: int) -> None:
    scheduled_fires.withdraw(session, [job_id])


@pytest.mark.parametrize(("act", "left"), [(withdraw_of_job, 3), (delete_of_job, 0)])
def test_a_claim_and_a_stop_do_not_deadlock(
    database: str, act: Callable[[Session, int], None], left: int
) -> None:
    if database.startswith("sqlite"):
        pytest.skip("a SQLite writer waits for the other's whole transaction")
    job = make_job()
    for late in range(3):
        make_fire(job, due_time=T0 + late)
    many_fires_under_way()

    def stop() -> None:
        with session_scope() as session:
            act(session, job.id)

    assert claim_slowly(concurrent_call=stop) == []
    assert [fire.state for fire in all_rows(Fire, job_id=job.id)] == ["SENDING"] * left


def test_a_broadcast_expanded_during_a_withdrawal_is_withdrawn(database: str) -> None:
    if database.startswith("sqlite"):
        pytest.skip("a SQLite writer waits for the other's whole transaction")
    job = make_job()
    broadcast = make_fire(job)
    withdrawn: list[dict[int, list[int]]] = []
    second = threading.Thread(target=lambda: withdrawn.append(withdraw(job)))
    with session_scope() as session:
        fires.lock_pending(session, [broadcast.id])
        second.start()
        second.join(0.5)
        for index in range(2):
            key = f"{broadcast.fire_key}:{index}"
            session.add(
                Fire(
                    job_id=job.id, fire_key=key, due_time=T0, trigger_type="CRON", sharding_param=f"{index}/2"
                )
            )
        fires.delete_fires(session, [broadcast.id])
        session.flush()
    second.join(10)
    assert withdrawn == [{job.id: [T0, T0]}]
    assert all_rows(Fire) == []


@pytest.mark.parametrize("by_log", [False, True], ids=["by id", "by log"])
def test_a_delete_does_not_wait_for_other_fires(database: str, by_log: bool) -> None:
    if database.startswith("sqlite"):
        pytest.skip("a SQLite writer waits for the other's whole transaction")
    job = make_job()
    locked, *deleted = [make_fire(job, state="ACCEPTED", log_id=number) for number in range(1, 6)]
    with session_scope() as first:
        open_fires.lock_open(first, [locked.id])
        with session_scope() as second:
            ids = [fire.log_id or 0 for fire in deleted] if by_log else [fire.id for fire in deleted]
            assert (fires.delete_of_logs if by_log else fires.delete_fires)(second, ids) == 4
    assert [fire.id for fire in all_rows(Fire)] == [locked.id]
