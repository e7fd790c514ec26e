"""Lanes: sends in flight per lane and address, parked fires, and their order."""

from app.clock import MINUTE_MS, Millis
from app.domain.schedules.planning import DueFire
from workers.dispatch.lanes import (
    AHEAD_MAX,
    AHEAD_UNKNOWN,
    BACK_OFF_MAX_S,
    FAST_AHEAD,
    QUICK_ANSWER_MS,
    SLOW_SENDS,
    Lanes,
)
from workers.dispatch.send_limiter import Lane

T0: Millis = 1_714_532_640_000
A, B = "http://10.0.0.11:9999/", "http://10.0.0.12:9999/"


def fires(*ids: int, job_id: int = 7) -> list[DueFire]:
    return [DueFire(fire_id, job_id, T0 + fire_id) for fire_id in ids]


def ids(claimed: list[DueFire]) -> list[int]:
    return [fire.id for fire in claimed]


def lanes_of(fast: int = 10, slow: int = 10, address: int = 3) -> Lanes:
    """Return lanes that claim nothing ahead for A and B: both are known to be slow."""
    lanes = Lanes(fast_max=fast, slow_max=slow, address_max=address)
    lanes.stop_prefetch(A)
    lanes.stop_prefetch(B)
    return lanes


def make_slow(lanes: Lanes, job_id: int, at_ms: Millis = T0) -> None:
    for _ in range(SLOW_SENDS + 1):
        lanes.observe(job_id, A, 501, at_ms)


def test_fires_queue_in_order_and_once() -> None:
    lanes = lanes_of()
    lanes.add(fires(3, 1, 2))
    lanes.add(fires(1, 4))
    assert lanes.waiting
    assert ids(lanes.take(2)) == [3, 1]
    lanes.add(fires(3))
    assert ids(lanes.take(9)) == [2, 4]
    assert not lanes.waiting


def test_a_forgotten_fire_may_be_added_again() -> None:
    lanes = lanes_of()
    lanes.add(fires(1))
    lanes.forget(ids(lanes.take(1)))
    lanes.add(fires(1))
    assert ids(lanes.take(1)) == [1]


def test_a_lane_gives_no_more_than_may_be_claimed() -> None:
    lanes = lanes_of(fast=1)
    lanes.add(fires(*range(1, FAST_AHEAD + 2)))
    assert ids(lanes.take(256)) == list(range(1, FAST_AHEAD + 1))
    for _ in range(FAST_AHEAD):
        lanes.enter(Lane.FAST, A)
    assert (ids(lanes.take(256)), lanes.waiting) == ([], False)
    lanes.leave(Lane.FAST)
    assert lanes.waiting
    assert ids(lanes.take(256)) == [FAST_AHEAD + 1]


def test_a_job_is_slow_after_more_than_ten_slow_sends_in_a_minute() -> None:
    lanes = lanes_of()
    for _ in range(SLOW_SENDS):
        lanes.observe(7, A, 501, T0)
    lanes.observe(7, A, 500, T0)
    assert lanes.lane_of(7) is Lane.FAST
    lanes.observe(7, A, 501, T0 + MINUTE_MS - 1)
    assert (lanes.lane_of(7), lanes.lane_of(8)) == (Lane.SLOW, Lane.FAST)
    lanes.observe(8, A, 1, T0 + MINUTE_MS)
    assert lanes.lane_of(7) is Lane.FAST, "a new calendar minute starts over"


def test_a_job_whose_candidates_are_slow_to_find_is_slow() -> None:
    lanes = lanes_of()
    capacity = lanes.capacity(A)
    for _ in range(SLOW_SENDS + 1):
        lanes.observe_search(7, 501, T0)
        lanes.observe_search(8, 500, T0)
    assert (lanes.lane_of(7), lanes.lane_of(8)) == (Lane.SLOW, Lane.FAST)
    assert lanes.capacity(A) == capacity, "it says nothing of one address"


