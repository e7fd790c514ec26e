"""Missed instants that run one after the other, by the misfire strategy RUN_ALL: the newest of them."""

from collections.abc import Callable
from typing import NamedTuple

from app.clock import DAY_MS, SECOND_MS, Millis

NextAfter = Callable[[Millis], Millis | None]


class RunAll(NamedTuple):
    """Which missed instants run: at most so many, the newest, and none that is older."""

    most: int = 100
    max_age_ms: Millis = DAY_MS

    def first(
        self,
        due_ms: Millis,
        last_ms: Millis,
        *,
        now_ms: Millis,
        next_after: NextAfter,
        period_ms: Millis = 0,
        are_few: bool = False,
    ) -> Millis | None:
        """Return the first of the instants from ``due_ms`` to ``last_ms`` that runs; None: all are too old.

        ``period_ms`` is the period of a fixed rate, which is computed; otherwise 0. ``are_few``: there are
        no more than may run.
        """
        oldest_ms = now_ms - self.max_age_ms
        if last_ms < oldest_ms:
            return None
        if period_ms > 0:
            too_old, before_last = -(-(oldest_ms - due_ms) // period_ms), (last_ms - due_ms) // period_ms
            return due_ms + max(0, too_old, before_last + 1 - self.most) * period_ms
        first_ms: Millis | None = due_ms if are_few else _newest(self.most, due_ms, last_ms, next_after)
        # One after the other, as the scan finds them: in an hour that clocks repeat, the instant that follows
        # an arbitrary time may be a later one than the next.
        while first_ms is not None and first_ms < oldest_ms:
            first_ms = next_after(first_ms)
        return first_ms


def _newest(most: int, due_ms: Millis, last_ms: Millis, next_after: NextAfter) -> Millis:
    """Return the first of the last ``most`` instants, of which there are more since ``due_ms``.

    Searches windows of doubling length, then halves the last one, until it has up to twice as many.
    """
    step_ms, after_ms, few_ms = SECOND_MS, last_ms - SECOND_MS, last_ms
    while len(instants := _list(after_ms, last_ms, next_after, 2 * most + 1)) < most:
        few_ms, step_ms = after_ms, 2 * step_ms
        after_ms = max(last_ms - step_ms, due_ms - 1)
    while not most <= len(instants) <= 2 * most:
        middle_ms = (after_ms + few_ms) // 2
        instants = _list(middle_ms, last_ms, next_after, 2 * most + 1)
        if len(instants) < most:
            few_ms = middle_ms
        else:
            after_ms = middle_ms
    return instants[-most]


def _list(after_ms: Millis, last_ms: Millis, next_after: NextAfter, limit: int) -> list[Millis]:
    """Return the first instants after a time and up to another one."""
    instants: list[Millis] = []
    instant = next_after(after_ms)
    while instant is not None and instant <= last_ms and len(instants) < limit:
        instants.append(instant)
        instant = next_after(instant)
    return instants
