"""Output of runs: turns what handlers and their processes print into whole log lines with timestamps."""

import codecs
import threading
from collections.abc import Callable

from executor_client.logs.files import LINE_MAX, break_lines
from executor_client.wire.clock import local_stamp, now_ms

#: longest line without its timestamp, in characters; a longer one is written in pieces
TEXT_MAX = LINE_MAX - len("2024-05-01 03:04:05 ")


class LineBuffer:
    """Collects the text that the threads of a run print, and writes it by whole lines. Thread-safe."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        # Re-entrant, because the garbage collector may print a warning while the lock is held.
        self._lock = threading.RLock()
        #: stream and thread -> text after the last line end; ``print`` writes text and line end separately
        self._tails: dict[tuple[str, int], str] = {}
        #: stream and thread whose unfinished line overwrites itself, such as a progress bar
        self._bars: set[tuple[str, int]] = set()
        #: stream and thread -> decoder of its bytes, which may end in the middle of a character
        self._decoders: dict[tuple[str, int], codecs.IncrementalDecoder] = {}
        #: whether this is the copy of a forked process
        self.is_copy = False

    def write(self, stream: str, text: str) -> None:
        """Take a piece of text that the calling thread printed to a stream."""
        key = (stream, threading.get_ident())
        with self._lock:
            complete, mark, tail = (self._tails.pop(key, "") + text).rpartition("\n")
            if mark:
                self._bars.discard(key)
            if "\r" in tail:
                self._bars.add(key)
            tail = _after_return(tail)
            if len(tail) > TEXT_MAX:  # the last piece waits, or its line end would become an empty line
                complete, mark, tail = f"{complete}{mark}{break_lines(tail, TEXT_MAX)}".rpartition("\n")
            if tail:
                self._tails[key] = tail
        if mark:
            self._write(stamp_lines(complete + mark))

    def write_bytes(self, stream: str, data: bytes) -> None:
        """Take a piece of UTF-8 that the calling thread wrote to a stream."""
        key = (stream, threading.get_ident())
        with self._lock:
            decoder = self._decoders.setdefault(key, codecs.getincrementaldecoder("utf-8")("replace"))
            text = decoder.decode(data)
        self.write(stream, text)

    def flush(self, *, at_end: bool = True) -> None:
        """Write unfinished lines; before the end, without those that overwrite themselves."""
        with self._lock:
            for key, decoder in self._decoders.items() if at_end else ():
                self._tails[key] = self._tails.get(key, "") + decoder.decode(b"", final=True)
            if at_end:
                self._decoders.clear()
                self._bars.clear()
            ready = [key for key in self._tails if key not in self._bars]
            tails = [tail for key in ready if (tail := self._tails.pop(key)).strip("\r")]
        for tail in tails:
            self._write(stamp_lines(tail))

    def after_fork(self) -> None:
        """Begin anew in a forked process.

        Another thread may have held the lock; the process before the fork writes its unfinished lines.
        """
        self._lock = threading.RLock()
        self._tails, self._decoders, self._bars = {}, {}, set()
        self.is_copy = True


def stamp_lines(text: str) -> str:
    """Prefix each line with a timestamp: ``2024-05-01 03:04:05 text``."""
    stamp = local_stamp(now_ms())
    visible = "\n".join(_after_return(line.rstrip("\r")) for line in text.removesuffix("\n").split("\n"))
    return "".join(f"{stamp} {line}\n" for line in break_lines(visible, TEXT_MAX).split("\n"))


def _after_return(line: str) -> str:
    """Return the visible part of a line: a progress bar overwrites itself after a carriage return."""
    start = line.rfind("\r", 0, len(line.rstrip("\r")))
    return line[start + 1 :]
