"""Batch writer: items of many threads share transactions; an invalid item fails alone."""

import asyncio
import itertools
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from app.database.batch_writer import BATCH_MAX, BatchWriter, write_here
from app.models.fire import Fire
from tests.support.eventually import eventually


class Work:
    """Records its batches; can be blocked, and can reject some items."""

    def __init__(self, *, invalid: frozenset[int] = frozenset()) -> None:
        self.batches: list[list[int]] = []
        self.started = threading.Event()
        self.go = threading.Event()
        self.go.set()
        self.invalid = invalid

    def __call__(self, _session: Session, items: Sequence[int]) -> list[int]:
        self.started.set()
        self.go.wait(10)
        self.batches.append(list(items))
        if self.invalid & set(items):
            raise ValueError(f"bad {sorted(self.invalid & set(items))}")
        return [item * 10 for item in items]


def submit_while_writing(writer: BatchWriter, work: Any, submit: Any, count: int) -> list[threading.Thread]:
    """Submit 0 to ``count`` - 1 from as many threads, all but the first during the write of the first."""
    work.go.clear()
    threads = [threading.Thread(target=submit, args=(number,)) for number in range(count)]
    threads[0].start()
    assert work.started.wait(10)
    for thread in threads[1:]:
        thread.start()
    eventually(lambda: len(writer._waiting[work]) == count - 1)
    return threads


def release(work: Any, threads: Sequence[threading.Thread]) -> None:
    """Let the work continue and wait for the threads."""
    work.go.set()
    for thread in threads:
        thread.join()


def test_each_item_gets_its_own_answer() -> None:
    writer, work = BatchWriter("test"), Work()
    assert [writer.submit(number, work) for number in range(3)] == [0, 10, 20]
    writer.close()


def test_items_submitted_during_a_write_share_the_next_batch() -> None:
    writer, work = BatchWriter("test"), Work()
    threads = submit_while_writing(writer, work, lambda number: writer.submit(number, work), 30)
    release(work, threads)
    assert [len(batch) for batch in work.batches] == [1, 29]
    writer.close()


def test_a_batch_has_a_maximum_size() -> None:
    writer, work = BatchWriter("test"), Work()
    count = BATCH_MAX + 20
    threads = submit_while_writing(writer, work, lambda number: writer.submit(number, work), count)
    release(work, threads)
    assert [len(batch) for batch in work.batches] == [1, BATCH_MAX, 19]
    assert sorted(number for batch in work.batches for number in batch) == list(range(count))
    writer.close()


def test_a_batch_ends_before_its_items_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.database.batch_writer.BATCH_MAX", 10)
    writer, work = BatchWriter("test", lambda item: item), Work()
    threads = submit_while_writing(writer, work, lambda number: writer.submit(number, work), 13)
    release(work, threads)
    first, *others = work.batches
    assert (first, sorted(number for batch in others for number in batch)) == ([0], list(range(1, 13)))
    assert all(sum(batch) <= 10 or len(batch) == 1 for batch in others)
    assert all(sum(batch) + following[0] > 10 for batch, following in itertools.pairwise(others))
    writer.close()


def test_an_invalid_item_fails_alone() -> None:
    writer, work = BatchWriter("test"), Work(invalid=frozenset({3, 5}))
    answers: dict[int, object] = {}

    def submit(number: int) -> None:
        try:
            answers[number] = writer.submit(number, work)
        except ValueError as exc:
            answers[number] = str(exc)

    release(work, submit_while_writing(writer, work, submit, 10))
    assert answers == {number: f"bad [{number}]" if number in (3, 5) else number * 10 for number in range(10)}
    writer.close()


class Away(Work):
    """Work on an unavailable database."""

    def __call__(self, session: Session, items: Sequence[int]) -> list[int]:
        super().__call__(session, items)
        raise OperationalError("INSERT", {}, Exception("gone"))


def test_an_unavailable_database_fails_a_batch_once() -> None:
    """Not once per item: every attempt may take seconds."""
    writer, work = BatchWriter("test"), Away()
    failed: list[Exception] = []

    def submit(number: int) -> None:
        try:
            writer.submit(number, work)
        except OperationalError as exc:
            failed.append(exc)

    release(work, submit_while_writing(writer, work, submit, 21))
    assert ([len(batch) for batch in work.batches], len(failed)) == ([1, 20], 21)
    writer.close()


def test_items_written_before_the_database_went_away_keep_their_answers() -> None:
    writer = BatchWriter("test")
    answers: dict[int, object] = {}

    class Going(Work):
        def __call__(self, session: Session, items: Sequence[int]) -> list[int]:
            if len(items) == 4:
                raise ValueError("one of them")
            if 3 in items:
                raise OperationalError("INSERT", {}, Exception("away"))
            return super().__call__(session, items)

    work = Going()

    def submit(number: int) -> None:
        try:
            answers[number] = writer.submit(number, work)
        except OperationalError:
            answers[number] = "away"

    threads = submit_while_writing(writer, work, submit, 1)
    for number in (1, 2, 3, 4):
        threads.append(threading.Thread(target=submit, args=(number,)))
        threads[-1].start()
        eventually(lambda number=number: len(writer._waiting[work]) == number)
    release(work, threads)
    assert answers == {0: 0, 1: 10, 2: 20, 3: "away", 4: "away"}
    writer.close()


