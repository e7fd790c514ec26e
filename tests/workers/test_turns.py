"""Turns: who may send now, who waits, and who has waited for too long. Time is a number the tests choose."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps

from app.domain.planning import DueFire
from tests.factories import T0
from workers.lanes import FAST_AHEAD, Lanes
from workers.turns import SLOW_SEND_MS, Lane, Place, Turns

A, B, C = (f"http://10.0.0.{number}:9999/" for number in (11, 12, 13))
#: when a send of the fast lane loses its place
OVERDUE_S = SLOW_SEND_MS / 1000
Waiting = asyncio.Future[Place | None]


def in_loop(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """Run a test in an event loop of its own."""

    @wraps(test)
    def run() -> None:
        async def bounded() -> None:
            await asyncio.wait_for(test(), 5)

        asyncio.run(bounded())

    return run


def turns_of(*, fast: int = 10, slow: int = 10, address: int = 3) -> Turns:
    return Turns({Lane.FAST: fast, Lane.SLOW: slow}, address_max=address)


def begin(turns: Turns, address: str, *, lane: Lane = Lane.FAST, now: float = 0, until: float = 1) -> Place:
    """Begin a send that need not wait."""
    place = turns.begin(lane, address, now=now, until=until)
    assert isinstance(place, Place)
    return place


def wait(turns: Turns, address: str, *, lane: Lane = Lane.FAST, until: float = 1) -> Waiting:
    """Begin a send that must wait."""
    waiting = turns.begin(lane, address, now=0, until=until)
    assert isinstance(waiting, asyncio.Future)
    assert not waiting.done()
    return waiting


def got(waiting: Waiting) -> Place:
    """The place somebody waited for."""
    assert waiting.done()
    place = waiting.result()
    assert place is not None
    return place


@in_loop
async def test_a_send_waits_for_a_turn_at_its_address_and_a_place_in_its_lane() -> None:
    turns = turns_of(fast=2, slow=1, address=1)
    first = begin(turns, A)
    second = wait(turns, A)
    other = begin(turns, B)
    turns.end(first, now=0)
    assert got(second).address == A
    third = wait(turns, C)
    turns.end(other, now=0)
    assert got(third).address == C


@in_loop
async def test_those_who_wait_go_in_the_order_they_came() -> None:
    turns = turns_of(fast=1, address=1)
    first = begin(turns, A)
    queue = [wait(turns, address) for address in (A, A, B, A)]
    order = []
    place = first
    while any(queue):
        turns.end(place, now=0)
        (ready,) = [number for number, waiting in enumerate(queue) if waiting.done() and number not in order]
        order.append(ready)
        place = got(queue[ready])
        if len(order) == len(queue):
            break
    assert [queue[number].result().address for number in order] == [B, A, A, A], "B has had its turn all the time"  # type: ignore[union-attr]
    assert [number for number in order if number != 2] == [0, 1, 3]


@in_loop
async def test_a_full_lane_does_not_hold_up_the_other() -> None:
    turns = turns_of(fast=1, slow=1, address=2)
    begin(turns, A)
    wait(turns, B)
    begin(turns, B, lane=Lane.SLOW)


@in_loop
async def test_whoever_has_waited_for_too_long_gets_nothing_and_holds_nothing() -> None:
    turns = turns_of(fast=1, address=1)
    first = begin(turns, A)
    at_gate, at_address, patient = wait(turns, B), wait(turns, A), wait(turns, B, until=9)
    turns.drop_late(0.9)
    assert not at_gate.done()
    turns.drop_late(1.1)
    assert at_gate.result() is None
    assert at_address.result() is None
    assert not patient.done(), "it has the turn at B now, and waits for a place"
    turns.end(first, now=1.2)
    turns.end(got(patient), now=1.3)
    begin(turns, A)


@in_loop
async def test_whoever_gives_up_waiting_holds_nothing() -> None:
    turns = turns_of(fast=1, address=1)
    first = begin(turns, A)
    for address in (B, A):
        wait(turns, address).cancel()
    turns.end(first, now=0)
    turns.end(begin(turns, A), now=0)
    turns.end(begin(turns, B), now=0)


@in_loop
async def test_hanging_sends_lose_their_place_in_the_fast_lane() -> None:
    turns = turns_of(fast=1, address=1)
    hanging = begin(turns, A)
    waiting = wait(turns, B)
    assert turns.let_go_overdue(OVERDUE_S - 0.01) == []
    assert not waiting.done()
    assert turns.let_go_overdue(OVERDUE_S) == [A]
    got(waiting)
    assert turns.overdue == 1
    turns.end(hanging, now=1)
    assert turns.overdue == 0
    next_one = wait(turns, A)  # the place was given back once, not twice
    turns.end(got(waiting), now=1)
    got(next_one)


@in_loop
async def test_the_slow_lane_lets_nobody_go() -> None:
    turns = turns_of(slow=1, address=1)
    slow = begin(turns, A, lane=Lane.SLOW)
    waiting = wait(turns, B, lane=Lane.SLOW)
    assert turns.let_go_overdue(10) == []
    assert not waiting.done()
    turns.end(slow, now=10)
    got(waiting)


@in_loop
async def test_nothing_is_kept_of_an_address_nobody_sends_to() -> None:
    turns = turns_of(address=1)
    for number in range(100):
        address = f"http://10.0.1.{number}:9999/"
        place = begin(turns, address)
        waiting = wait(turns, address)
        turns.end(place, now=0)
        turns.end(got(waiting), now=0)
    assert (dict(turns._taken), turns._at_address, turns._in_fast) == ({}, {}, {})


@in_loop
async def test_hanging_sends_are_no_reason_to_claim_less_but_to_claim_nothing_ahead() -> None:
    lanes = Lanes(fast_max=1, slow_max=1, address_max=FAST_AHEAD)
    for _ in range(FAST_AHEAD):
        lanes.enter(Lane.FAST, A)
    lanes.add([DueFire(1, 7, T0), DueFire(2, 7, T0)])
    assert not lanes.waiting
    place = begin(lanes.turns, A)
    lanes.let_go_overdue(OVERDUE_S)
    assert lanes.room(A) == 0
    assert [fire.id for fire in lanes.take(256)] == [1]
    lanes.turns.end(place, now=1)
    lanes.leave(Lane.FAST)
    assert [fire.id for fire in lanes.take(256)] == [2]
