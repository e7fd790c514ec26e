"""The one polling helper: waits for something that another thread or process does, up to a deadline."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: between two looks
PERIOD_S = 0.01


def eventually(
    condition: Callable[[], T], timeout_s: float = 30, message: str | Callable[[], object] = ""
) -> T:
    """Return the first true value of ``condition``; fail with ``message`` and the last value if there is none in time.

    A ``message`` that can be called is asked then: what is there instead.
    """
    deadline_s = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline_s:
            told = message() if callable(message) else message
            raise AssertionError(
                f"{told or 'it never came true'} (after {timeout_s} s; last value: {value!r})"
            )
        time.sleep(PERIOD_S)
