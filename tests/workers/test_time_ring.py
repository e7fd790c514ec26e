"""Time ring: entries come out at their due millisecond, whatever the clock does; late ones at once."""

import random
import threading

import pytest

from app.clock import Millis
from app.domain.schedules.planning import DueFire
from workers.time_ring import IDLE_WAIT_MS, TimeRing

T0: Millis = 1_714_532_645_000


def fire(number: int, due_ms: Millis) -> DueFire:
    return DueFire(number, 7, due_ms)


def ring_of(*dues: Millis, now_ms: Millis = T0) -> TimeRing:
    ring = TimeRing(now_ms)
    ring.push(fire(number, due_ms) for number, due_ms in enumerate(dues))
    return ring


def taken(ring: TimeRing, now_ms: Millis) -> list[Millis]:
    return [entry.due_time for entry in ring.take(now_ms)]


def test_an_entry_comes_out_at_its_millisecond() -> None:
    ring = ring_of(T0 + 250)
    assert taken(ring, T0 + 249) == []
    assert taken(ring, T0 + 250) == [T0 + 250]
    assert taken(ring, T0 + 251) == []
    assert len(ring) == 0


def test_entries_come_out_earliest_first() -> None:
    dues = [T0 + late for late in (900, 100, 4_999, 0, 1_001, 100, 3_000)]
    assert taken(ring_of(*dues), T0 + 5_000) == sorted(dues)


@pytest.mark.parametrize("until_ms", [T0 - 1, T0, T0 + 999, T0 + 1_000, T0 + 4_999, T0 + 3_600_000])
def test_entries_are_counted_without_taking_them(until_ms: Millis) -> None:
    dues = [T0 - 5_000, T0, T0 + 900, T0 + 1_000, T0 + 1_001, T0 + 4_999]
    ring = ring_of(*dues)
    assert ring.count_until(until_ms) == sum(due_ms <= until_ms for due_ms in dues)
    assert len(ring) == len(dues)


@pytest.mark.parametrize("late_ms", [1, 999, 1_000, 59_000, 61_000, 3_600_000])
def test_a_late_entry_comes_out_at_the_next_check(late_ms: Millis) -> None:
    assert taken(ring_of(T0 - late_ms), T0) == [T0 - late_ms]


def test_an_entry_of_the_second_just_checked() -> None:
    ring = TimeRing(T0)
    assert taken(ring, T0 + 500) == []
    ring.push([fire(1, T0 + 400), fire(2, T0 + 600)])
    assert taken(ring, T0 + 500) == [T0 + 400]
    assert taken(ring, T0 + 700) == [T0 + 600]


@pytest.mark.parametrize("ahead_ms", [5_000, 59_999, 60_000, 60_001, 61_000, 119_500, 600_000])
def test_an_entry_far_ahead_comes_out_on_time(ahead_ms: Millis) -> None:
    ring = ring_of(T0 + ahead_ms)
    for now_ms in range(T0, T0 + ahead_ms, 500):
        assert taken(ring, now_ms) == []
    assert taken(ring, T0 + ahead_ms) == [T0 + ahead_ms]


@pytest.mark.parametrize("jump_s", [5, 59, 60, 61, 3_600, 86_400 * 365])
def test_a_clock_set_forward_releases_all_due_entries(jump_s: int) -> None:
    dues = [T0 + number * 700 for number in range(8)]
    assert taken(ring_of(*dues), T0 + jump_s * 1000 + 5_000) == dues


@pytest.mark.parametrize("jump_s", [1, 30, 59, 60, 61, 3_600])
def test_a_clock_set_back_releases_nothing_early_and_everything_on_time(jump_s: int) -> None:
    ring = ring_of(T0 + 1_000)
    assert taken(ring, T0 + 500) == []
    back = T0 - jump_s * 1000
    assert taken(ring, back) == []
    ring.push([fire(9, back + 1_700)])
    assert taken(ring, back + 1_699) == []
    assert taken(ring, back + 1_700) == [back + 1_700]
    for now_ms in range(back + 1_800, T0 + 1_000, 500):
        assert taken(ring, now_ms) == []
    assert taken(ring, T0 + 1_000) == [T0 + 1_000]


def test_entries_added_before_a_clock_set_back_was_noticed_come_out_too() -> None:
    """Otherwise the loop would find them due for ever and spin."""
    ring = TimeRing(T0)
    back = T0 - 30_000
    ring.push([fire(1, back + 100)])
    assert taken(ring, back + 99) == []
    assert taken(ring, back + 100) == [back + 100]


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_lost_early_or_doubled_under_any_clock(seed: int) -> None:
    chance = random.Random(seed)
    now_ms, number = T0, 0
    ring, inside, out = TimeRing(now_ms), {}, []
    for _ in range(400):
        if chance.random() < 0.5:
            number += 1
            inside[number] = now_ms + chance.choice([-70_000, -500, 0, 1, 800, 5_000, 58_000, 64_000])
            ring.push([fire(number, inside[number])])
        now_ms += chance.choice([0, 1, 40, 999, 1_000, 1_001, 5_000, 65_000, -3_000, -90_000])
        due = ring.take(now_ms)
        assert all(entry.due_time <= now_ms for entry in due)
        out += [entry.id for entry in due]
        for entry in due:
            del inside[entry.id]
        now_ms += 1
        again = ring.take(now_ms)
        out += [entry.id for entry in again]
        for entry in again:
            del inside[entry.id]
        assert not [due_ms for due_ms in inside.values() if due_ms <= now_ms], (
            "a due entry waits for the second check at most"
        )
    assert len(out) == len(set(out))
    assert len(ring) == len(inside)


def test_a_new_entry_ends_the_wait() -> None:
    ring = TimeRing(T0)
    ended = threading.Event()

    def wait() -> None:
        for _ in range(3):
            ring.wait(T0)
        ended.set()

    thread = threading.Thread(target=wait)
    thread.start()
    while not ended.wait(0.005):
        ring.push([fire(1, T0)])
    thread.join()
    assert IDLE_WAIT_MS == 1_000


def test_a_stop_ends_the_wait() -> None:
    ring = ring_of(T0 + 900)
    thread = threading.Thread(target=ring.wait, args=(T0,))
    thread.start()
    while thread.is_alive():
        ring.wake()
        thread.join(0.005)
    assert len(ring) == 1, "remaining entries stay: their rows are in the database"


def test_many_threads_push_while_one_takes() -> None:
    ring, out = TimeRing(T0), []

    def push(start: int) -> None:
        for number in range(start, start + 500):
            ring.push([fire(number, T0 + number % 3000)])

    threads = [threading.Thread(target=push, args=(start,)) for start in range(0, 4_000, 500)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        out += ring.take(T0 + 2_000)
    out += ring.take(T0 + 3_000)
    assert sorted(entry.id for entry in out) == list(range(4_000))
