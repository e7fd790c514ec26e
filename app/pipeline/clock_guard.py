"""Keeping a node with a wrong clock from firing: its clock against the database's, and against its own monotonic one.

SQLite has no clock of its own. There the monotonic one decides alone, and cannot tell a fault from a correction: see ``JumpHold``.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from app.clock import SECOND_MS, Millis, elapsed_ms, monotonic_ms
from app.db import read_scope
from app.models.node import SKEW_MAX_MS
from app.store.clocks import database_now_ms

logger = logging.getLogger(__name__)

#: period of the comparison with the database
PERIOD_MS: Millis = 10_000
#: a wall clock that has moved by so much more or less than the monotonic one has been set
JUMP_MS: Millis = 1_000
#: a clock that was set ahead is trusted after it has been steady for so long
HOLD_MS: Millis = 30_000
#: a clock that was wrong is called right again after so long: one that hovers about the limit is told once
STEADY_MS: Millis = 60_000


@dataclass(frozen=True, slots=True)
class ClockNews:
    """A change of what this node's clock is worth: ``skew_ms`` is how far it is ahead of the database's."""

    right: bool
    skew_ms: Millis
    #: whether it was compared with the database's; otherwise ``skew_ms`` is how far it was set ahead
    compared: bool = True


class JumpHold:
    """Jump hold: how far to trust a wall clock where the database has none to compare it with.

    A clock that was set ahead may be right, as after a correction, or wrong: it is believed once it has been steady
    for HOLD_MS. One that goes back is believed at once: by it nothing starts early.
    """

    def __init__(self) -> None:
        self._believed: Millis | None = None
        self._since: Millis = 0
        #: the clock may have been ahead earlier; assumed at start
        self.went_back = True
        #: it was seen to go back
        self.seen_back = False

    def judge(self, now_ms: Millis, monotonic: Millis, *, jump_ms: Millis) -> Millis:
        """Return how far the clock is ahead of what is believed, 0 where it is believed.

        ``jump_ms``: by how much it was set since the last time, 0 where it was not.
        """
        place = now_ms - monotonic
        if jump_ms:
            self._since = monotonic
            self.seen_back = self.seen_back or jump_ms < 0
            self.went_back = self.went_back or jump_ms < 0
        ahead_ms = place - (place if self._believed is None else self._believed)
        if ahead_ms > JUMP_MS and monotonic - self._since < HOLD_MS:
            return ahead_ms
        self._believed = place
        return 0


class ClockGuard:
    """Says whether this node's clock can be trusted; of all threads that ask, one compares when it is time to."""

    def __init__(self, now: Callable[[], Millis], monotonic: Callable[[], Millis] = elapsed_ms) -> None:
        self._now = now
        self._monotonic = monotonic
        self._compared_at: Millis | None = None
        self._last: tuple[Millis, Millis] | None = None
        self._looking = threading.Lock()
        self._hold = JumpHold()
        #: whether the database has a clock, at the last comparison
        self.compares = True
        #: how far the wall clock is ahead of the database's, at the last comparison
        self.skew_ms: Millis = 0

    @property
    def trusted(self) -> bool:
        """Whether the clock was within SKEW_MAX_MS of the database's at the last comparison."""
        return abs(self.skew_ms) <= SKEW_MAX_MS

    @property
    def went_back(self) -> bool:
        """Whether the clock may have been ahead on a database without a clock (SQLite)."""
        return not self.compares and self._hold.went_back

    @property
    def seen_back(self) -> bool:
        """Whether this process has seen its clock go back; otherwise only a start makes ``went_back`` true."""
        return self._hold.seen_back

    def forget_return(self) -> None:
        """Note that bring_back() has run."""
        self._hold.went_back = self._hold.seen_back = False

    def is_steady(self) -> bool:
        """Whether the clock was right at the last look and has not been set since; from any thread, without the database."""
        last = self._last
        compared = self._compared_at is not None
        return (
            compared
            and last is not None
            and self.trusted
            and not self.went_back
            and abs(self._jump_since(last)) <= JUMP_MS
        )

    def check(self) -> bool:
        """Do as ``look``, and log a jump and a change either way."""
        with self._looking:
            jump_ms = self._take_jump()
            if jump_ms:
                logger.warning("clock jumped by_ms=%s", jump_ms)
            was_trusted = self.trusted
            self._compare_when_due(jump_ms)
            if was_trusted and not self.trusted and self.compares:
                logger.error(
                    "clock off, scheduling stopped skew_ms=%s; set this machine's clock", self.skew_ms
                )
            elif was_trusted and not self.trusted:
                hold_s = HOLD_MS // SECOND_MS
                logger.error(
                    "clock jumped ahead, scheduling paused skew_ms=%s; trusted after %s s of steady time",
                    self.skew_ms,
                    hold_s,
                )
            elif not was_trusted and self.trusted:
                logger.warning("clock trusted again, scheduling resumed skew_ms=%s", self.skew_ms)
            return self.trusted

    def look(self) -> bool:
        """Compare when it is time to, or when the clock was set; return whether this node may fire. Reads the database."""
        with self._looking:
            self._compare_when_due(self._take_jump())
            return self.trusted

    def _compare_when_due(self, jump_ms: Millis) -> None:
        monotonic = self._monotonic()
        if self._compared_at is None or not self.compares or monotonic - self._compared_at >= PERIOD_MS:
            self._compare(jump_ms)
            self._compared_at = monotonic

    def _compare(self, jump_ms: Millis) -> None:
        before, begun = self._now(), self._monotonic()
        with read_scope() as session:
            theirs = database_now_ms(session)
        took_ms = self._monotonic() - begun
        self.compares = theirs is not None
        self.skew_ms = (
            self._hold.judge(before, begun, jump_ms=jump_ms)
            if theirs is None
            else _skew(before - theirs, took_ms)
        )

    def _take_jump(self) -> Millis:
        """Return by how much the wall clock was set since the last time, 0 where it was not; a jump makes a comparison due."""
        jump_ms = 0 if self._last is None else self._jump_since(self._last)
        self._last = (self._now(), self._monotonic())
        if abs(jump_ms) <= JUMP_MS:
            return 0
        self._compared_at = None
        return jump_ms

    def _jump_since(self, last: tuple[Millis, Millis]) -> Millis:
        return (self._now() - last[0]) - (self._monotonic() - last[1])


