"""Routes: golden hash vectors, stateful routes, and changing address lists."""

import json
import random
import threading
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest

from app.domain.enums import RouteStrategy
from app.domain.runs.routing import PROBING, ROUTERS, RouteState, hash_point, route_of
from tests.support.truth_table import truth_table

DATA = Path(__file__).resolve().parents[2] / "data"
A, B, C, D = (f"http://10.0.0.{number}:9999/" for number in (11, 12, 13, 14))
ABC = (A, B, C)
ROUND, LFU, LRU = RouteStrategy.ROUND, RouteStrategy.LEAST_FREQUENTLY_USED, RouteStrategy.LEAST_RECENTLY_USED


def pick(route: RouteStrategy, state: RouteState, addresses: tuple[str, ...] = ABC, job_id: int = 7) -> str:
    return ROUTERS[route](job_id, addresses, state)


def picks(route: RouteStrategy, state: RouteState, count: int, addresses: tuple[str, ...] = ABC) -> list[str]:
    return [pick(route, state, addresses) for _ in range(count)]


def test_every_golden_vector_of_the_consistent_hash() -> None:
    vectors = [json.loads(line) for line in (DATA / "consistent_hash.jsonl").read_text().splitlines()]
    assert len(vectors) == 400
    for vector in vectors:
        chosen = pick(
            RouteStrategy.CONSISTENT_HASH, RouteState(), tuple(vector["addresses"]), vector["job_id"]
        )
        assert chosen == vector["address"], vector


@truth_table(
    "job_id, point, host",
    [
        (1, 943901380, C),
        (2, 2373066440, B),
        (3, 2127088620, B),
        (7, 1608782991, B),
        (42, 3905343649, C),
        (100, 2635307512, B),
        (1000, 1891284905, A),
        (65535, 476027708, B),
        (601, 4280809138, A),  # beyond the largest key: the ring wraps
    ],
)
def test_the_check_values_of_the_consistent_hash(job_id: int, point: int, host: str) -> None:
    assert hash_point(str(job_id)) == point
    assert pick(RouteStrategy.CONSISTENT_HASH, RouteState(), ABC, job_id) == host


def test_the_hash_spreads_jobs_as_the_original_does() -> None:
    chosen = Counter(
        pick(RouteStrategy.CONSISTENT_HASH, RouteState(), ABC, job_id) for job_id in range(1, 10_001)
    )
    assert chosen == {A: 3073, B: 3310, C: 3617}


def test_the_rings_of_former_address_lists_take_little_memory() -> None:
    fleet = [f"http://10.0.1.{number}:9999/" for number in range(100)]
    tracemalloc.start()
    try:
        for start in range(60):  # one instance leaves, one comes
            pick(RouteStrategy.CONSISTENT_HASH, RouteState(), tuple(fleet[start : start + 40]))
        assert tracemalloc.get_traced_memory()[0] < 2_500_000
    finally:
        tracemalloc.stop()


def test_first_last_and_random() -> None:
    state = RouteState(random.Random(1))
    assert pick(RouteStrategy.FIRST, state) == A
    assert pick(RouteStrategy.LAST, state) == C
    assert set(picks(RouteStrategy.RANDOM, state, 50)) == set(ABC)


def test_round_starts_at_random_and_takes_turns() -> None:
    starts = set()
    for seed in range(20):
        state = RouteState(random.Random(seed))
        first = picks(ROUND, state, 3)
        assert sorted(first) == sorted(ABC)
        assert picks(ROUND, state, 3) == first
        starts.add(first[0])
    assert starts == set(ABC), "a restart must not send everything to the first address"


def test_round_counts_per_job() -> None:
    state = RouteState(random.Random(1))
    seven, eight = picks(ROUND, state, 3), [pick(ROUND, state, job_id=8) for _ in range(3)]
    assert sorted(seven) == sorted(eight) == sorted(ABC)


@truth_table("route", [ROUND, LFU, LRU])
def test_a_fair_route_distributes_evenly(route: RouteStrategy) -> None:
    assert Counter(picks(route, RouteState(random.Random(3)), 300)) == {A: 100, B: 100, C: 100}


