"""SendLimiter: who may send, who waits, and whose wait expires. The tests choose the time."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps

from app.domain.schedules.planning import DueFire
from tests.support.factories import T0
from workers.dispatch.lanes import FAST_AHEAD, Lanes
from workers.dispatch.send_limiter import SLOW_SEND_MS, Lane, Permit, SendLimiter

A, B, C = (f"http://10.0.0.{number}:9999/" for number in (11, 12, 13))
#: when a send is demoted from the fast lane
OVERDUE_S = SLOW_SEND_MS / 1000
Waiting = asyncio.Future[Permit | None]


def in_loop(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """Run a test in an event loop of its own."""

    @wraps(test)
    def run() -> None:
        async def bounded() -> None:
            await asyncio.wait_for(test(), 5)

        asyncio.run(bounded())

    return run


def limiter_of(*, fast: int = 10, slow: int = 10, address: int = 3) -> SendLimiter:
    return SendLimiter({Lane.FAST: fast, Lane.SLOW: slow}, address_max=address)


def acquire(
    limiter: SendLimiter, address: str, *, lane: Lane = Lane.FAST, now: float = 0, until: float = 1
) -> Permit:
    """Acquire a permit that is free."""
    permit = limiter.acquire(lane, address, now=now, until=until)
    assert isinstance(permit, Permit)
    return permit


def wait(limiter: SendLimiter, address: str, *, lane: Lane = Lane.FAST, until: float = 1) -> Waiting:
    """Acquire a permit that is not free yet."""
    waiting = limiter.acquire(lane, address, now=0, until=until)
    assert isinstance(waiting, asyncio.Future)
    assert not waiting.done()
    return waiting


def got(waiting: Waiting) -> Permit:
    """Return the permit of a waiter."""
    assert waiting.done()
    permit = waiting.result()
    assert permit is not None
    return permit


@in_loop
async def test_a_send_waits_for_a_slot_of_its_address_and_a_permit_of_its_lane() -> None:
    limiter = limiter_of(fast=2, slow=1, address=1)
    first = acquire(limiter, A)
    second = wait(limiter, A)
    other = acquire(limiter, B)
    limiter.release(first, now=0)
    assert got(second).address == A
    third = wait(limiter, C)
    limiter.release(other, now=0)
    assert got(third).address == C


@in_loop
async def test_waiters_continue_in_order() -> None:
    limiter = limiter_of(fast=1, address=1)
    first = acquire(limiter, A)
    queue = [wait(limiter, address) for address in (A, A, B, A)]
    order = []
    permit = first
    while any(queue):
        limiter.release(permit, now=0)
        (ready,) = [number for number, waiting in enumerate(queue) if waiting.done() and number not in order]
        order.append(ready)
        permit = got(queue[ready])
        if len(order) == len(queue):
            break
    assert [queue[number].result().address for number in order] == [B, A, A, A], (
        "B has had its slot all the time"
    )  # type: ignore[union-attr]
    assert [number for number in order if number != 2] == [0, 1, 3]


@in_loop
async def test_a_full_lane_does_not_delay_the_other() -> None:
    limiter = limiter_of(fast=1, slow=1, address=2)
    acquire(limiter, A)
    wait(limiter, B)
    acquire(limiter, B, lane=Lane.SLOW)


@in_loop
async def test_an_expired_waiter_gets_nothing_and_holds_nothing() -> None:
    limiter = limiter_of(fast=1, address=1)
    first = acquire(limiter, A)
    waiting_for_permit, waiting_for_slot, patient = (
        wait(limiter, B),
        wait(limiter, A),
        wait(limiter, B, until=9),
    )
    limiter.drop_expired(0.9)
    assert not waiting_for_permit.done()
    limiter.drop_expired(1.1)
    assert waiting_for_permit.result() is None
    assert waiting_for_slot.result() is None
    assert not patient.done(), "it has the slot of B now, and waits for a permit"
    limiter.release(first, now=1.2)
    limiter.release(got(patient), now=1.3)
    acquire(limiter, A)


@in_loop
async def test_a_cancelled_waiter_holds_nothing() -> None:
    limiter = limiter_of(fast=1, address=1)
    first = acquire(limiter, A)
    for address in (B, A):
        wait(limiter, address).cancel()
    limiter.release(first, now=0)
    limiter.release(acquire(limiter, A), now=0)
    limiter.release(acquire(limiter, B), now=0)


@in_loop
async def test_hanging_sends_are_demoted_from_the_fast_lane() -> None:
    limiter = limiter_of(fast=1, address=1)
    hanging = acquire(limiter, A)
    waiting = wait(limiter, B)
    assert limiter.demote_overdue(OVERDUE_S - 0.01) == []
    assert not waiting.done()
    assert limiter.demote_overdue(OVERDUE_S) == [A]
    got(waiting)
    assert limiter.overdue == 1
    limiter.release(hanging, now=1)
    assert limiter.overdue == 0
    next_one = wait(limiter, A)  # the permit was returned once, not twice
    limiter.release(got(waiting), now=1)
    got(next_one)


@in_loop
async def test_the_slow_lane_demotes_nothing() -> None:
    limiter = limiter_of(slow=1, address=1)
    slow = acquire(limiter, A, lane=Lane.SLOW)
    waiting = wait(limiter, B, lane=Lane.SLOW)
    assert limiter.demote_overdue(10) == []
    assert not waiting.done()
    limiter.release(slow, now=10)
    got(waiting)


@in_loop
async def test_an_unused_address_leaves_no_state() -> None:
    limiter = limiter_of(address=1)
    for number in range(100):
        address = f"http://10.0.1.{number}:9999/"
        permit = acquire(limiter, address)
        waiting = wait(limiter, address)
        limiter.release(permit, now=0)
        limiter.release(got(waiting), now=0)
    assert (dict(limiter._in_use), limiter._address_queues, limiter._in_fast) == ({}, {}, {})


@in_loop
async def test_hanging_sends_do_not_reduce_claims_but_stop_claiming_ahead() -> None:
    lanes = Lanes(fast_max=1, slow_max=1, address_max=FAST_AHEAD)
    for _ in range(FAST_AHEAD):
        lanes.enter(Lane.FAST, A)
    lanes.add([DueFire(1, 7, T0), DueFire(2, 7, T0)])
    assert not lanes.waiting
    permit = acquire(lanes.limiter, A)
    lanes.demote_overdue(OVERDUE_S)
    assert lanes.capacity(A) == 0
    assert [fire.id for fire in lanes.take(256)] == [1]
    lanes.limiter.release(permit, now=1)
    lanes.leave(Lane.FAST)
    assert [fire.id for fire in lanes.take(256)] == [2]
