"""Group commit: many threads, few writes; each waits for its own item only."""

import threading
from collections.abc import Sequence

import pytest
from sqlalchemy.exc import OperationalError

from app.group_commit import BATCH_MAX, GroupCommit
from tests.eventually import eventually


class Writer:
    """Notes the batches it gets; can be held back, and can refuse some items."""

    def __init__(self, *, bad: frozenset[int] = frozenset()) -> None:
        self.batches: list[list[int]] = []
        self.began = threading.Event()
        self.go = threading.Event()
        self.go.set()
        self.bad = bad

    def __call__(self, items: Sequence[int]) -> list[int]:
        self.began.set()
        self.go.wait(10)
        self.batches.append(list(items))
        if self.bad & set(items):
            raise ValueError(f"bad {sorted(self.bad & set(items))}")
        return [item * 10 for item in items]


def test_an_item_comes_back_with_its_own_answer() -> None:
    group = GroupCommit[int, int]("test", Writer())
    assert [group.submit(number) for number in range(3)] == [0, 10, 20]
    group.close()


def test_what_waits_during_a_write_goes_into_one_batch() -> None:
    writer = Writer()
    group = GroupCommit[int, int]("test", writer)
    writer.go.clear()
    threads = [threading.Thread(target=group.submit, args=(number,)) for number in range(30)]
    threads[0].start()
    assert writer.began.wait(10)
    for thread in threads[1:]:
        thread.start()
    eventually(lambda: len(group._waiting) == 29)
    writer.go.set()
    for thread in threads:
        thread.join()
    assert [len(batch) for batch in writer.batches] == [1, 29]
    group.close()


def test_a_batch_has_a_largest_size() -> None:
    writer = Writer()
    group = GroupCommit[int, int]("test", writer)
    writer.go.clear()
    count = BATCH_MAX + 20
    threads = [threading.Thread(target=group.submit, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(group._waiting) >= count - BATCH_MAX)
    writer.go.set()
    for thread in threads:
        thread.join()
    assert max(len(batch) for batch in writer.batches) <= BATCH_MAX
    assert sorted(number for batch in writer.batches for number in batch) == list(range(count))
    group.close()


def test_a_bad_item_hurts_no_other() -> None:
    writer = Writer(bad=frozenset({3, 5}))
    group = GroupCommit[int, int]("test", writer)
    writer.go.clear()

    answers: dict[int, object] = {}

    def submit(number: int) -> None:
        try:
            answers[number] = group.submit(number)
        except ValueError as exc:
            answers[number] = str(exc)

    threads = [threading.Thread(target=submit, args=(number,)) for number in range(10)]
    threads[0].start()
    assert writer.began.wait(10)
    for thread in threads[1:]:
        thread.start()
    eventually(lambda: len(group._waiting) == 9)
    writer.go.set()
    for thread in threads:
        thread.join()
    assert answers == {number: f"bad [{number}]" if number in (3, 5) else number * 10 for number in range(10)}
    group.close()


def test_a_database_that_is_away_fails_a_batch_once() -> None:
    """Not once for each of its items: every attempt may take seconds."""
    calls: list[int] = []
    began, go = threading.Event(), threading.Event()

    def write(items: Sequence[int]) -> list[int]:
        began.set()
        go.wait(10)
        calls.append(len(items))
        raise OperationalError("INSERT", {}, Exception("gone"))

    group = GroupCommit[int, int]("test", write)
    failed: list[Exception] = []

    def submit(number: int) -> None:
        try:
            group.submit(number)
        except OperationalError as exc:
            failed.append(exc)

    threads = [threading.Thread(target=submit, args=(number,)) for number in range(21)]
    threads[0].start()
    assert began.wait(10)
    for thread in threads[1:]:
        thread.start()
    eventually(lambda: len(group._waiting) == 20)
    go.set()
    for thread in threads:
        thread.join()
    assert (calls, len(failed)) == ([1, 20], 21)
    group.close()


def test_who_waits_too_long_is_told_and_the_item_is_written_all_the_same() -> None:
    writer = Writer()
    group = GroupCommit[int, int]("test", writer)
    writer.go.clear()
    with pytest.raises(TimeoutError):
        group.submit(1, timeout_s=0.01)
    writer.go.set()
    assert group.submit(2) == 20
    assert writer.batches == [[1], [2]]
    group.close()


def test_a_close_writes_what_waits_and_takes_nothing_more() -> None:
    writer = Writer()
    group = GroupCommit[int, int]("test", writer)
    writer.go.clear()
    answers: list[int] = []
    threads = [
        threading.Thread(target=lambda number=number: answers.append(group.submit(number)))
        for number in range(5)
    ]
    threads[0].start()
    assert writer.began.wait(10)
    for thread in threads[1:]:
        thread.start()
    eventually(lambda: len(group._waiting) == 4)
    closing = threading.Thread(target=group.close)
    closing.start()
    eventually(lambda: group._closing)
    with pytest.raises(RuntimeError, match="test is closed"):
        group.submit(9)
    writer.go.set()
    closing.join(5)
    for thread in threads:
        thread.join()
    assert sorted(answers) == [0, 10, 20, 30, 40]


def test_a_group_that_was_never_used_closes_at_once() -> None:
    closing = threading.Thread(target=GroupCommit[int, int]("test", Writer()).close, daemon=True)
    closing.start()
    closing.join(5)
    assert not closing.is_alive()
