"""Routing strategies: choose one address of a group.

Source: XXL-JOB 2.4.1, package route; docs/reference/scheduling.md, section 7. ROUND, LFU and LRU keep state
per job, in this process. A first pick starts at a random offset (ROUND) or from the job's last runs (LFU,
LRU), so that neither a restart nor a second node sends everything to one address. FAILOVER and BUSYOVER probe
the executors (``app.pipeline.send``); SHARDING_BROADCAST uses all addresses (``app.pipeline.route``).
"""

import hashlib
import random
import threading
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import TypeVar

from app.domain.enums import RouteStrategy

#: points of each address on the hash ring
VIRTUAL_NODES = 100
#: hash rings kept: every change of an address list makes a new one, of 800 bytes for each address
RINGS_KEPT = 32
#: addresses whose points are kept, so that a changed list costs only those of its new addresses
POINTS_KEPT = 4_096
#: strategies that probe executors before choosing one
PROBING = frozenset({RouteStrategy.FAILOVER, RouteStrategy.BUSYOVER})
#: strategies whose state is seeded from the job's last log rows
SEEDED = frozenset({RouteStrategy.LEAST_FREQUENTLY_USED, RouteStrategy.LEAST_RECENTLY_USED})
#: log rows read for that
SEED_ROWS = 100


#: jobs whose state is kept: the oldest makes room, and starts as after a restart
JOBS_MAX = 200_000
State = TypeVar("State")


def _keep(states: dict[int, State], job_id: int, state: State) -> None:
    if len(states) >= JOBS_MAX and job_id not in states:
        del states[next(iter(states))]
    states[job_id] = state


def _copy(states: dict[int, State], source: dict[int, State], job_ids: Collection[int]) -> None:
    for job_id in job_ids:
        if job_id in source:
            _keep(states, job_id, source[job_id])


class RouteState:
    """Routing state of this process, per job; safe to use from several threads."""

    def __init__(self, random_source: random.Random | None = None) -> None:
        self.random = random_source or random.Random()
        self.lock = threading.Lock()
        self.rounds: dict[int, int] = {}
        self.counts: dict[int, dict[str, int]] = {}
        self.orders: dict[int, list[str]] = {}

    def take_over(self, source: "RouteState", job_ids: Collection[int]) -> None:
        """Take over the state of some jobs from another one."""
        with self.lock:  # The values can be shared, because a pick replaces them.
            _copy(self.rounds, source.rounds, job_ids)
            _copy(self.counts, source.counts, job_ids)
            _copy(self.orders, source.orders, job_ids)

    def needs_seed(self, strategy: RouteStrategy, job_id: int) -> bool:
        """Whether ``seed`` must be called for a job before its next pick."""
        state = self.counts if strategy is RouteStrategy.LEAST_FREQUENTLY_USED else self.orders
        return strategy in SEEDED and job_id not in state

    def seed(self, job_id: int, recent: Sequence[str]) -> None:
        """Set the state of a job from the addresses of its last runs, newest first."""
        with self.lock:
            counts: dict[str, int] = {}
            for address in recent:
                counts[address] = counts.get(address, 0) + 1
            _keep(self.counts, job_id, counts)
            _keep(self.orders, job_id, list(dict.fromkeys(recent))[::-1])


def _round(job_id: int, addresses: Sequence[str], state: RouteState) -> str:
    with state.lock:
        count = state.rounds.get(job_id)
        count = state.random.randrange(100) if count is None else count + 1
        _keep(state.rounds, job_id, count)
        return addresses[count % len(addresses)]


def _least_frequently_used(job_id: int, addresses: Sequence[str], state: RouteState) -> str:
    with state.lock:
        counts_before = state.counts.get(job_id, {})
        floor = min((counts_before[address] for address in addresses if address in counts_before), default=0)
        # A new address starts with the lowest count, so that it is not flooded to catch up.
        counts = {address: counts_before.get(address, floor) for address in addresses}
        # On a tie, an address that was never used comes first.
        pick = min(addresses, key=lambda address: (counts[address], address in counts_before))
        counts[pick] += 1
        _keep(state.counts, job_id, counts)
        return pick


def _least_recently_used(job_id: int, addresses: Sequence[str], state: RouteState) -> str:
    with state.lock:
        present = set(addresses)
        order = [address for address in state.orders.get(job_id, []) if address in present]
        used_addresses = set(order)
        unused_addresses = [address for address in dict.fromkeys(addresses) if address not in used_addresses]
        pick, *later = unused_addresses + order
        _keep(state.orders, job_id, [*later, pick])
        return pick


def hash_point(text: str) -> int:
    """Return the position of a text on the hash ring: the first four bytes of its MD5, little-endian."""
    return int.from_bytes(hashlib.md5(text.encode(), usedforsecurity=False).digest()[:4], "little")


@lru_cache(POINTS_KEPT)
def _points(address: str) -> "array[int]":
    return array("I", [hash_point(f"SHARD-{address}-NODE-{number}") for number in range(VIRTUAL_NODES)])


@lru_cache(RINGS_KEPT)
def _ring(addresses: tuple[str, ...]) -> "tuple[array[int], array[int]]":
    """Return the points of a ring in order, and for each of them the place of its address in the list."""
    places = {point: place for place, address in enumerate(addresses) for point in _points(address)}
    points = array("I", sorted(places))
    return points, array("I", [places[point] for point in points])


def _consistent_hash(job_id: int, addresses: Sequence[str], _state: RouteState) -> str:
    points, places = _ring(tuple(addresses))
    index = bisect_left(points, hash_point(str(job_id)))
    return addresses[places[index % len(points)]]


#: strategies that need no requests: (job id, non-empty addresses, state) -> address
ROUTERS: dict[RouteStrategy, Callable[[int, Sequence[str], RouteState], str]] = {
    RouteStrategy.FIRST: lambda _job_id, addresses, _state: addresses[0],
    RouteStrategy.LAST: lambda _job_id, addresses, _state: addresses[-1],
    RouteStrategy.ROUND: _round,
    RouteStrategy.RANDOM: lambda _job_id, addresses, state: state.random.choice(addresses),
    RouteStrategy.CONSISTENT_HASH: _consistent_hash,
    RouteStrategy.LEAST_FREQUENTLY_USED: _least_frequently_used,
    RouteStrategy.LEAST_RECENTLY_USED: _least_recently_used,
}


#: each strategy by its name
_BY_NAME: dict[str | None, RouteStrategy] = {strategy.value: strategy for strategy in RouteStrategy}


def route_of(name: str | None) -> RouteStrategy:
    """Return the strategy with this name; FIRST for an unknown one, so that the run still ends."""
    return _BY_NAME.get(name, RouteStrategy.FIRST)