def test_runs_that_search_for_long_give_their_places_in_the_fast_lane_to_others() -> None:
    lanes = lanes_of(fast=1)
    lanes.add(fires(*range(1, FAST_AHEAD + 10)))
    for fire in lanes.take(256):
        lanes.enter(Lane.FAST, None)
        lanes.start_search(Lane.FAST, fire.id, now=100.0 if fire.id <= 2 else 100.1)
    lanes.end_search(1)
    lanes.demote_overdue(100.499)
    assert not lanes.waiting
    lanes.demote_overdue(100.5)
    assert ids(lanes.take(256)) == [FAST_AHEAD + 1], "one has ended before, the others began later"
    lanes.end_search(2)  # its send counts in the lane
    assert not lanes.waiting
    lanes.demote_overdue(100.6)
    assert ids(lanes.take(256)) == list(range(FAST_AHEAD + 2, 2 * FAST_AHEAD))


def test_runs_that_search_in_the_slow_lane_keep_their_places() -> None:
    lanes = lanes_of(slow=1)
    make_slow(lanes, 7)
    lanes.add(fires(1, 2, job_id=7))
    assert ids(lanes.take(256)) == [1]
    lanes.enter(Lane.SLOW, None)
    lanes.start_search(Lane.SLOW, 1, now=100.0)
    lanes.demote_overdue(200.0)
    assert lanes.take(256) == []
    lanes.end_search(1)


def test_slow_jobs_delay_only_each_other() -> None:
    lanes = lanes_of(fast=5, slow=1)
    make_slow(lanes, 7)
    lanes.add(fires(1, 2, job_id=7))
    lanes.add(fires(3, 4, job_id=8))
    assert ids(lanes.take(256)) == [3, 4, 1]
    lanes.enter(Lane.SLOW, A)
    lanes.add(fires(5, job_id=8))
    assert ids(lanes.take(256)) == [5]


def test_a_long_queue_of_the_fast_lane_leaves_slow_jobs_their_share() -> None:
    lanes = lanes_of(fast=1000, slow=100)
    make_slow(lanes, 7)
    lanes.add(fires(*range(1, 2001), job_id=8))
    lanes.add(fires(*range(3001, 3101), job_id=7))
    assert [len([number for number in ids(lanes.take(512)) if number > 3000]) for _ in range(3)] == [
        64,
        36,
        0,
    ]
    assert len(lanes.take(1024)) == 2000 - 448 - 476 - 512, "nothing is reserved"


