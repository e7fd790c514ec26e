"""Clock: the only module that reads the wall clock.

Times are UTC epoch milliseconds and are passed as arguments. ``now_ms`` is called only in views, API views
and ``run_loop``. Functions that take effect once they hold their locks take a ``Clock`` instead. Durations
use ``monotonic_ms``; clock jumps, and deadlines that other nodes keep, ``elapsed_ms``.
"""

import time
from collections.abc import Callable

Millis = int
#: reads the wall clock; for functions that need the time at which they hold their locks
Clock = Callable[[], Millis]

#: milliseconds in a second, a minute, an hour, a day
SECOND_MS: Millis = 1_000
MINUTE_MS: Millis = 60_000
HOUR_MS: Millis = 3_600_000
DAY_MS: Millis = 86_400_000
#: latest instant that is shown or accepted: the start of the year 9999, which has a local time in every zone
LATEST_MS: Millis = 253_370_764_800_000


def storable_ms(instant_ms: Millis) -> Millis:
    """Limit an entered instant to those that can be used in a query: from 1970 to LATEST_MS."""
    return min(max(instant_ms, 0), LATEST_MS)


def now_ms() -> Millis:
    """Return the wall clock as UTC epoch milliseconds."""
    return time.time_ns() // 1_000_000  # the only reader


def exact_ms() -> float:
    """Return the wall clock as UTC epoch milliseconds with their fractions, for waits until an instant."""
    return time.time_ns() / 1_000_000  # like now_ms


def monotonic_ms() -> Millis:
    """Return a clock that never jumps, in milliseconds; only differences are meaningful."""
    return time.monotonic_ns() // 1_000_000


#: continues, on Linux, while the host is suspended
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def elapsed_ms() -> Millis:
    """Return a clock that never jumps but, on Linux, continues while the host is suspended."""
    return time.clock_gettime_ns(_CLOCK) // 1_000_000


def elapsed_s() -> float:
    """Return the same in seconds: for deadlines that other nodes keep, too."""
    return time.clock_gettime(_CLOCK)
