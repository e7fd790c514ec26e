"""Candidate search of FAILOVER and BUSYOVER: probes of instances until one accepts a run.

Runs in the dispatcher's loop. Another candidate is probed every PROBE_MS, so a dead one costs no more than
that; answers to earlier probes are accepted until the trigger timeout, so a slow one is not lost.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from app.domain.runs.trace_templates import OTHER_CHOSEN
from app.pipeline.claimed_run import PROBE_MS, ClaimedRun
from app.pipeline.send import ProbeAnswer, Sender, SendOutcome, trace_probe

PROBE_S = PROBE_MS / 1000


class CandidateSearch:
    """The candidates of one run: those not probed yet, and those that may still answer."""

    def __init__(self, sender: Sender, claim: ClaimedRun) -> None:
        self._sender = sender
        self._claim = claim
        self._unprobed = deque(claim.peers)
        #: probes whose answer has not been read yet, in the order of the candidates
        self._probes: dict[str, asyncio.Task[ProbeAnswer | None]] = {}
        #: time of each probe, in seconds of the loop's clock
        self._probed_at: dict[str, float] = {}
        #: addresses whose missing answer is already in the trace
        self._unanswered: set[str] = set()
        #: answers of the candidates, for the run's trace
        self.lines: list[str] = []
        self.unreachable: list[str] = []
        #: a candidate could not be probed because of this host: another time it may accept
        self.is_given_up = False

    async def next_candidate(self, *, stopping: Callable[[], bool]) -> str | None:
        """Return the next candidate that accepted, the first in order if several did.

        None: all refused or did not answer in time, the search ``is_given_up``, or ``stopping`` is True.
        """
        while not stopping():
            for address in [address for address, probe in self._probes.items() if probe.done()]:
                answer = self._probes.pop(address).result()
                if answer is None:
                    self.is_given_up = True
                    return None
                if self._trace(answer, address):
                    self._trace_unanswered()
                    return address
            wait_s = self._wait_s()
            if self._unprobed and wait_s <= 0:
                self._probe(self._unprobed.popleft())
            elif not self._probes:
                return None
            else:
                await asyncio.wait(self._probes.values(), timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
        return None

    def add(self, outcome: SendOutcome) -> None:
        """Record the result of sending to a candidate."""
        self.lines += outcome.trace
        self.unreachable += outcome.unreachable

    def close(self) -> None:
        """Cancel the probes that have not been answered."""
        for probe in self._probes.values():
            probe.cancel()
        self._probes.clear()

    def _wait_s(self) -> float:
        """Return the wait before the next probe: for the answer to the latest one, at most PROBE_S."""
        last = next(reversed(self._probed_at), None)
        if not self._unprobed:
            return PROBE_S
        return self._probed_at[last] + PROBE_S - _now() if last is not None and last in self._probes else 0.0

    def _probe(self, address: str) -> None:
        self._probed_at[address] = _now()
        self._probes[address] = asyncio.create_task(self._sender.probe(self._claim, address))

    def _trace_unanswered(self) -> None:
        """Add to the trace, once each, the candidates that have not answered when another is chosen."""
        silent = [
            address
            for address, probe in self._probes.items()
            if not probe.done() and address not in self._unanswered
        ]
        for address in silent:
            took_ms = round((_now() - self._probed_at[address]) * 1000)
            self.lines.append(trace_probe(self._claim, address, OTHER_CHOSEN, took_ms))
        self._unanswered.update(silent)

    def _trace(self, answer: ProbeAnswer, address: str) -> bool:
        """Add an answer to the trace; return whether the candidate accepted."""
        self.lines.append(answer.line)
        if answer.unreachable:
            self.unreachable.append(address)
        return answer.yes


def _now() -> float:
    return asyncio.get_running_loop().time()
