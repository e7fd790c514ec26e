"""Background tasks in the database: claimed by one node, fenced by lease and epoch, cancelled, cleaned up."""

import time
from functools import partial
from typing import Any

import pytest
from sqlalchemy import inspect
from sqlalchemy.exc import DBAPIError

from app.clock import Millis
from app.database.engine import read_scope, session_scope, transact
from app.database.faults import Fault, fault_of
from app.models.task import Task, TaskLine
from app.store.nodes import tasks
from tests.pipeline.steps import run_concurrently
from tests.support.factories import T0, all_rows, only_row, save

pytestmark = pytest.mark.usefixtures("database")

LEASE: Millis = 10_000


def row(key: str = "k1", **changes: Any) -> dict[str, Any]:
    values = {"idempotency_key": key, "kind": "bulk", "parameters": "{}", "user_id": 1, "created_ms": T0}
    return values | changes


def make_task(key: str = "k1", **changes: Any) -> Task:
    return save(Task(**row(key, **changes)))


def insert_one(values: dict[str, Any]) -> int:
    return transact(lambda session: tasks.insert_task(session, values)[0].id)


def claim(task_id: int, owner: str = "one", now_ms: Millis = T0) -> Task | None:
    return transact(
        lambda session: tasks.claim_task(session, task_id, owner=owner, now_ms=now_ms, lease_ms=LEASE)
    )


def renew(held: Task, now_ms: Millis = T0) -> Task | None:
    return transact(lambda session: tasks.renew_lease(session, held, now_ms=now_ms, lease_ms=LEASE))


def claimable(now_ms: Millis, **left_out: Any) -> list[int]:
    with read_scope() as session:
        found = tasks.find_claimable(session, now_ms=now_ms, kinds=["bulk"], **left_out)
    return [] if found is None else [found]


def test_the_oldest_task_is_found_unless_it_is_left_out() -> None:
    make_task("k0", kind="of a newer version")
    first, second, third = make_task("k1"), make_task("k2"), make_task("k3", user_id=2)
    assert claimable(T0) == [first.id]
    assert claimable(T0, but=[first.id]) == [second.id]
    assert claimable(T0, but_of=[1]) == [third.id]
    assert claimable(T0, but_of=[1, 2]) == []


def test_a_key_makes_one_task_however_often_it_is_sent_at_once() -> None:
    made = run_concurrently(*(partial(insert_one, row()) for _ in range(4)))
    assert set(made) == {only_row(Task).id}
    with session_scope() as session:
        assert tasks.insert_task(session, row())[1] is False
        assert tasks.insert_task(session, row("k2"))[1] is True


@pytest.mark.parametrize(("state", "is_new"), [("DONE", False), ("FAILED", True), ("CANCELLED", True)])
def test_a_task_that_was_not_done_gives_its_key_to_the_next(state: str, is_new: bool) -> None:
    old = make_task(state=state)
    made = run_concurrently(*(partial(insert_one, row()) for _ in range(3)))
    assert len(set(made)) == 1
    assert (made[0] != old.id) == is_new
    assert len(all_rows(Task)) == 1 + is_new


def test_one_of_many_nodes_claims_a_task() -> None:
    task = make_task()
    winners = run_concurrently(*(lambda name=name: claim(task.id, name) for name in "abcd"))
    assert sum(winner is not None for winner in winners) == 1
    assert claimable(T0 + LEASE) == []
    assert only_row(Task).epoch == 1


@pytest.mark.databases("mariadb", "postgresql")
def test_no_node_and_no_cancel_waits_for_the_piece_of_another() -> None:
    held, other = claim(make_task().id), claim(make_task("k2").id, "two")
    assert held is not None
    assert other is not None
    later = T0 + LEASE + 1
    started = time.monotonic()
    with session_scope() as session:
        assert tasks.renew_lease(session, held, now_ms=T0, lease_ms=LEASE) is not None
        for task, owner in ((held, None), (other, "three")):
            found = claim(task.id, "three", later)
            assert (found.owner if found else None) == owner
        assert transact(partial(tasks.end_leases, owner="one")) == 0
        assert transact(partial(tasks.end_leases, owner="three")) == 1
        with pytest.raises(DBAPIError) as refused, session_scope() as second:
            tasks.cancel_task(second, held.id, now_ms=T0)
    assert fault_of(refused.value) is Fault.BUSY
    assert time.monotonic() - started < 2
    assert transact(lambda session: tasks.cancel_task(session, held.id, now_ms=T0))


