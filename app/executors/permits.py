"""Permits for calls that pages make to executors: the other threads of the console stay free.

An executor that answers slowly holds the thread of the request. Pages share a quarter of the threads for such
calls, so that logins, other pages and ``/api/*`` always have some.
"""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from app.domain.text.texts import N_
from app.errors import TooManyCalls

#: smallest number of calls at a time
CALLS_MIN = 2
#: longest wait for a permit, in seconds; the wait itself holds a thread
WAIT_S = 0.2
RETRY_AFTER_S = 5


class Permits:
    """Limiter of one console process; safe to use from several threads."""

    def __init__(self, threads: int) -> None:
        calls = max(CALLS_MIN, threads // 4)
        self._calls = threading.BoundedSemaphore(calls)
        self._streams = threading.BoundedSemaphore(calls // 2)

    @contextmanager
    def hold(self, *, stream: bool = False) -> Iterator[None]:
        """Hold a permit during the block; raises TooManyCalls if none becomes free.

        Streams last for many calls and as long as their readers take: they get half of the permits at most.
        """
        with ExitStack() as permits:
            for limiter in (self._streams, self._calls) if stream else (self._calls,):
                if not limiter.acquire(timeout=WAIT_S):
                    raise TooManyCalls(
                        N_(
                            "Too many calls to executors and alarm channels are in progress;"
                            " try again in %(seconds)s s",
                            seconds=RETRY_AFTER_S,
                        ),
                        retry_after_s=RETRY_AFTER_S,
                    )
                permits.callback(limiter.release)
            yield