def _skew(least_ms: Millis, took_ms: Millis) -> Millis:
    """Return how far a clock is ahead that was so far ahead when it asked; of an answer that came late, what it proves at least."""
    if took_ms <= SKEW_MAX_MS:
        return least_ms + took_ms // 2
    return min(max(least_ms, 0), least_ms + took_ms)


class ClockWatch:
    """Turns what a guard sees into news: once when the clock goes wrong, once when it has been right for STEADY_MS; used by one thread."""

    def __init__(self, guard: ClockGuard, monotonic: Callable[[], Millis] = monotonic_ms) -> None:
        self._guard = guard
        self._monotonic = monotonic
        self._right_since: Millis | None = None
        self._told_wrong = False

    @property
    def skew_ms(self) -> Millis:
        """How far this node's clock was ahead of the database's at the last comparison."""
        return self._guard.skew_ms

    @property
    def trusted(self) -> bool:
        """Whether the clock was right at the last comparison."""
        return self._guard.trusted

    def news(self) -> ClockNews | None:
        """Return what there is to tell, None almost always. Reads the database; call it outside of transactions."""
        if not self._guard.look():
            self._right_since = None
            if self._told_wrong:
                return None
            self._told_wrong = True
            return ClockNews(False, self._guard.skew_ms, self._guard.compares)
        monotonic = self._monotonic()
        self._right_since = monotonic if self._right_since is None else self._right_since
        if not self._told_wrong or monotonic - self._right_since < STEADY_MS:
            return None
        self._told_wrong = False
        return ClockNews(True, self._guard.skew_ms, self._guard.compares)
