"""Long-poll slots: limit waiting requests to half of the console's threads.

One token gets at most half of the slots, so that no program keeps all others from waiting.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Waits:
    """Counter of the requests of this process that wait; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: id of a token -> its waiting requests
        self._slots = Counter[int]()

    def take(self, token_id: int, *, threads: int) -> bool:
        """Take a slot if half of ``threads`` has a free one for this token; ``give`` returns it."""
        places = max(1, threads // 2)
        with self._lock:
            if self._slots.total() >= places or self._slots[token_id] >= max(1, places // 2):
                return False
            self._slots[token_id] += 1
            return True

    def give(self, token_id: int) -> None:
        """Return a slot."""
        with self._lock:
            self._slots[token_id] -= 1
            self._slots += Counter()  # drops tokens without slots

    @contextmanager
    def place(self, token_id: int, *, threads: int) -> Iterator[bool]:
        """Hold a slot during the block; False if there is none."""
        has_place = self.take(token_id, threads=threads)
        try:
            yield has_place
        finally:
            if has_place:
                self.give(token_id)


waits = Waits()
