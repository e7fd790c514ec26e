"""One writer a process: what several threads want to write goes into one transaction.

A commit costs a flush of the disk; twenty callbacks in one cost hardly more than one. Each caller waits until its own item
is on disk. Lies beside ``db`` because it is neither a statement nor a rule.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

from sqlalchemy.exc import InterfaceError, OperationalError

#: the database is away, full or locked: no fault of an item
AWAY = (OperationalError, InterfaceError)
Item = TypeVar("Item")
Answer = TypeVar("Answer")

#: items of one transaction at most
BATCH_MAX = 500


class GroupCommit(Generic[Item, Answer]):
    """Collects items of many threads and hands them to ``write`` in batches, from one thread of its own.

    While one batch is being written the next one gathers by itself: the busier it is, the larger the batches.
    """

    def __init__(self, name: str, write: Callable[[Sequence[Item]], Sequence[Answer]]) -> None:
        self._name = name
        self._write = write
        self._waiting: list[tuple[Item, Future[Answer]]] = []
        self._condition = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None

    def submit(self, item: Item, *, timeout_s: float = 30.0) -> Answer:
        """Write one item; return its answer once it is committed, raise what ``write`` raised."""
        future: Future[Answer] = Future()
        with self._condition:
            if self._closing:
                raise RuntimeError(f"{self._name} is closed")
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._waiting.append((item, future))
            self._condition.notify()
        return future.result(timeout_s)

    def close(self) -> None:
        """Write what waits, then end the thread."""
        with self._condition:
            self._closing = True
            self._condition.notify()
            thread = self._thread
        if thread is not None:
            thread.join(timeout=10)

    def _run(self) -> None:
        while batch := self._next_batch():
            try:
                answers = self._write([item for item, _ in batch])
            except Exception as exc:  # noqa: BLE001 - handed to every caller, who raises it
                self._fail(batch, exc)
                continue
            for (_, future), answer in zip(batch, answers, strict=True):
                future.set_result(answer)

    def _fail(self, batch: Sequence[tuple[Item, Future[Answer]]], error: Exception) -> None:
        if len(batch) == 1 or isinstance(
            error, AWAY
        ):  # each further attempt would wait for the database again
            for _, future in batch:
                future.set_exception(error)
            return
        for item, future in batch:  # one bad item of a batch hurts no other
            try:
                future.set_result(self._write([item])[0])
            except Exception as exc:  # noqa: BLE001 - handed to its caller
                future.set_exception(exc)

    def _next_batch(self) -> list[tuple[Item, Future[Answer]]]:
        with self._condition:
            while not self._waiting and not self._closing:
                self._condition.wait()
            batch, self._waiting = self._waiting[:BATCH_MAX], self._waiting[BATCH_MAX:]
            return batch
