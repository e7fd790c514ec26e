"""Keeping a node with a wrong clock from firing: its clock against the database's, and against its own monotonic one."""

import logging
from collections.abc import Callable

from app.clock import Millis, monotonic_ms
from app.db import read_scope
from app.store.clocks import database_now_ms

logger = logging.getLogger(__name__)

#: period of the comparison with the database
PERIOD_MS: Millis = 10_000
#: a node whose clock is off by more does not fire
SKEW_MAX_MS: Millis = 1_000
#: a wall clock that has moved by so much more or less than the monotonic one has been set
JUMP_MS: Millis = 1_000


class ClockGuard:
    """Says whether this node's clock can be trusted; used by the scan, in one thread."""

    def __init__(self, now: Callable[[], Millis], monotonic: Callable[[], Millis] = monotonic_ms) -> None:
        self._now = now
        self._monotonic = monotonic
        self._compared_at: Millis | None = None
        self._last: tuple[Millis, Millis] | None = None
        self.skew_ms: Millis = 0

    @property
    def trusted(self) -> bool:
        """Whether the clock is within SKEW_MAX_MS of the database's, as far as was seen."""
        return abs(self.skew_ms) <= SKEW_MAX_MS

    def check(self) -> bool:
        """Compare when it is time to; return whether this node may fire. A change either way is logged."""
        self._note_jump()
        monotonic = self._monotonic()
        if self._compared_at is None or monotonic - self._compared_at >= PERIOD_MS:
            was_trusted = self.trusted
            self._compare()
            self._compared_at = monotonic
            if was_trusted and not self.trusted:
                logger.error("clock off, scheduling stopped skew_ms=%s; set this machine's clock", self.skew_ms)
            elif not was_trusted and self.trusted:
                logger.warning("clock right again, scheduling goes on skew_ms=%s", self.skew_ms)
        return self.trusted

    def _compare(self) -> None:
        before = self._now()
        with read_scope() as session:
            theirs = database_now_ms(session)
        after = self._now()
        if theirs is None or after - before > SKEW_MAX_MS:  # the same clock, or an answer too late to say anything
            self.skew_ms = 0 if theirs is None else self.skew_ms
            return
        self.skew_ms = (before + after) // 2 - theirs

    def _note_jump(self) -> None:
        wall, monotonic = self._now(), self._monotonic()
        if self._last is not None:
            jump = (wall - self._last[0]) - (monotonic - self._last[1])
            if abs(jump) > JUMP_MS:
                logger.warning("clock jumped by_ms=%s", jump)
                self._compared_at = None
        self._last = (wall, monotonic)
