"""Lanes: queues and capacity of fires to claim and send, by lane (fast, slow) and by address.

Belongs to the dispatcher's loop; no lock.
Source: XXL-JOB 2.4.1 JobTriggerPoolHelper: a job with more than 10 sends of over 500 ms within a minute goes
to the slow pool. Ours: the limit per address, so that a hanging executor holds only its own slots, and that a
send gives up its slot in the fast lane if it has not been answered after 500 ms. A search for a candidate of
FAILOVER and BUSYOVER counts like a send.

A run is claimed first and sent when it has its permit. How many runs may be claimed beyond the slots depends
on how quickly their address answers: large claims cost less, but no other node can send the claimed runs.
"""

from collections import Counter, deque
from collections.abc import Iterable

from app.clock import MINUTE_MS, Millis
from app.domain.schedules.planning import DueFire
from workers.dispatch.send_limiter import SLOW_SEND_MS, Lane, SendLimiter

#: a job with more slow sends than this within a minute is slow
SLOW_SENDS = 10
#: capacity of an address: as many runs as it answers within this time
QUICK_ANSWER_MS = 250
#: capacity as a multiple of the slots of an address: the upper limit, and the value before its first answer
AHEAD_MAX = 32
AHEAD_UNKNOWN = 4
#: addresses whose answer times are kept
ANSWERS_KEPT = 10_000
#: back-off of a fire that could not be claimed: 1 s, doubling, at most a minute
BACK_OFF_MAX_S = 60.0
BACK_OFF_STEPS = 6
#: runs of the fast lane claimed at a time, as a multiple of its slots
FAST_AHEAD = 8
#: one in this many runs of a claim may belong to a slow job, whatever waits in the fast lane
SLOW_SHARE = 8


