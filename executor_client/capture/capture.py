"""Capture: what handlers print and log goes into the logs of their runs, also from threads they start.

It replaces ``sys.stdout``, ``sys.stderr`` and a few methods of ``logging.Logger`` and of threads while an
executor is started in the process.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from executor_client.capture.logging import LoggingCapture, RecordCopying
from executor_client.capture.streams import StreamCapture
from executor_client.capture.threads import ThreadCapture


class _Part(Protocol):
    def install(self) -> None: ...

    def remove(self) -> None: ...


class _Shared:
    """Part of the capture that is installed while at least one executor of the process uses it."""

    def __init__(self, part: _Part) -> None:
        self.part = part
        self.users = 0


_lock = threading.Lock()
_copying = RecordCopying()
_threads = _Shared(ThreadCapture())
_logging = _Shared(LoggingCapture(_copying))
_streams = _Shared(StreamCapture())
_records = _Shared(_copying)


class Capture:
    """Capture for one executor."""

    def __init__(self, *, output: bool, records: bool) -> None:
        """``output``: what is printed; ``records``: those of ``logging``."""
        self._parts = [_threads, _logging, *([_streams] if output else []), *([_records] if records else [])]

    def install(self) -> None:
        """Begin."""
        with _lock:
            for shared in self._parts:
                shared.users += 1
                if shared.users == 1:
                    shared.part.install()

    def remove(self) -> None:
        """End; the last executor restores what was replaced."""
        with _lock:
            for shared in self._parts:
                shared.users -= 1
                if shared.users == 0:
                    shared.part.remove()


@contextmanager
def captured() -> Iterator[None]:
    """Capture inside the ``with`` block."""
    capture = Capture(output=True, records=True)
    capture.install()
    try:
        yield
    finally:
        capture.remove()


def renew() -> None:
    """Capture streams that were set since, such as those of a test."""
    if _streams.users:
        with _lock:
            if _streams.users:
                _streams.part.install()


def copies_records() -> bool:
    """Return whether records of ``logging`` go into the logs of runs."""
    return _copying.enabled
