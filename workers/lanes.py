"""How many sends may be in flight: fast and slow lane, and per address. Lives in the dispatcher's loop, no lock.

Source: XXL-JOB 2.4.1 JobTriggerPoolHelper: a job with more than 10 sends of over 500 ms within a minute goes to the slow
pool. Ours: the cap per address, so that one hanging executor holds only its own slots, and that a send of the fast lane gives
its slot there to others when it has not been answered after 500 ms.

A run is claimed first and sent when it has its permit. How many runs may be claimed beyond the slots depends on how quickly their address
answers: claims in large groups cost less, but what is claimed here no other node can send.
"""

from collections import Counter, deque
from collections.abc import Iterable

from app.clock import MINUTE_MS, Millis
from app.domain.planning import DueFire
from workers.send_limiter import SLOW_SEND_MS, Lane, SendLimiter

#: more slow sends than this within a minute make a slow job
SLOW_SENDS = 10
#: an address may have as many runs claimed as it answers in this time: they wait a moment here, not in the table
QUICK_ANSWER_MS = 250
#: so many times its slots at most, and where nothing is known of it yet
AHEAD_MAX = 16
AHEAD_UNKNOWN = 4
#: addresses whose answers are remembered
ANSWERS_KEPT = 10_000
#: a fire that could not be claimed is tried again after a second, then ever later, a minute at the most
BACK_OFF_MAX_S = 60.0
BACK_OFF_STEPS = 6
#: runs of the fast lane claimed at a time, in multiples of its places
FAST_AHEAD = 4
#: one in so many runs of a claim may be a slow job's whatever waits in the fast lane
SLOW_SHARE = 8