class Lanes:
    """Fires waiting to be claimed, parked fires and claimed runs, by lane and address."""

    def __init__(self, *, fast_max: int, slow_max: int, address_max: int) -> None:
        self._claims_max = {Lane.FAST: fast_max * FAST_AHEAD, Lane.SLOW: slow_max}
        self.limiter = SendLimiter({Lane.FAST: fast_max, Lane.SLOW: slow_max}, address_max=address_max)
        self._address_max = address_max
        self._ready: dict[Lane, deque[DueFire]] = {Lane.FAST: deque(), Lane.SLOW: deque()}
        self._parked: dict[str, deque[DueFire]] = {}
        self._known: set[int] = set()
        #: fires that could not be claimed: number of failures, end of the back-off in monotonic seconds
        self._backed_off: dict[int, tuple[int, float]] = {}
        self._in_lane: Counter[Lane] = Counter()
        #: claimed runs by address, in flight or waiting for a permit
        self._at_address: Counter[str] = Counter()
        #: answer time of each address, a moving average in ms
        self._answer_ms: dict[str, float] = {}
        #: claimed runs that are not due yet
        self.held = 0
        #: runs of the fast lane that search for a candidate, by fire, and since when, oldest first
        self._searching: dict[int, float] = {}
        #: runs that have searched for SLOW_SEND_MS or longer and do not count in the lane any more
        self._searching_overdue: set[int] = set()
        self._slow_sends: Counter[int] = Counter()
        self._minute = 0

    def add(self, fires: Iterable[DueFire]) -> None:
        """Queue due fires; ignore those already here."""
        for fire in fires:
            if fire.id not in self._known:
                self._known.add(fire.id)
                self._ready[self.lane_of(fire.job_id)].append(fire)

    def lane_of(self, job_id: int) -> Lane:
        """Return the current lane of a job."""
        return Lane.SLOW if self._slow_sends[job_id] > SLOW_SENDS else Lane.FAST

    def take(self, limit: int) -> list[DueFire]:
        """Take fires to be claimed, within the capacity of each lane."""
        slow = min(max(self._free(Lane.SLOW), 0), len(self._ready[Lane.SLOW]))
        fires = self._take_of(Lane.FAST, limit - min(slow, limit // SLOW_SHARE))
        return fires + self._take_of(Lane.SLOW, limit - len(fires))

    def _take_of(self, lane: Lane, limit: int) -> list[DueFire]:
        ready = self._ready[lane]
        return [ready.popleft() for _ in range(min(max(self._free(lane), 0), limit, len(ready)))]

    def capacity(self, address: str) -> int:
        """Return how many more runs may be claimed for an address: more if it answers quickly."""
        answer_ms = self._answer_ms.get(address, QUICK_ANSWER_MS / AHEAD_UNKNOWN)
        ahead = min(max(QUICK_ANSWER_MS / max(answer_ms, 1), 1), AHEAD_MAX)
        return int(self._address_max * ahead) - self._at_address.get(address, 0)

    def demote_overdue(self, now: float) -> None:
        """Demote sends without an answer, and long searches, from the fast lane; resolve expired waiters.

        ``now`` by ``elapsed_s``.
        """
        for address in self.limiter.demote_overdue(now):
            self.stop_prefetch(address)
        self.limiter.drop_expired(now)
        for fire_id, since in list(self._searching.items()):
            if now - since < SLOW_SEND_MS / 1000:
                break
            del self._searching[fire_id]
            self._searching_overdue.add(fire_id)

    def backlog(self) -> int:
        """Return how many claimed runs are due and wait for a permit of an address that answers quickly."""
        ahead = {
            address: count - self._address_max
            for address, count in self._at_address.items()
            if count > self._address_max
        }
        quick = sum(
            count for address, count in ahead.items() if self._answer_ms.get(address, 0) < QUICK_ANSWER_MS
        )
        return max(quick - self.held, 0)

    def _free(self, lane: Lane) -> int:
        overdue = self.limiter.overdue + len(self._searching_overdue) if lane is Lane.FAST else 0
        return self._claims_max[lane] - self._in_lane[lane] + overdue

    def park(self, address: str, fires: Iterable[DueFire]) -> None:
        """Keep fires until their address has capacity again; ``add`` ignores them meanwhile."""
        for fire in fires:
            self._known.add(fire.id)
            self._parked.setdefault(address, deque()).append(fire)
        self._unpark(address)

    def unpark_orphaned(self) -> None:
        """Queue fires again that are parked for an address without runs: no run's end would unpark them.

        The runs they waited for went to another address, to another node, or nowhere.
        """
        for address in [address for address in self._parked if address not in self._at_address]:
            self._unpark(address)

    def enter(self, lane: Lane, address: str | None) -> None:
        """Count a claimed run; no address: probing."""
        self._in_lane[lane] += 1
        if address is not None:
            self._at_address[address] += 1

    def start_search(self, lane: Lane, fire_id: int, now: float) -> None:
        """Record that a run probes its candidates from now on; ``now`` by ``elapsed_s``."""
        if lane is Lane.FAST:
            self._searching[fire_id] = now

    def end_search(self, fire_id: int) -> None:
        """Count a run in its lane again, whether it has found a candidate or not."""
        self._searching.pop(fire_id, None)
        self._searching_overdue.discard(fire_id)

    def take_slot(self, address: str) -> None:
        """Count a run for an address that a probe has chosen; its send waits for a permit like any other."""
        self._at_address[address] += 1

    def free_slot(self, address: str) -> None:
        """Give back a slot; queue the fires parked for it again."""
        self._at_address[address] -= 1
        if not self._at_address[address]:
            del self._at_address[address]
        self._unpark(address)

    def leave(self, lane: Lane) -> None:
        """Count a run that has left its lane."""
        self._in_lane[lane] -= 1

    def forget(self, fire_ids: Iterable[int]) -> None:
        """Drop fires that are no longer PENDING: claimed by us or by another node, or withdrawn."""
        self._known.difference_update(fire_ids)

    def knows(self, fire_id: int) -> bool:
        """Whether a fire waits here or is backed off after a failed claim."""
        return fire_id in self._known or fire_id in self._backed_off

    def back_off(self, fire_id: int, now: float) -> int:
        """Postpone a fire whose claim failed though the database works; return how often it has.

        ``now`` in monotonic seconds.
        """
        self._backed_off = {
            other_id: entry for other_id, entry in self._backed_off.items() if now < entry[1] + BACK_OFF_MAX_S
        }
        failures = self._backed_off.get(fire_id, (0, now))[0]
        self._backed_off[fire_id] = (
            failures + 1,
            now + min(2.0 ** min(failures, BACK_OFF_STEPS), BACK_OFF_MAX_S),
        )
        return failures + 1

    def is_backed_off(self, fire_id: int, now: float) -> bool:
        """Whether a fire's back-off has not ended yet."""
        return fire_id in self._backed_off and now < self._backed_off[fire_id][1]

    def stop_prefetch(self, address: str) -> None:
        """Claim nothing ahead for an address: a run did not get its permit there in time."""
        self._answer_ms[address] = max(self._answer_ms.get(address, 0), QUICK_ANSWER_MS)

    def observe(self, job_id: int, address: str, took_ms: Millis, now_ms: Millis) -> None:
        """Record a send: the answer time of its address, and whether it makes its job slow."""
        if len(self._answer_ms) > ANSWERS_KEPT:
            del self._answer_ms[next(iter(self._answer_ms))]
        self._answer_ms[address] = 0.8 * self._answer_ms.get(address, took_ms) + 0.2 * took_ms
        self.observe_search(job_id, took_ms, now_ms)

    def observe_search(self, job_id: int, took_ms: Millis, now_ms: Millis) -> None:
        """Record a search for a candidate: whether it makes its job slow this calendar minute."""
        if now_ms // MINUTE_MS != self._minute:
            self._minute = now_ms // MINUTE_MS
            self._slow_sends.clear()
        if took_ms > SLOW_SEND_MS:
            self._slow_sends[job_id] += 1

    @property
    def waiting(self) -> bool:
        """Whether a fire could be claimed now."""
        return any(ready and self._free(lane) > 0 for lane, ready in self._ready.items())

    def _unpark(self, address: str) -> None:
        fires = self._parked.get(address)
        if fires is None:
            return
        free = min(max(self.capacity(address), 0), len(fires))
        for fire in reversed([fires.popleft() for _ in range(free)]):
            self._ready[self.lane_of(fire.job_id)].appendleft(fire)
        if not fires:
            del self._parked[address]
