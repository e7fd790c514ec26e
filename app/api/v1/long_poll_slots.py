"""Places for requests that wait: they hold at most half of the console's threads together.

One token holds at most half of these places, so that no program keeps all others from waiting.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Waits:
    """Counter of the requests of this process that wait; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: id of a token -> its requests that wait
        self._held = Counter[int]()

    def take(self, token_id: int, *, threads: int) -> bool:
        """Take a place, if half of ``threads`` has one left for this token; ``give`` gives it back."""
        places = max(1, threads // 2)
        with self._lock:
            if self._held.total() >= places or self._held[token_id] >= max(1, places // 2):
                return False
            self._held[token_id] += 1
            return True

    def give(self, token_id: int) -> None:
        """Give a place back."""
        with self._lock:
            self._held[token_id] -= 1
            self._held += Counter()  # drops tokens that hold none

    @contextmanager
    def place(self, token_id: int, *, threads: int) -> Iterator[bool]:
        """Hold a place during the block, if there is one: True."""
        taken = self.take(token_id, threads=threads)
        try:
            yield taken
        finally:
            if taken:
                self.give(token_id)


waits = Waits()