def test_an_address_has_its_slots_and_some_ahead_unless_it_is_slow() -> None:
    lanes = lanes_of(address=3)
    assert lanes.capacity("http://10.0.0.13:9999/") == 3 * AHEAD_UNKNOWN, "nothing is known of it yet"
    assert lanes.capacity(A) == 3
    lanes.enter(Lane.FAST, A)
    assert (lanes.capacity(A), lanes.capacity(B)) == (2, 3)
    for _ in range(50):
        lanes.observe(7, A, 5, T0)
    assert lanes.capacity(A) == 3 * AHEAD_MAX - 1
    for _ in range(50):
        lanes.observe(7, A, QUICK_ANSWER_MS // 2, T0)
    assert lanes.capacity(A) == 3 * 2 - 1, "as many as it answers in that time"
    for _ in range(50):
        lanes.observe(7, A, 10 * QUICK_ANSWER_MS, T0)
    assert lanes.capacity(A) == 2
    lanes.free_slot(A)
    assert lanes.capacity(A) == 3


def test_a_probed_address_counts_like_any_other() -> None:
    lanes = lanes_of(address=1)
    lanes.take_slot(A)
    assert (lanes.capacity(A), lanes.capacity(B)) == (0, 1)
    lanes.take_slot(A)  # its send waits for a slot
    assert lanes.capacity(A) == -1
    lanes.free_slot(A)
    lanes.free_slot(A)
    assert lanes.capacity(A) == 1


def full(lanes: Lanes, address: str, count: int) -> None:
    for _ in range(count):
        lanes.enter(Lane.FAST, address)


def test_parked_fires_continue_in_order_before_later_ones() -> None:
    lanes = lanes_of(address=2)
    full(lanes, A, 2)
    lanes.park(A, fires(1, 2, 3))
    lanes.add(fires(9))
    assert (ids(lanes.take(256)), lanes.waiting) == ([9], False)
    lanes.add(fires(10))
    lanes.free_slot(A)
    assert ids(lanes.take(256)) == [1, 10]
    lanes.free_slot(A)
    assert ids(lanes.take(256)) == [2, 3]


def test_fires_parked_at_an_address_that_got_capacity_meanwhile_continue_at_once() -> None:
    lanes = lanes_of(address=2)
    lanes.park(A, fires(1, 2, 3))
    assert ids(lanes.take(256)) == [1, 2]
    lanes.enter(Lane.FAST, A)
    lanes.enter(Lane.FAST, A)
    lanes.free_slot(A)
    assert ids(lanes.take(256)) == [3]


def test_a_parked_fire_found_again_stays_parked() -> None:
    """The poll finds PENDING rows four times a second; they must not be queued, claimed and parked again."""
    lanes = lanes_of(address=1)
    lanes.add(fires(1, 2))
    claimed = lanes.take(256)
    lanes.forget(ids(claimed))
    full(lanes, A, 1)
    lanes.park(A, claimed)
    for _ in range(5):
        lanes.add(claimed)
        assert lanes.take(256) == []
    lanes.free_slot(A)
    assert ids(lanes.take(256)) == [1]
    lanes.forget([1])
    lanes.free_slot(A)
    assert ids(lanes.take(256)) == [2]


def test_fires_parked_at_an_idle_address_continue_when_earlier_ones_went_elsewhere() -> None:
    lanes = lanes_of(address=2)
    full(lanes, A, 2)
    lanes.park(A, fires(1, 2, 3, 4, 5))
    lanes.unpark_orphaned()
    assert lanes.take(256) == [], "the end of a run at A will wake them"
    lanes.free_slot(A)
    lanes.free_slot(A)
    claimed = []
    while batch := ids(lanes.take(256)):  # each goes to another address or node, or was withdrawn
        claimed += batch
        lanes.forget(batch)
        lanes.unpark_orphaned()
    assert sorted(claimed) == [1, 2, 3, 4, 5]


def test_a_parked_fire_of_a_job_that_became_slow_continues_in_the_slow_lane() -> None:
    lanes = lanes_of(fast=1, slow=1, address=1)
    full(lanes, A, 1)
    lanes.park(A, fires(1, job_id=7))
    make_slow(lanes, 7)
    lanes.enter(Lane.SLOW, B)
    lanes.free_slot(A)
    lanes.leave(Lane.FAST)
    assert lanes.take(256) == []
    lanes.leave(Lane.SLOW)
    assert ids(lanes.take(256)) == [1]


def test_an_unclaimable_fire_is_retried_with_back_off() -> None:
    lanes, now, tries = lanes_of(), 100.0, []
    while now < 100 + 300:
        if not lanes.is_backed_off(1, now):
            tries.append(round(now - 100))
            lanes.back_off(1, now)
        now += 0.25
    assert tries == [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]
    assert not lanes.is_backed_off(2, now)
    for _ in range(2_000):
        lanes.back_off(3, now)  # no overflow
    lanes.back_off(2, now + 2 * BACK_OFF_MAX_S)
    assert not lanes.is_backed_off(1, now), "it is forgotten, not kept for ever"


def test_waiting_for_a_quick_address_counts_as_backlog() -> None:
    lanes = lanes_of(address=2)
    full(lanes, A, 5)
    assert lanes.backlog() == 0, "it hangs: runs for it are not counted"
    for _ in range(50):
        lanes.observe(7, A, 5, T0)
    assert lanes.backlog() == 3
    full(lanes, "http://10.0.0.13:9999/", 4)
    assert lanes.backlog() == 5
    lanes.free_slot(A)
    assert lanes.backlog() == 4
