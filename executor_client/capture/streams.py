"""Capture of ``sys.stdout`` and ``sys.stderr``: writes what a handler prints into the log of its run."""

import io
import multiprocessing.util
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from executor_client.logs.lines import LineBuffer
from executor_client.runs.context import current_run

NAMES = ("stdout", "stderr")
#: code of ``multiprocessing`` that flushes at the end of a process; private, so perhaps absent
_AT_END = getattr(getattr(multiprocessing.util, "_flush_std_streams", None), "__code__", None)


class _Thread(threading.local):
    #: True while the program's own logging handlers write a record
    logging = False


#: state of the calling thread
this_thread = _Thread()


@contextmanager
def logging_writes() -> Iterator[None]:
    """Write to the streams of the program inside the ``with`` block, as its logging handlers do."""
    this_thread.logging = True
    try:
        yield
    finally:
        this_thread.logging = False


class RunStream:
    """Stream that writes into the log of the current run; outside a run, into the stream that it replaces.

    The program's logging handlers also write into the replaced stream.
    """

    def __init__(self, name: str, original: Any, for_logging: Any) -> None:
        """``for_logging`` gets what logging handlers write during a run; None: they write nothing."""
        self._name = name
        self.original = original
        self._for_logging = for_logging
        self.buffer = _Bytes(self)

    def write(self, text: str) -> int:
        """Write text; return its length."""
        lines = _lines_of_run()
        if lines is None:
            stream = self._outside()
            return len(text) if stream is None else int(stream.write(text) or 0)
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        lines.write(self._name, text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several pieces of text."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Flush the replaced stream; a line of a run is written as soon as it is complete.

        A forked process may end without another call, so it writes unfinished lines; those that overwrite
        themselves, such as a progress bar, only when ``multiprocessing`` flushes at its end.
        """
        lines = _lines_of_run()
        if lines is not None and lines.is_copy:
            lines.flush(at_end=sys._getframe(1).f_code is _AT_END)
        elif lines is None and self._outside() is not None:
            self._outside().flush()

    def isatty(self) -> bool:
        """Return whether this is a terminal; the log of a run is not."""
        return current_run() is None and self.original is not None and bool(self.original.isatty())

    def write_bytes(self, data: bytes) -> int:
        """Write bytes, for ``sys.stdout.buffer``."""
        lines = _lines_of_run()
        if lines is not None:
            lines.write_bytes(self._name, bytes(data))
            return len(data)
        stream = self._outside()
        return len(data) if stream is None else int(stream.buffer.write(data))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["original"], name)

    def _outside(self) -> Any:
        """Return the stream for text that belongs to no run."""
        return self._for_logging if this_thread.logging and current_run() is not None else self.original


class _Bytes(io.BufferedIOBase):
    """``buffer`` of a RunStream."""

    def __init__(self, stream: RunStream) -> None:
        self._stream = stream

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any) -> int:
        """Write bytes; return their number."""
        return self._stream.write_bytes(data)

    def flush(self) -> None:
        """Flush the stream."""
        self._stream.flush()

    def fileno(self) -> int:
        """Return the descriptor of the replaced stream."""
        return int(self._stream.original.fileno())

    def close(self) -> None:
        """Do nothing: the stream belongs to the program."""


def _lines_of_run() -> LineBuffer | None:
    """Return the buffer of the calling thread's output, None if it is not captured."""
    run = current_run()
    return None if run is None or this_thread.logging else run._output


class StreamCapture:
    """Replaces ``sys.stdout`` and ``sys.stderr``."""

    def __init__(self, *, logging_writes: bool = True) -> None:
        self._logging_writes = logging_writes

    def install(self) -> None:
        """Replace the streams, also new ones that a test has set since."""
        for name in NAMES:
            stream = getattr(sys, name)
            if not isinstance(stream, RunStream):
                setattr(sys, name, RunStream(name, stream, stream if self._logging_writes else None))

    def remove(self) -> None:
        """Restore the replaced streams."""
        for name in NAMES:
            while isinstance(stream := getattr(sys, name), RunStream):
                setattr(sys, name, stream.original)