def test_a_wrong_number_of_answers_fails_the_batch_and_not_the_writer() -> None:
    writer, work = BatchWriter("test"), Work()
    with pytest.raises(ValueError, match="shorter"):
        writer.submit(1, lambda _session, _items: [])
    assert writer.submit(1, work) == 10
    writer.close()


def test_an_item_whose_write_has_begun_is_written_although_its_caller_has_timed_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writer, work = BatchWriter("test"), Work()

    class LateFuture(Future[int]):
        def result(self, timeout: float | None = None) -> int:
            assert work.started.wait(10)
            raise TimeoutError

    work.go.clear()
    monkeypatch.setattr("app.database.batch_writer.Future", LateFuture)
    with pytest.raises(TimeoutError):
        writer.submit(1, work)
    monkeypatch.undo()
    work.go.set()
    assert writer.submit(2, work) == 20
    assert work.batches == [[1], [2]]
    writer.close()


def test_an_item_whose_caller_has_timed_out_before_its_write_is_withdrawn() -> None:
    writer, work = BatchWriter("test"), Work()
    threads = submit_while_writing(writer, work, lambda number: writer.submit(number, work), 2)
    with pytest.raises(TimeoutError):
        writer.submit(7, work, timeout_s=0.01)
    release(work, threads)
    assert work.batches == [[0], [1]]
    writer.close()


def test_close_writes_waiting_items_and_accepts_no_more() -> None:
    writer, work = BatchWriter("test"), Work()
    answers: list[int] = []
    threads = submit_while_writing(
        writer, work, lambda number: answers.append(writer.submit(number, work)), 5
    )
    closing = threading.Thread(target=writer.close)
    closing.start()
    eventually(lambda: writer._is_closed)
    with pytest.raises(RuntimeError, match="test is closed"):
        writer.submit(9, Work())
    release(work, [*threads, closing])
    assert sorted(answers) == [0, 10, 20, 30, 40]


def test_close_waits_no_longer_than_its_timeout() -> None:
    writer, work = BatchWriter("test"), Work()
    threads = submit_while_writing(writer, work, lambda number: writer.submit(number, work), 1)
    writer.close(timeout_s=0.01)
    assert work.batches == []
    release(work, threads)


def test_a_writer_that_was_never_used_has_no_thread_to_wait_for() -> None:
    before = threading.active_count()
    writer = BatchWriter("test")
    writer.close()
    assert (writer._thread, threading.active_count()) == (None, before)


def test_a_thread_that_could_not_start_is_started_by_the_next_item(monkeypatch: pytest.MonkeyPatch) -> None:
    writer, work = BatchWriter("test"), Work()

    def fail(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as at_the_limit:
        at_the_limit.setattr(threading.Thread, "start", fail)
        with pytest.raises(RuntimeError, match="can't start"):
            writer.submit(1, work)
    assert writer.submit(2, work) == 20
    writer.close()


def test_items_written_in_the_calling_thread_have_an_answer_or_an_error_each(database: str) -> None:
    work = Work(invalid=frozenset({2}))
    found = write_here(range(4), work)
    assert (found[:2], str(found[2]), found[3]) == ([0, 10], "bad [2]", 30)
    assert write_here([], work) == []


def test_large_items_are_written_here_in_several_batches(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.database.batch_writer.BATCH_MAX", 10)
    work = Work()
    sizes = [4, 6, 1, 25, 9, 2]
    assert write_here(sizes, work, lambda size: size) == [size * 10 for size in sizes]
    assert work.batches == [[4, 6], [1], [25], [9], [2]]


def test_without_a_database_the_rest_of_the_items_gets_its_error(database: str) -> None:
    lost = OperationalError("COMMIT", None, Exception("connection lost"))

    def work(_session: Session, items: Sequence[int]) -> list[int]:
        if len(items) > 2:
            raise ValueError("too many")
        if 2 in items:
            raise lost
        return [item * 10 for item in items]

    assert write_here(range(4), work) == [0, 10, lost, lost]


def write(items: Sequence[int], work: Any, results: list[Any], **more: Any) -> None:
    """Write one batch from an event loop."""
    writer = BatchWriter("test")
    try:
        asyncio.run(_write(writer, items, work, results, more))
    finally:
        writer.close()


async def _write(
    writer: BatchWriter, items: Sequence[int], work: Any, results: list[Any], more: dict[str, Any]
) -> None:
    await writer.write(items, work, results=results, **more)


def test_an_invalid_item_fails_alone_in_a_loops_batch(database: str) -> None:
    def work(_session: Session, items: Sequence[int]) -> list[int]:
        if 5 in items:
            raise ValueError("five")
        return list(items)

    results: list[list[int]] = []
    poison: list[tuple[int, str]] = []
    write(
        range(8),
        work,
        results,
        on_poison=lambda item, _error: poison.append((item, threading.current_thread().name)),
    )
    assert (results, poison) == ([[0, 1, 2, 3], [4], [6, 7]], [(5, threading.current_thread().name)])


def test_a_loop_knows_what_was_committed_before_the_database_went_away(database: str) -> None:
    def work(session: Session, items: Sequence[int]) -> list[int]:
        if len(items) == 4:
            raise ValueError("one of them")
        if 3 in items:
            raise OperationalError("INSERT", {}, Exception("away"))
        session.get(Fire, 1)
        return list(items)

    results: list[list[int]] = []
    with pytest.raises(OperationalError):
        write([1, 2, 3, 4], work, results)
    assert results == [[1, 2]]
