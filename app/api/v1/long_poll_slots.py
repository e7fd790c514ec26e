"""Long-poll slots: limit waiting requests to half of the console's threads.

One user, with all tokens, or one service token gets at most half of the slots, so that others can wait too.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from app.services.accounts.api_tokens import Holder


class Waits:
    """Counter of the requests of this process that wait; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: user or service token -> its waiting requests
        self._slots = Counter[Holder]()

    def take(self, holder: Holder, *, threads: int) -> bool:
        """Take a slot if half of ``threads`` has a free one for this holder; ``give`` returns it."""
        places = max(1, threads // 2)
        with self._lock:
            if self._slots.total() >= places or self._slots[holder] >= max(1, places // 2):
                return False
            self._slots[holder] += 1
            return True

    def give(self, holder: Holder) -> None:
        """Return a slot."""
        with self._lock:
            self._slots[holder] -= 1
            self._slots += Counter()  # drops holders without slots

    @contextmanager
    def place(self, holder: Holder, *, threads: int) -> Iterator[bool]:
        """Hold a slot during the block; False if there is none."""
        has_place = self.take(holder, threads=threads)
        try:
            yield has_place
        finally:
            if has_place:
                self.give(holder)


waits = Waits()