def test_an_expired_lease_is_taken_over_once_and_the_old_owner_is_fenced() -> None:
    task = make_task()
    old = claim(task.id)
    assert old is not None
    assert renew(old, T0 + 5_000) is not None
    later = T0 + 5_000 + LEASE + 1
    assert claimable(later) == [task.id]
    winners = [
        each for each in run_concurrently(*(lambda: claim(task.id, "two", later) for _ in range(3))) if each
    ]
    assert [winner.epoch for winner in winners] == [2]
    assert renew(old, later) is None
    assert renew(winners[0], later) is not None
    assert (winners[0].started_ms, winners[0].owner) == (T0, "two")


def test_an_owner_whose_progress_moved_on_without_it_is_fenced() -> None:
    held = claim(make_task().id)
    assert held is not None
    with session_scope() as session:
        moved = session.get_one(Task, held.id)
        moved.done = 1
    assert renew(held) is None


def test_a_restarted_node_holds_nothing() -> None:
    task = make_task()
    claim(task.id)
    other = claim(make_task("k2").id, "two")
    assert transact(lambda session: tasks.end_leases(session, "one")) == 1
    assert claimable(T0) == [task.id]
    assert other is not None
    assert renew(other) is not None


def test_a_task_is_cancelled_until_it_has_ended() -> None:
    waiting, held = make_task(), claim(make_task("k2").id)
    assert held is not None
    for task_id in (waiting.id, held.id):
        assert transact(lambda session, id_=task_id: tasks.cancel_task(session, id_, now_ms=T0 + 1))
        assert not transact(lambda session, id_=task_id: tasks.cancel_task(session, id_, now_ms=T0 + 2))
    assert renew(held) is None
    assert claimable(T0 + 9 * LEASE) == []
    assert {task.state for task in all_rows(Task)} == {"CANCELLED"}


def test_lines_are_counted_and_listed_in_order() -> None:
    task = make_task()
    values = {"task_id": task.id, "name": "x", "detail": None}
    lines = [
        values | {"number": 1, "object_id": 8, "outcome": "refused"},
        values | {"number": 0, "object_id": 7, "outcome": "done"},
    ]
    with session_scope() as session:
        tasks.insert_lines(session, lines)
        assert [line.object_id for line in tasks.find_lines(session, task.id)] == [7, 8]
        assert tasks.count_outcomes(session, task.id) == {"done": 1, "refused": 1}
        assert tasks.find_lines(session, task.id + 1) == []


def test_users_list_their_own_tasks_newest_first() -> None:
    first, other, second = make_task("a"), make_task("b", user_id=2), make_task("c")
    with read_scope() as session:
        page = tasks.list_tasks(session, user_id=1, start=0, length=10)
        assert [task.id for task in page.rows] == [second.id, first.id]
        assert "parameters" in inspect(page.rows[0]).unloaded
        assert tasks.list_tasks(session, user_id=None, start=1, length=1).rows[0].id == other.id


def test_old_tasks_that_have_ended_are_deleted_with_their_lines() -> None:
    old = make_task("a", state="DONE", finished_ms=T0)
    young = make_task("b", state="DONE", finished_ms=T0 + 10)
    going = make_task("c")
    for task in (old, young):
        save(TaskLine(task_id=task.id, number=0, outcome="done"))
    assert transact(lambda session: tasks.delete_ended(session, before_ms=T0 + 10, limit=10)) == 1
    assert [task.id for task in all_rows(Task)] == [young.id, going.id]
    assert only_row(TaskLine).task_id == young.id
