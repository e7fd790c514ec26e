"""`xxl_job_fire`: unique keys, withdrawal by a stop or an edit, expiry of leases."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

import pytest
from sqlalchemy.orm import Session

from app.clock import LATEST_MS
from app.database.engine import read_scope, session_scope, transact
from app.domain.enums import FireState, TriggerType
from app.models.fire import Fire
from app.models.log import JobLog
from app.models.skip import Skip
from app.store.fires import ended_fires, logs
from app.store.fires import open as open_fires
from app.store.fires import queue as fires
from app.store.fires import sent as sent_fires
from app.store.fires.queue import NewFire
from app.store.jobs import removal
from app.store.jobs.skips import list_skips
from app.store.runs import reporting
from tests.pipeline.steps import run_concurrently
from tests.support.factories import T0, all_rows, make_fire, make_job, make_run, only_row, save

T = TypeVar("T")


def write(work: Callable[[Session], T]) -> T:
    return transact(work)


def once(work: Callable[[Session], T]) -> T:
    """Call the function in one transaction: a lost deadlock is an error."""
    with session_scope() as session:
        return work(session)


def new(key: str, **more: object) -> NewFire:
    return NewFire(key, 7, T0, TriggerType.CRON, **more)  # type: ignore[arg-type]


def test_new_fires_return_their_ids_in_order(database: str) -> None:
    written = write(lambda session: fires.insert_fires(session, [new(f"k{number}") for number in (3, 1, 2)]))
    assert [fire.fire_key for fire in all_rows(Fire)] == ["k3", "k1", "k2"]
    assert [fire.id for fire in written] == [fire.id for fire in all_rows(Fire)]
    assert write(lambda session: fires.insert_fires(session, [])) == []


def test_a_known_key_is_left_out(database: str) -> None:
    write(lambda session: fires.insert_fires(session, [new("a"), new("b")]))
    written = write(lambda session: fires.insert_fires(session, [new("b"), new("c"), new("c")]))
    assert len(written) == 1
    assert [fire.fire_key for fire in all_rows(Fire)] == ["a", "b", "c"]


def test_a_fire_that_nothing_is_to_follow_keeps_its_chain_of_zero(database: str) -> None:
    write(lambda session: fires.insert_fires(session, [new("a", chain=0)]))
    assert only_row(Fire).chain == 0


def test_concurrent_writers_store_a_key_once(database: str) -> None:
    batch = [new(f"k{number}") for number in range(20)]
    run_concurrently(
        *(
            lambda: write(lambda session: fires.insert_unless_known(session, batch, now_ms=T0))
            for _ in range(4)
        )
    )
    assert sorted(fire.fire_key for fire in all_rows(Fire)) == sorted(fire.fire_key for fire in batch)


@pytest.mark.databases("mariadb", "postgresql")
def test_outcomes_of_many_runs_lock_no_other_fire(database: str) -> None:
    """MariaDB joined a list of 1,000 ids, and read all fires for it: claims of other nodes left them out."""
    written = write(
        lambda session: fires.insert_fires(session, [new(f"k{number}") for number in range(1_200)])
    )
    ids = [fire.id for fire in written]
    with session_scope() as recording, session_scope() as claiming:
        assert len(sent_fires.lock_sent(recording, ids[:1_000])) == 1_000
        assert [fire.id for fire in fires.lock_pending(claiming, ids[900:])] == ids[1_000:]


def test_an_id_is_never_used_twice(database: str) -> None:
    (first,) = write(lambda session: fires.insert_fires(session, [new("a")]))
    write(lambda session: fires.delete_fires(session, [first.id]))
    (second,) = write(lambda session: fires.insert_fires(session, [new("b")]))
    assert second.id > first.id


def test_each_manual_run_has_its_own_key(database: str) -> None:
    keys = {
        write(
            lambda session: fires.insert_manual(session, 7, executor_param="", address_list=None, due_ms=T0)
        )
        for _ in range(3)
    }
    assert len(keys) == 3
    for fire in all_rows(Fire):
        assert (fire.trigger_type, fire.due_time, fire.executor_param, fire.owner) == ("MANUAL", T0, "", "")


def test_fires_of_deleted_jobs_and_cleared_runs_are_deleted(database: str) -> None:
    job, other = make_job(), make_job()
    for state in FireState:
        make_fire(job, state=state, log_id=5)
    kept = make_fire(other, log_id=6)
    cleared = make_fire(other, log_id=7)
    assert write(lambda session: fires.delete_of_jobs(session, [job.id])) == len(FireState)
    assert write(lambda session: fires.delete_of_logs(session, [cleared.log_id or 0, 99])) == 1
    assert write(lambda session: fires.delete_of_logs(session, [])) == 0
    assert only_row(Fire).id == kept.id


@pytest.mark.parametrize(
    "delete",
    [
        lambda session, job_id: removal.delete_logs_batch(session, [job_id]),
        lambda session, _: reporting.delete_logs_before(session, before_ms=LATEST_MS, limit=10),
    ],
    ids=["job", "retention"],
)
def test_a_result_and_the_deletion_of_its_run_do_not_deadlock(
    database: str, delete: Callable[[Session, int], int]
) -> None:
    if database.startswith("sqlite"):
        pytest.skip("a SQLite writer waits for the other's whole transaction")
    run = make_run(job := make_job())
    with ThreadPoolExecutor(1) as other:
        with session_scope() as session:
            logs.lock_runs(session, [run.id])
            deleted = other.submit(once, lambda deleting: delete(deleting, job.id))
            wait([deleted], 0.5)
            ended_fires.end_of_logs(session, [run.id])
        assert deleted.result(10) == 1
    assert all_rows(JobLog) == all_rows(Fire) == []


def test_runs_of_the_schedule_and_retries_are_counted_separately(database: str) -> None:
    first_job, second_job = make_job(), make_job()
    for kind in TriggerType:
        make_fire(first_job, trigger_type=kind.value)
    with read_scope() as session:
        assert fires.count_open_scheduled(session, [first_job.id, second_job.id]) == {
            first_job.id: 3,
            second_job.id: 0,
        }


def test_the_runs_of_any_number_of_jobs_are_counted(database: str) -> None:
    fire = make_fire(make_job())
    most = 2**16  # PostgreSQL takes fewer parameters than this
    with read_scope() as session:
        counts = fires.count_open_scheduled(session, range(fire.job_id, fire.job_id + most))
    assert (counts[fire.job_id], sum(counts.values()), len(counts)) == (1, 1, most)


@pytest.mark.parametrize(
    ("state", "lease_ms", "owner", "becomes"),
    [
        ("SENDING", T0 - 1, "one", ("UNKNOWN", "one", 2, T0)),
        ("SENDING", T0, "one", ("SENDING", "one", 2, 0)),
        ("SENDING", T0 + 9000, "dead", ("UNKNOWN", "dead", 2, T0)),
        ("ROUTING", T0 - 1, "one", ("PENDING", "", 1, 0)),  # no byte was sent: this attempt does not count
        ("ROUTING", T0 + 9000, "dead", ("PENDING", "", 1, 0)),
        ("ROUTING", T0 + 9000, "one", ("ROUTING", "one", 2, 0)),
        ("PENDING", 0, "dead", ("PENDING", "dead", 2, 0)),
        ("ACCEPTED", 0, "dead", ("ACCEPTED", "dead", 2, 0)),
        ("UNKNOWN", 0, "one", ("UNKNOWN", "one", 2, 0)),
    ],
)
def test_an_expired_lease_changes_the_state(
    database: str, state: str, lease_ms: int, owner: str, becomes: tuple[str, str, int, int]
) -> None:
    make_fire(make_job(), state=state, lease_until=lease_ms, owner=owner, attempt=2, epoch=3, log_id=5)
    count = write(
        lambda session: open_fires.expire_leases(session, now_ms=T0, dead_owners=["dead"], limit=10)
    )
    fire = only_row(Fire)
    assert (fire.state, fire.owner, fire.attempt, fire.deadline_ms) == becomes
    assert count == (state != becomes[0])
    assert (fire.log_id, fire.epoch) == (5, 3)


def test_two_monitors_expire_a_lease_once(database: str) -> None:
    job = make_job()
    for _ in range(10):
        make_fire(job, state="SENDING", lease_until=T0 - 1, log_id=5)
    counts = run_concurrently(
        *(
            lambda: write(
                lambda session: open_fires.expire_leases(session, now_ms=T0, dead_owners=[], limit=100)
            )
            for _ in range(2)
        )
    )
    assert sum(counts) == 10


def test_a_locked_fire_is_skipped_without_waiting(database: str) -> None:
    if database.startswith("sqlite"):
        pytest.skip("a SQLite writer waits for the other's whole transaction")
    locked, unlocked = make_fire(make_job()), make_fire(make_job())
    with session_scope() as first:
        assert [fire.id for fire in fires.lock_pending(first, [locked.id])] == [locked.id]
        with session_scope() as second:
            assert [fire.id for fire in fires.lock_pending(second, [locked.id, unlocked.id])] == [unlocked.id]


def test_the_newest_skips_of_a_job_come_first(database: str) -> None:
    for number in range(4):
        save(
            Skip(job_id=7, from_ms=number, to_ms=number, skipped=1, reason="misfire", recorded_ms=T0 + number)
        )
    save(Skip(job_id=8, from_ms=9, to_ms=9, skipped=1, reason="misfire", recorded_ms=T0 + 9))
    with read_scope() as session:
        assert [skip.from_ms for skip in list_skips(session, 7, limit=3)] == [3, 2, 1]
