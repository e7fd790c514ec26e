"""Clock guard: stops a node with a wrong clock from firing.

Compares the wall clock with the database's clock and the node's monotonic one. SQLite has no clock of its
own: there only the monotonic clock decides, which cannot distinguish a fault from a correction, see
``JumpHold``. A database server on the same host has the same clock: both can be ahead, unnoticed, until they
go back.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from app.clock import SECOND_MS, Millis, elapsed_ms, monotonic_ms
from app.database.engine import read_scope
from app.models.node import SKEW_MAX_MS
from app.store.nodes.nodes import database_now_ms

logger = logging.getLogger(__name__)

#: period of the comparison with the database
PERIOD_MS: Millis = 10_000
#: a wall clock that differs from the monotonic one by more than this since the last check has been set
JUMP_MS: Millis = 1_000
#: a database's clock that was set back by more leaves plans in the future; what is read ahead stays anyway
SET_BACK_MS: Millis = 10_000
#: a clock that was set ahead is trusted after being steady for this long
HOLD_MS: Millis = 30_000
#: A clock that was wrong is reported right only after this long, so that one near the limit is reported once.
STEADY_MS: Millis = 60_000


@dataclass(frozen=True, slots=True)
class ClockNews:
    """Change of trust in this node's clock; ``skew_ms`` is how far it is ahead of the database's."""

    right: bool
    skew_ms: Millis
    #: whether it was compared with the database's; otherwise ``skew_ms`` is how far it was set ahead
    is_compared: bool = True


class JumpHold:
    """Jump hold: whether to trust a wall clock when the database has none to compare it with.

    A clock that was set ahead may be right, as after a correction, or wrong: it is trusted once it has been
    steady for HOLD_MS. One that was set back is trusted at once: nothing starts early because of it.
    """

    def __init__(self) -> None:
        self._trusted: Millis | None = None
        self._since: Millis = 0
        #: the clock may have been ahead earlier; assumed at the start
        self.went_back = True
        #: this process has seen it go back
        self.seen_back = False

    def judge(self, now_ms: Millis, monotonic: Millis, *, jump_ms: Millis) -> Millis:
        """Return how far the clock is ahead of the trusted time, 0 if it is trusted.

        ``jump_ms``: by how much it was set since the last check, 0 if it was not.
        """
        offset = now_ms - monotonic
        if jump_ms:
            self._since = monotonic
            self.seen_back = self.seen_back or jump_ms < 0
            self.went_back = self.went_back or jump_ms < 0
        ahead_ms = offset - (offset if self._trusted is None else self._trusted)
        if ahead_ms > JUMP_MS and monotonic - self._since < HOLD_MS:
            return ahead_ms
        self._trusted = offset
        return 0


class ClockGuard:
    """Clock guard of one node; called from several threads, one of which compares the clocks when due."""

    def __init__(self, now: Callable[[], Millis], monotonic: Callable[[], Millis] = elapsed_ms) -> None:
        self._now = now
        self._monotonic = monotonic
        self._compared_at: Millis | None = None
        self._last: tuple[Millis, Millis] | None = None
        self._checking = threading.Lock()
        self._hold = JumpHold()
        #: lead of the database's clock on the monotonic one at the last comparison, at least
        self._database_lead_ms: Millis | None = None
        #: whether the database has a clock, at the last comparison
        self.compares = True
        #: how far the wall clock is ahead of the database's, at the last comparison
        self.skew_ms: Millis = 0

    @property
    def is_trusted(self) -> bool:
        """Whether the clock was within SKEW_MAX_MS of the database's at the last comparison."""
        return abs(self.skew_ms) <= SKEW_MAX_MS

    @property
    def went_back(self) -> bool:
        """Whether plans may have been made by a clock that was ahead; with a server, by that of both."""
        return self._hold.went_back

    @property
    def seen_back(self) -> bool:
        """Whether this process has seen the clock go back; if not, ``went_back`` is assumed at the start."""
        return self._hold.seen_back

    def now(self) -> Millis:
        """Return the wall clock."""
        return self._now()

    def forget_return(self) -> None:
        """Reset ``went_back`` after bring_back()."""
        self._hold.went_back = self._hold.seen_back = False

    def is_steady(self) -> bool:
        """Whether the clock was right at the last check and has not been set since.

        Does not read the database; may be called from any thread.
        """
        last = self._last
        was_compared = self._compared_at is not None
        return (
            was_compared
            and last is not None
            and self.is_trusted
            and (self.compares or not self.went_back)
            and abs(self._jump_since(last)) <= JUMP_MS
        )

    def check(self) -> bool:
        """Like ``look``, but also log jumps and changes of trust."""
        with self._checking:
            jump_ms = self._take_jump()
            if jump_ms:
                logger.warning("clock jumped by_ms=%s", jump_ms)
            was_trusted = self.is_trusted
            self._compare_when_due(jump_ms)
            if was_trusted and not self.is_trusted and self.compares:
                logger.error(
                    "clock off, scheduling stopped skew_ms=%s; set the clock of this host", self.skew_ms
                )
            elif was_trusted and not self.is_trusted:
                hold_s = HOLD_MS // SECOND_MS
                logger.error(
                    "clock jumped ahead, scheduling paused skew_ms=%s; trusted after %s s of steady time",
                    self.skew_ms,
                    hold_s,
                )
            elif not was_trusted and self.is_trusted:
                logger.warning("clock trusted again, scheduling resumed skew_ms=%s", self.skew_ms)
            return self.is_trusted

    def look(self) -> bool:
        """Compare the clocks if due, or if ours was set; return whether this node may fire.

        Reads the database.
        """
        with self._checking:
            self._compare_when_due(self._take_jump())
            return self.is_trusted

    def _compare_when_due(self, jump_ms: Millis) -> None:
        monotonic = self._monotonic()
        if self._compared_at is None or monotonic - self._compared_at >= PERIOD_MS:
            self._compare(jump_ms)
            self._compared_at = monotonic
        elif not self.compares:
            self.skew_ms = self._hold.judge(self._now(), monotonic, jump_ms=jump_ms)

    def _compare(self, jump_ms: Millis) -> None:
        before_ms, started_ms = self._now(), self._monotonic()
        with read_scope() as session:
            database_ms = database_now_ms(session)
        took_ms = self._monotonic() - started_ms
        self.compares = database_ms is not None
        if database_ms is None:
            self.skew_ms = self._hold.judge(before_ms, started_ms, jump_ms=jump_ms)
            return
        self.skew_ms = _skew(before_ms - database_ms, took_ms)
        self._follow(database_ms - started_ms, took_ms)

    def _follow(self, most_ms: Millis, took_ms: Millis) -> None:
        """Notice that the database's clock was set back; ``most_ms``: its lead on the monotonic one, at most.

        The wall clock alone would not do: while it differs from the database's nothing is planned by it.
        """
        if self._database_lead_ms is not None and most_ms < self._database_lead_ms - SET_BACK_MS:
            logger.warning("clock of the database set back")
            self._hold.went_back = self._hold.seen_back = True
        self._database_lead_ms = most_ms - took_ms

    def _take_jump(self) -> Millis:
        """Return by how much the wall clock was set since the last check, 0 if not.

        A jump makes a comparison due.
        """
        jump_ms = 0 if self._last is None else self._jump_since(self._last)
        self._last = (self._now(), self._monotonic())
        if abs(jump_ms) <= JUMP_MS:
            return 0
        self._compared_at = None
        return jump_ms

    def _jump_since(self, last: tuple[Millis, Millis]) -> Millis:
        return (self._now() - last[0]) - (self._monotonic() - last[1])


