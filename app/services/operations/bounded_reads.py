"""Bounded reads: queries of monitors end within ANSWER_S, even if the database hangs.

A driver waits XXL_JOB_DATABASE_ANSWER_S for a server that hangs; monitors give up sooner.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from app.database.engine import read_scope

#: seconds within which the database has to answer; Prometheus gives up after 10
ANSWER_S = 5.0

T = TypeVar("T")


class BoundedReader:
    """Reads in a thread of its own; starts no second one while the first waits for a database that hangs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest: Future[Any] | None = None

    def read(self, work: Callable[[Session], T]) -> T:
        """Return what ``work`` returns, in a reading transaction.

        Raises the error of ``work``, and OperationalError if it takes longer than ANSWER_S, or if an earlier
        one that did has not ended yet.
        """
        future: Future[T] = Future()
        with self._lock:
            if self._latest is None or self._latest.done():
                name = "bounded-read"
                threading.Thread(target=_run, args=(work, future), name=name, daemon=True).start()
                self._latest = future
                with suppress(TimeoutError):
                    return future.result(ANSWER_S)
        reason = TimeoutError(f"no answer within {ANSWER_S:g} s")
        raise OperationalError("", None, reason, connection_invalidated=True)


def _run(work: Callable[[Session], T], future: Future[T]) -> None:
    try:
        with read_scope() as session:
            answer = work(session)
    except Exception as exc:  # raised by the caller, unless it has given up
        future.set_exception(exc)
    else:
        future.set_result(answer)