class Lanes:
    """Who waits, who is in flight."""

    def __init__(self, *, fast_max: int, slow_max: int, address_max: int) -> None:
        self._claims_max = {Lane.FAST: fast_max * FAST_AHEAD, Lane.SLOW: slow_max}
        self.limiter = SendLimiter({Lane.FAST: fast_max, Lane.SLOW: slow_max}, address_max=address_max)
        self._address_max = address_max
        self._ready: dict[Lane, deque[DueFire]] = {Lane.FAST: deque(), Lane.SLOW: deque()}
        self._parked: dict[str, deque[DueFire]] = {}
        self._known: set[int] = set()
        #: fires that could not be claimed: how often, and until when they are left alone, in monotonic seconds
        self._backed_off: dict[int, tuple[int, float]] = {}
        self._in_lane: Counter[Lane] = Counter()
        #: claimed runs by address, in flight or waiting for a permit
        self._at_address: Counter[str] = Counter()
        #: how long answers of an address take, a moving average in ms
        self._answer_ms: dict[str, float] = {}
        self._slow_sends: Counter[int] = Counter()
        self._minute = 0

    def add(self, fires: Iterable[DueFire]) -> None:
        """Line up fires that are due; one that is here already stays where it is."""
        for fire in fires:
            if fire.id not in self._known:
                self._known.add(fire.id)
                self._ready[self.lane_of(fire.job_id)].append(fire)

    def lane_of(self, job_id: int) -> Lane:
        """Return the lane of a job at present."""
        return Lane.SLOW if self._slow_sends[job_id] > SLOW_SENDS else Lane.FAST

    def take(self, limit: int) -> list[DueFire]:
        """Take fires to be claimed, no more of a lane than it may have."""
        slow = min(max(self._free(Lane.SLOW), 0), len(self._ready[Lane.SLOW]))
        taken = self._take_of(Lane.FAST, limit - min(slow, limit // SLOW_SHARE))
        return taken + self._take_of(Lane.SLOW, limit - len(taken))

    def _take_of(self, lane: Lane, limit: int) -> list[DueFire]:
        ready = self._ready[lane]
        return [ready.popleft() for _ in range(min(max(self._free(lane), 0), limit, len(ready)))]

    def capacity(self, address: str) -> int:
        """Return how many more runs may be claimed for an address: its free slots, and the more ahead the quicker it answers."""
        answer_ms = self._answer_ms.get(address, QUICK_ANSWER_MS / AHEAD_UNKNOWN)
        ahead = min(max(QUICK_ANSWER_MS / max(answer_ms, 1), 1), AHEAD_MAX)
        return int(self._address_max * ahead) - self._at_address.get(address, 0)

    def demote_overdue(self, now: float) -> None:
        """Demote sends without an answer from the fast lane and resolve expired waiters; ``now`` in loop seconds."""
        for address in self.limiter.demote_overdue(now):
            self.stop_prefetch(address)
        self.limiter.drop_expired(now)

    def backlog(self) -> int:
        """Return how many claimed runs wait for a permit of an address that answers quickly."""
        ahead = {
            address: count - self._address_max
            for address, count in self._at_address.items()
            if count > self._address_max
        }
        return sum(
            count for address, count in ahead.items() if self._answer_ms.get(address, 0) < QUICK_ANSWER_MS
        )

    def _free(self, lane: Lane) -> int:
        overdue = self.limiter.overdue if lane is Lane.FAST else 0
        return self._claims_max[lane] - self._in_lane[lane] + overdue

    def park(self, address: str, fires: Iterable[DueFire]) -> None:
        """Let fires wait until their address has room again; a poll that finds them meanwhile adds nothing."""
        for fire in fires:
            self._known.add(fire.id)
            self._parked.setdefault(address, deque()).append(fire)
        self._unpark(address)

    def unpark_orphaned(self) -> None:
        """Let fires go on that are parked where no run of ours is: the end of none would wake them.

        Those that lined up again before them have gone to another address, to another node, or nowhere.
        """
        for address in [address for address in self._parked if address not in self._at_address]:
            self._unpark(address)

    def enter(self, lane: Lane, address: str | None) -> None:
        """Count a claimed run; no address: probing."""
        self._in_lane[lane] += 1
        if address is not None:
            self._at_address[address] += 1

    def take_slot(self, address: str) -> None:
        """Count a run for an address that a probe has chosen; its send waits for a permit like any other."""
        self._at_address[address] += 1

    def free_slot(self, address: str) -> None:
        """Give back a slot; whoever waited for it lines up again."""
        self._at_address[address] -= 1
        if not self._at_address[address]:
            del self._at_address[address]
        self._unpark(address)

    def leave(self, lane: Lane) -> None:
        """Count a run that has left its lane."""
        self._in_lane[lane] -= 1

    def forget(self, fire_ids: Iterable[int]) -> None:
        """Drop fires that are no longer PENDING: claimed by us or by another, or withdrawn."""
        self._known.difference_update(fire_ids)

    def knows(self, fire_id: int) -> bool:
        """Whether a fire waits here or is held off after a failed claim."""
        return fire_id in self._known or fire_id in self._backed_off

    def back_off(self, fire_id: int, now: float) -> None:
        """Leave a fire alone for a while: its claim failed, though the database is there; ``now`` in monotonic seconds."""
        self._backed_off = {
            known: entry for known, entry in self._backed_off.items() if now < entry[1] + BACK_OFF_MAX_S
        }
        failures = self._backed_off.get(fire_id, (0, now))[0]
        self._backed_off[fire_id] = (
            failures + 1,
            now + min(2.0 ** min(failures, BACK_OFF_STEPS), BACK_OFF_MAX_S),
        )

    def is_backed_off(self, fire_id: int, now: float) -> bool:
        """Whether a fire is to be left alone at present."""
        return fire_id in self._backed_off and now < self._backed_off[fire_id][1]

    def stop_prefetch(self, address: str) -> None:
        """Claim nothing ahead for an address: a run has waited for a permit there in vain."""
        self._answer_ms[address] = max(self._answer_ms.get(address, 0), QUICK_ANSWER_MS)

    def observe(self, job_id: int, address: str, took_ms: Millis, now_ms: Millis) -> None:
        """Learn from a send: how quick its address is, and whether its job is slow in this calendar minute."""
        if len(self._answer_ms) > ANSWERS_KEPT:
            del self._answer_ms[next(iter(self._answer_ms))]
        self._answer_ms[address] = 0.8 * self._answer_ms.get(address, took_ms) + 0.2 * took_ms
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
        parked = self._parked.get(address)
        if parked is None:
            return
        room = self.capacity(address)
        for fire in reversed([parked.popleft() for _ in range(min(max(room, 0), len(parked)))]):
            self._ready[self.lane_of(fire.job_id)].appendleft(fire)
        if not parked:
            del self._parked[address]
