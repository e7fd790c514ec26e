"""Batch writer: a thread that writes items in batches, each batch in one transaction.

A commit costs a disk flush; twenty items in one transaction cost hardly more than one. A batch ends at
BATCH_MAX, so that other writers are not held up. If an item makes its batch fail, the batch is halved until
that item is alone; all others are written.
"""

import asyncio
import logging
import queue
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from itertools import accumulate
from typing import Any, TypeVar

from sqlalchemy.orm import Session

from app.database.engine import transact
from app.database.faults import AWAY, data_fault

logger = logging.getLogger(__name__)
Item = TypeVar("Item")
Answer = TypeVar("Answer")
Work = Callable[[Session, Sequence[Item]], Answer]

#: largest batch of ``submit`` and ``write_here``, the sizes of its items added up
BATCH_MAX = 1_000


def _one(_item: object) -> int:
    return 1


class BatchWriter:
    """Batch writer with one thread.

    An event loop uses ``write``, threads with single items use ``submit``.
    """

    def __init__(self, name: str, size_of: Callable[[Any], int] = _one) -> None:
        self._name, self._size_of = name, size_of
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        #: submitted items and their futures, by the work that writes them
        self._waiting: dict[Work[Any, Any], list[tuple[Any, Future[Any]]]] = {}

    async def write(
        self,
        items: Sequence[Item],
        work: Work[Item, Answer],
        *,
        results: list[Answer] | None = None,
        on_poison: Callable[[Item, Exception], None] | None = None,
    ) -> list[Answer]:
        """Write a batch.

        Return ``results``, which gets the answer of each transaction once it is committed. ``on_poison`` is
        called, in the event loop, with each item that cannot be written, and the error; it logs data faults.
        Raises the errors in AWAY: batches without an answer in ``results`` were not written.
        """
        loop, answers = asyncio.get_running_loop(), [] if results is None else results
        future: Future[None] = Future()

        def handle_poison(item: Item, error: Exception) -> None:
            if on_poison is None or data_fault(error) is None:
                logger.exception("not written item=%r", item)
            if on_poison is not None:
                loop.call_soon_threadsafe(on_poison, item, error)

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                _write(items, work, lambda _items, answer: answers.append(answer), handle_poison)
            except Exception as exc:  # The caller's await raises it.
                future.set_exception(exc)
            else:
                future.set_result(None)

        with self._lock:
            self._put(job)
        await asyncio.wrap_future(future)
        return answers

    def submit(self, item: Item, work: Work[Item, Sequence[Answer]], *, timeout_s: float = 30.0) -> Answer:
        """Write an item together with those that other threads submit meanwhile; return its answer.

        ``work`` returns one answer per item, in their order. Raises the error of ``work`` for this item,
        RuntimeError after ``close``, and TimeoutError, after which the item is written only if its write had
        begun.
        """
        future: Future[Answer] = Future()
        with self._lock:
            if work not in self._waiting:
                self._put(lambda: self._write_waiting(work))
                self._waiting[work] = []
            self._waiting[work].append((item, future))
        try:
            return future.result(timeout_s)
        except TimeoutError:
            with self._lock:
                future.cancel()
            raise

    def close(self, timeout_s: float | None = None) -> None:
        """Write the waiting items, then end the thread; wait at most ``timeout_s``."""
        with self._lock:
            self._is_closed = True
            self._jobs.put(None)
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _put(self, job: Callable[[], None]) -> None:
        if self._is_closed:
            raise RuntimeError(f"{self._name} is closed")
        if self._thread is None:
            thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            thread.start()  # On a RuntimeError, the next call tries again.
            self._thread = thread
        self._jobs.put(job)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def _write_waiting(self, work: Work[Any, Sequence[Any]]) -> None:
        """Write batches until no item waits; the next batch accumulates during a write."""
        while batch := self._next_batch(work):
            try:
                _write(batch, _of_pairs(work), _set_results, lambda pair, error: pair[1].set_exception(error))
            except Exception as exc:  # Every caller that still waits raises it.
                for _, future in batch:
                    if not future.done():
                        future.set_exception(exc)

    def _next_batch(self, work: Work[Any, Any]) -> Sequence[tuple[Any, Future[Any]]]:
        with self._lock:
            items = [pair for pair in self._waiting[work] if not pair[1].cancelled()]
            batch = next(_batches(items, lambda pair: self._size_of(pair[0])), [])
            if batch:
                self._waiting[work] = items[len(batch) :]
            else:
                del self._waiting[work]
            for _, future in batch:
                future.set_running_or_notify_cancel()
            return batch


def write_here(
    items: Sequence[Item], work: Work[Item, Sequence[Answer]], size_of: Callable[[Item], int] = _one
) -> list[Answer | Exception]:
    """Write items in the calling thread, in as few transactions as possible.

    Return for each its answer, or the error that prevented it; after one of AWAY it may have been written.
    """
    answers: list[Answer | Exception] = []
    try:
        for batch in _batches(items, size_of):
            _write(
                batch,
                work,
                lambda _items, results: answers.extend(results),
                lambda _item, error: answers.append(error),
            )
    except AWAY as exc:
        answers.extend([exc] * (len(items) - len(answers)))
    return answers


def _batches(items: Sequence[Item], size_of: Callable[[Item], int]) -> Iterator[Sequence[Item]]:
    """Divide items into batches of BATCH_MAX; a larger item is alone."""
    while items:
        count = max(bisect_right(list(accumulate(map(size_of, items))), BATCH_MAX), 1)
        yield items[:count]
        items = items[count:]


def _write(
    items: Sequence[Item],
    work: Work[Item, Answer],
    on_answer: Callable[[Sequence[Item], Answer], None],
    on_poison: Callable[[Item, Exception], None],
) -> None:
    """Write items in one transaction; if an item fails it, write the halves. Raises the errors in AWAY."""
    try:
        answer = transact(lambda session: work(session, items))
    except AWAY:  # Every further attempt would wait for the database again.
        raise
    except Exception as exc:  # ``on_poison`` gets it once the item is alone.
        if len(items) == 1:
            on_poison(items[0], exc)
            return
    else:
        on_answer(items, answer)
        return
    middle = len(items) // 2
    for half in (items[:middle], items[middle:]):
        _write(half, work, on_answer, on_poison)


def _of_pairs(work: Work[Item, Answer]) -> Work[tuple[Item, Future[Any]], Answer]:
    return lambda session, pairs: work(session, [item for item, _ in pairs])


def _set_results(pairs: Sequence[tuple[Any, Future[Any]]], answers: Sequence[Any]) -> None:
    for (_, future), answer in zip(pairs, answers, strict=True):
        future.set_result(answer)
