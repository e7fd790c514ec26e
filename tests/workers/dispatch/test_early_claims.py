"""Runs claimed shortly before they are due: sent when they are, given back if the clock was set back."""

from collections.abc import Callable
from math import inf
from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.clock import Millis
from app.domain.schedules.planning import DueFire
from app.pipeline.sent_log_ids import SentLogIds
from tests.support.factories import FIRST, T0
from workers.dispatch.early_claims import EarlySends
from workers.dispatch.lanes import Lanes
from workers.dispatch.send_limiter import Lane


class Loop:
    """A loop whose time moves when a test says so."""

    def __init__(self) -> None:
        self.now_ms = T0
        self.monotonic_ms = 0
        self.waits: list[tuple[Millis, Callable[[], None]]] = []
        self.lanes = Lanes(fast_max=200, slow_max=100, address_max=32)
        self.sent = SentLogIds()
        self.held = EarlySends(
            self.lanes,
            self.sent,
            lambda wait_ms, work: self.waits.append((wait_ms, work)),
            lambda: self.now_ms,
            lambda: self.monotonic_ms / 1000,
        )

    def run_next(self, at_ms: Millis, *, set_by: Millis = 0) -> None:
        """``set_by``: so far the clock was set in the meantime."""
        self.monotonic_ms += at_ms - self.now_ms - set_by
        self.now_ms = at_ms
        _, work = self.waits.pop(0)
        work()


class Send:
    """Stands for a run; records how it ends."""

    def __init__(self, due_ms: Millis, log_id: int = 1) -> None:
        self.claim = SimpleNamespace(due_ms=due_ms, log_id=log_id, has_new_id=log_id > 1)
        self.ends: list[str] = []

    def start(self) -> None:
        self.ends.append("sent")

    def give_back(self) -> None:
        self.ends.append("given back")


def hold(loop: Loop, *due: Millis, start_before: float = inf) -> list[Send]:
    sends = [Send(due_ms) for due_ms in due]
    loop.held.start(cast("Any", sends), start_before)
    return sends


def test_a_run_that_is_due_is_sent_at_once() -> None:
    loop = Loop()
    assert [send.ends for send in hold(loop, T0, T0 - 5_000)] == [["sent"], ["sent"]]
    assert (loop.waits, loop.lanes.held) == ([], 0)


def test_from_new_ids_that_were_sent_before_all_runs_are_given_back() -> None:
    loop = Loop()
    sends = [Send(T0, log_id) for log_id in (7, 6, 8, 1)]
    for send in sends:
        loop.held.start(cast("Any", [send]), inf)
    assert [send.ends for send in sends] == [["sent"], *[["given back"]] * 3]
    assert not loop.sent.is_ahead


def test_a_run_claimed_ahead_is_sent_when_it_is_due_and_not_a_millisecond_before() -> None:
    loop = Loop()
    first, second, later = hold(loop, T0 + 40, T0 + 40, T0 + 90)
    assert ([wait_ms for wait_ms, _ in loop.waits], loop.lanes.held) == ([40, 90], 3)
    loop.run_next(T0 + 39)  # timers may end early
    assert (first.ends, loop.waits.pop()[0]) == ([], 1)
    loop.run_next(T0 + 90)
    assert (later.ends, loop.lanes.held) == (["sent"], 2)


def test_runs_of_one_instant_share_a_wait() -> None:
    loop = Loop()
    sends = hold(loop, T0 + 40, T0 + 40)
    loop.run_next(T0 + 40)
    assert [send.ends for send in sends] == [["sent"], ["sent"]]
    assert (loop.waits, loop.lanes.held) == ([], 0)


@pytest.mark.parametrize(("start_before", "ends"), [(inf, []), (-inf, ["given back"])])
def test_a_run_is_given_back_if_the_clock_was_set_back_for_longer_than_its_lease(
    start_before: float, ends: list[str]
) -> None:
    loop = Loop()
    (send,) = hold(loop, T0 + 40, start_before=start_before)
    if loop.waits:
        loop.run_next(T0 - 600_000, set_by=-600_040)
    assert send.ends == ends
    assert loop.lanes.held == (0 if ends else 1)


def test_a_clock_that_is_set_ahead_starts_no_run() -> None:
    loop = Loop()
    (send,) = hold(loop, T0 + 40)
    loop.run_next(T0 + 600_010, set_by=600_000)
    assert (send.ends, loop.waits[0][0]) == ([], 30)
    loop.run_next(T0 + 600_040)
    assert send.ends == ["sent"]


def test_a_fire_that_is_neither_due_nor_prepared_is_offered_again_when_it_is_due() -> None:
    loop = Loop()
    offered: list[DueFire] = []
    due, prepared, early, later = (DueFire(n, 7, T0 + wait) for n, wait in enumerate((0, 30, 30, 40)))
    claimed_now = loop.held.keep_early([due, prepared, early, later], {prepared.id}, offered.extend)
    assert (claimed_now, offered, [wait_ms for wait_ms, _ in loop.waits]) == ([due, prepared], [], [30])
    loop.run_next(T0 + 30)
    assert offered == [early, later]


def test_runs_that_are_not_due_are_no_backlog() -> None:
    loop = Loop()
    for _ in range(100):
        loop.lanes.enter(Lane.FAST, FIRST)
    assert loop.lanes.backlog() == 100 - 32
    hold(loop, *[T0 + 40] * 60)
    assert loop.lanes.backlog() == 8
    loop.run_next(T0 + 40)
    assert loop.lanes.backlog() == 100 - 32
