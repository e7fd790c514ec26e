"""Output of runs: turns what handlers and their processes print into whole, stamped lines of a log."""

import codecs
import threading
from collections.abc import Callable

from executor_client.logs.files import LINE_MAX, broken
from executor_client.wire.clock import local_stamp, now_ms

#: longest line without its time, in characters; a longer one is written in pieces
TEXT_MAX = LINE_MAX - len("2024-05-01 03:04:05 ")


class LineBuffer:
    """Collects the text that the threads of a run print, and writes it by whole lines. Thread-safe."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        # re-entrant: the garbage collector may print a warning while the lock is held
        self._lock = threading.RLock()
        #: stream and thread -> text after the last line end; ``print`` writes text and line end separately
        self._rests: dict[tuple[str, int], str] = {}
        #: stream and thread whose unfinished line overwrites itself
        self._bars: set[tuple[str, int]] = set()
        #: stream and thread -> decoder of its bytes, which may end in the middle of a character
        self._decoders: dict[tuple[str, int], codecs.IncrementalDecoder] = {}
        #: whether this is the copy of a forked process
        self.is_copy = False

    def write(self, stream: str, text: str) -> None:
        """Take a piece of text that the calling thread printed to a stream."""
        key = (stream, threading.get_ident())
        with self._lock:
            whole, mark, rest = (self._rests.pop(key, "") + text).rpartition("\n")
            if mark:
                self._bars.discard(key)
            if "\r" in rest:
                self._bars.add(key)
            rest = _after_return(rest)
            if len(rest) > TEXT_MAX:  # the last piece waits for its line end, which would be an empty line
                whole, mark, rest = f"{whole}{mark}{broken(rest, TEXT_MAX)}".rpartition("\n")
            if rest:
                self._rests[key] = rest
        if mark:
            self._write(stamped(whole + mark))

    def write_bytes(self, stream: str, data: bytes) -> None:
        """Take a piece of UTF-8 that the calling thread wrote to a stream."""
        key = (stream, threading.get_ident())
        with self._lock:
            decoder = self._decoders.setdefault(key, codecs.getincrementaldecoder("utf-8")("replace"))
            text = decoder.decode(data)
        self.write(stream, text)

    def flush(self, *, at_end: bool = True) -> None:
        """Write the unfinished lines; before the end not those that overwrite themselves."""
        with self._lock:
            for key, decoder in self._decoders.items() if at_end else ():
                self._rests[key] = self._rests.get(key, "") + decoder.decode(b"", final=True)
            if at_end:
                self._decoders.clear()
                self._bars.clear()
            ready = [key for key in self._rests if key not in self._bars]
            rests = [rest for key in ready if (rest := self._rests.pop(key)).strip("\r")]
        for rest in rests:
            self._write(stamped(rest))

    def forked(self) -> None:
        """Begin anew in a forked process.

        Another thread may have held the lock; the process before the fork writes its unfinished lines.
        """
        self._lock = threading.RLock()
        self._rests, self._decoders, self._bars = {}, {}, set()
        self.is_copy = True


def stamped(text: str) -> str:
    """Return lines with the time of the log before each: ``2024-05-01 03:04:05 text``."""
    stamp = local_stamp(now_ms())
    shown = "\n".join(_after_return(line.rstrip("\r")) for line in text.removesuffix("\n").split("\n"))
    return "".join(f"{stamp} {line}\n" for line in broken(shown, TEXT_MAX).split("\n"))


def _after_return(line: str) -> str:
    """Return what a terminal shows of a line: a progress bar overwrites itself after a carriage return."""
    start = line.rfind("\r", 0, len(line.rstrip("\r")))
    return line[start + 1 :]
