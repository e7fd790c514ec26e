"""Output capture: copies what handlers and their threads print and log into the logs of their runs.

It replaces ``sys.stdout``, ``sys.stderr`` and a few methods of ``logging.Logger`` and of threads while an
executor is started in the process.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from executor_client.capture.logging import LoggingCapture, RecordSwitch
from executor_client.capture.streams import StreamCapture
from executor_client.capture.threads import ThreadCapture


class _Part(Protocol):
    def install(self) -> None: ...

    def remove(self) -> None: ...


class _SharedPart:
    """Part of the capture, installed while at least one executor of the process uses it."""

    def __init__(self, part: _Part) -> None:
        self.part = part
        self.users = 0


_lock = threading.Lock()
_record_switch = RecordSwitch()
_threads = _SharedPart(ThreadCapture())
_logging = _SharedPart(LoggingCapture(_record_switch))
_streams = _SharedPart(StreamCapture())
_records = _SharedPart(_record_switch)


class Capture:
    """Capture for one executor."""

    def __init__(self, *, output: bool | None, records: bool | None, default: bool = True) -> None:
        """``output``: capture what is printed; ``records``: copy the records of ``logging``.

        ``default`` is what None means. With neither nothing is replaced.
        """
        has_output, has_records = (default if value is None else value for value in (output, records))
        of_runs = [_threads, _logging] if has_output or has_records else []
        self._parts = [*of_runs, *([_streams] if has_output else []), *([_records] if has_records else [])]

    def install(self) -> None:
        """Begin."""
        with _lock:
            for shared_part in self._parts:
                shared_part.users += 1
                if shared_part.users == 1:
                    shared_part.part.install()

    def remove(self) -> None:
        """End; the last executor restores the replaced objects."""
        with _lock:
            for shared_part in self._parts:
                shared_part.users -= 1
                if shared_part.users == 0:
                    shared_part.part.remove()


@contextmanager
def capturing() -> Iterator[None]:
    """Capture inside the ``with`` block."""
    capture = Capture(output=True, records=True)
    capture.install()
    try:
        yield
    finally:
        capture.remove()


def renew() -> None:
    """Capture streams that were replaced meanwhile, such as those of a test."""
    if _streams.users:
        with _lock:
            if _streams.users:
                _streams.part.install()


def copies_records() -> bool:
    """Return whether records of ``logging`` go into the logs of runs."""
    return _record_switch.is_on
