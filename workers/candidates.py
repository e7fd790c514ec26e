"""Candidate search of FAILOVER and BUSYOVER: which executor says that it may take a run. Lives in the dispatcher's loop.

One more candidate is asked every PROBE_MS, so that a dead one costs no more than that; the earlier ones are listened to until
the trigger time-out, so that one that is only slow is not given up.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from app.domain.trace_templates import OTHER_CHOSEN
from app.pipeline.claim import PROBE_MS, Claimed
from app.pipeline.send import Probed, Sender, Sent, trace_probe

PROBE_S = PROBE_MS / 1000


class CandidateSearch:
    """The candidates of one run: those not asked yet, and those that may still answer."""

    def __init__(self, sender: Sender, claimed: Claimed) -> None:
        self._sender = sender
        self._claimed = claimed
        self._unasked = deque(claimed.peers)
        #: probes whose answer has not been looked at, in the order of the candidates
        self._asked: dict[str, asyncio.Task[Probed]] = {}
        #: when each was asked, in seconds of the loop's clock
        self._asked_at: dict[str, float] = {}
        #: those whose silence is in the trace
        self._unanswered: set[str] = set()
        #: what the candidates said, for the run's trace
        self.lines: list[str] = []
        self.unreachable: list[str] = []

    async def next_candidate(self, *, stopping: Callable[[], bool]) -> str | None:
        """Return the next candidate that said yes, the first in order if several did.

        None: all have said no or not answered in time, or ``stopping`` says that none is to be asked any more.
        """
        while not stopping():
            for address in [address for address, probe in self._asked.items() if probe.done()]:
                if self._note(self._asked.pop(address).result(), address):
                    self._trace_unanswered()
                    return address
            wait_s = self._wait_s()
            if self._unasked and wait_s <= 0:
                self._ask(self._unasked.popleft())
            elif not self._asked:
                return None
            else:
                await asyncio.wait(self._asked.values(), timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
        return None

    def add(self, sent: Sent) -> None:
        """Record the result of sending to a candidate."""
        self.lines += sent.trace
        self.unreachable += sent.unreachable

    def close(self) -> None:
        """Stop listening to those that have not answered."""
        for probe in self._asked.values():
            probe.cancel()
        self._asked.clear()

    def _wait_s(self) -> float:
        """Return how long the next candidate waits: for the answer of the one asked last, at most PROBE_S."""
        last = next(reversed(self._asked_at), None)
        if not self._unasked:
            return PROBE_S
        return self._asked_at[last] + PROBE_S - _now() if last is not None and last in self._asked else 0.0

    def _ask(self, address: str) -> None:
        self._asked_at[address] = _now()
        self._asked[address] = asyncio.create_task(self._sender.probe(self._claimed, address))

    def _trace_unanswered(self) -> None:
        """Name in the trace, once, each candidate that has not answered when another is chosen."""
        silent = [
            address
            for address, probe in self._asked.items()
            if not probe.done() and address not in self._unanswered
        ]
        for address in silent:
            took_ms = round((_now() - self._asked_at[address]) * 1000)
            self.lines.append(trace_probe(self._claimed, address, OTHER_CHOSEN, took_ms))
        self._unanswered.update(silent)

    def _note(self, probed: Probed, address: str) -> bool:
        self.lines.append(probed.line)
        if probed.unreachable:
            self.unreachable.append(address)
        return probed.yes


def _now() -> float:
    return asyncio.get_running_loop().time()