def _skew(least_ms: Millis, took_ms: Millis) -> Millis:
    """Return how far a clock is ahead, from the difference at the query.

    A late answer only proves a minimum.
    """
    if took_ms <= SKEW_MAX_MS:
        return least_ms + took_ms // 2
    return min(max(least_ms, 0), least_ms + took_ms)


class ClockWatch:
    """Reports changes of a guard: the clock goes wrong, or has been right again for STEADY_MS. One thread."""

    def __init__(self, guard: ClockGuard, monotonic: Callable[[], Millis] = monotonic_ms) -> None:
        self._guard = guard
        self._monotonic = monotonic
        self._right_since: Millis | None = None
        self._reported_wrong = False

    @property
    def skew_ms(self) -> Millis:
        """How far this node's clock was ahead of the database's at the last comparison."""
        return self._guard.skew_ms

    @property
    def is_trusted(self) -> bool:
        """Whether the clock was right at the last comparison."""
        return self._guard.is_trusted

    def news(self) -> ClockNews | None:
        """Return a change to report, or None; reads the database, so call it outside of transactions."""
        if not self._guard.look():
            self._right_since = None
            if self._reported_wrong:
                return None
            self._reported_wrong = True
            return ClockNews(False, self._guard.skew_ms, self._guard.compares)
        monotonic = self._monotonic()
        self._right_since = monotonic if self._right_since is None else self._right_since
        if not self._reported_wrong or monotonic - self._right_since < STEADY_MS:
            return None
        self._reported_wrong = False
        return ClockNews(True, self._guard.skew_ms, self._guard.compares)
