"""Places for requests that wait: they hold at most half of the console's threads together."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Waits:
    """Counter of the requests of this process that wait; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0

    def take(self, threads: int) -> bool:
        """Take a place, if half of ``threads`` has one left; it is given back by ``give``."""
        with self._lock:
            if self._count >= max(1, threads // 2):
                return False
            self._count += 1
            return True

    def give(self) -> None:
        """Give a place back."""
        with self._lock:
            self._count -= 1

    @contextmanager
    def place(self, threads: int) -> Iterator[bool]:
        """Hold a place during the block, if there is one: True."""
        taken = self.take(threads)
        try:
            yield taken
        finally:
            if taken:
                self.give()


waits = Waits()
