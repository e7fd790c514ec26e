"""The one reader of the wall clock.

Time inside the program is UTC epoch milliseconds; it is passed as an argument. ``now_ms`` is called in views, API views and
``run_loop`` only. Functions that take effect once they hold their locks take a ``Clock`` instead. Durations use ``monotonic_ms``;
clock jumps are measured with ``elapsed_ms``.
"""

import time
from collections.abc import Callable

Millis = int
#: reads the wall clock; given to what must know the time at which it holds its locks
Clock = Callable[[], Millis]

#: milliseconds in a second, a minute, a day
SECOND_MS: Millis = 1_000
MINUTE_MS: Millis = 60_000
DAY_MS: Millis = 86_400_000
#: the latest instant that is shown or accepted: the beginning of the year 9999, so that every zone's local time is still one
LATEST_MS: Millis = 253_370_764_800_000


def storable_ms(instant_ms: Millis) -> Millis:
    """Return an instant somebody typed, kept to those a database can be asked about: 1970 to the beginning of 9999."""
    return min(max(instant_ms, 0), LATEST_MS)


def now_ms() -> Millis:
    """Return the wall clock as UTC epoch milliseconds."""
    return time.time_ns() // 1_000_000  # noqa: TID251 - the one reader


def monotonic_ms() -> Millis:
    """Return a clock that never jumps, in milliseconds; only differences mean anything."""
    return time.monotonic_ns() // 1_000_000


def elapsed_ms() -> Millis:
    """Return a clock that never jumps and, on Linux, goes on while the machine is suspended, as the wall clock does."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) // 1_000_000