@truth_table("route", list(ROUTERS))
def test_a_removed_address_is_never_chosen_and_a_new_one_is(route: RouteStrategy) -> None:
    state = RouteState(random.Random(3))
    picks(route, state, 9)
    without_b = picks(route, state, 60, (A, C))
    assert set(without_b) <= {A, C}
    back = picks(route, state, 60, (A, C, D))
    assert set(back) <= {A, C, D}
    if route in (ROUND, LFU, LRU):
        assert set(back) == {A, C, D}


def test_lfu_takes_the_least_used_and_list_order_decides_ties() -> None:
    state = RouteState()
    state.seed(7, [A, A, B, C, C, C])
    assert picks(LFU, state, 6) == [B, A, B, A, B, C]


def test_lfu_does_not_flood_an_address_that_returns() -> None:
    state = RouteState()
    picks(LFU, state, 300)
    assert Counter(picks(LFU, state, 8, (*ABC, D))) == {A: 2, B: 2, C: 2, D: 2}


def test_lru_takes_the_least_recently_used_and_new_ones_first() -> None:
    state = RouteState()
    state.seed(7, [C, A, C, B])  # newest first: B is the least recently used
    assert picks(LRU, state, 4) == [B, A, C, B]
    assert picks(LRU, state, 3, (A, D, C)) == [D, A, C]


def test_lru_compares_no_address_with_all_others() -> None:
    compared = 0

    class Address(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

    state = RouteState()
    addresses = [Address(f"http://10.0.0.{number}:9999/") for number in range(200)]
    state.seed(7, addresses[:100])
    assert ROUTERS[LRU](7, addresses, state) == addresses[100]
    assert compared < 2 * len(addresses)


def test_only_lfu_and_lru_need_a_seed_and_only_once() -> None:
    for route in RouteStrategy:
        state = RouteState()
        assert state.needs_seed(route, 7) is (route in (LFU, LRU))
        state.seed(7, [])
        assert not state.needs_seed(route, 7)
        assert state.needs_seed(route, 8) is (route in (LFU, LRU))


@truth_table("route", [LFU, LRU])
def test_without_a_history_list_order_decides(route: RouteStrategy) -> None:
    state = RouteState()
    state.seed(7, [])
    assert picks(route, state, 3) == list(ABC)


@truth_table("route", [ROUND, LFU, LRU])
def test_picks_of_many_threads_stay_fair(route: RouteStrategy) -> None:
    state = RouteState(random.Random(3))
    chosen: list[str] = []

    def work() -> None:
        chosen.extend(picks(route, state, 300))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(chosen) == {A: 800, B: 800, C: 800}


@truth_table("name", ["", None, "MAGIC", "first", "LEAST_FREQUENTLY_USED "])
def test_an_unknown_route_counts_as_the_first_address(name: str | None) -> None:
    assert route_of(name) is RouteStrategy.FIRST


def test_every_route_is_computed_probed_or_a_broadcast() -> None:
    assert set(ROUTERS) | PROBING | {RouteStrategy.SHARDING_BROADCAST} == set(RouteStrategy)
    assert [route_of(route.value) for route in RouteStrategy] == list(RouteStrategy)


@truth_table("route", list(ROUTERS))
def test_a_list_with_a_duplicate_address(route: RouteStrategy) -> None:
    assert set(picks(route, RouteState(random.Random(3)), 10, (A, A))) == {A}


def test_the_state_of_jobs_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.domain.runs.routing.JOBS_MAX", 2)
    state = RouteState(random.Random(1))
    for job_id in (1, 2, 1, 3):
        for strategy in (
            RouteStrategy.ROUND,
            RouteStrategy.LEAST_FREQUENTLY_USED,
            RouteStrategy.LEAST_RECENTLY_USED,
        ):
            ROUTERS[strategy](job_id, ["a", "b"], state)
    assert list(state.rounds) == list(state.counts) == list(state.orders) == [2, 3]
    assert state.needs_seed(RouteStrategy.LEAST_RECENTLY_USED, 1)
