"""Polling helper: waits for an effect of another thread or process, up to a deadline."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: shortest and longest polling period; between them a tenth of the time waited so far, so that a long wait
#: does not keep the polled program busy
PERIOD_S = 0.01
PERIOD_MAX_S = 0.1


def eventually(
    condition: Callable[[], T], timeout_s: float = 30, message: str | Callable[[], object] = ""
) -> T:
    """Return the first true value of ``condition``; fail with ``message`` and the last value on timeout.

    A callable ``message`` is called on failure.
    """
    started_s = time.monotonic()
    deadline_s = started_s + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline_s:
            text = message() if callable(message) else message
            raise AssertionError(
                f"{text or 'condition never true'} (after {timeout_s} s; last value: {value!r})"
            )
        waited_s = time.monotonic() - started_s
        time.sleep(min(max(PERIOD_S, waited_s / 10), PERIOD_MAX_S))
