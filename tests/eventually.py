"""Polling helper: waits for an effect of another thread or process, up to a deadline."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: polling period
PERIOD_S = 0.01


def eventually(
    condition: Callable[[], T], timeout_s: float = 30, message: str | Callable[[], object] = ""
) -> T:
    """Return the first true value of ``condition``; fail with ``message`` and the last value on timeout.

    A callable ``message`` is called on failure.
    """
    deadline_s = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline_s:
            text = message() if callable(message) else message
            raise AssertionError(
                f"{text or 'condition never true'} (after {timeout_s} s; last value: {value!r})"
            )
        time.sleep(PERIOD_S)
