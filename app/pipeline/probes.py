"""Probes: requests to executors about open runs, several executors at once, and the evidence they give."""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import NamedTuple, TypeVar

from app.clock import Millis
from app.domain.runs.evidence import Sign, judge_probes
from app.domain.runs.trace_templates import NO_ANSWER, NO_CONNECTION
from app.errors import ExecutorUnreachable
from app.executors.calls import Peer
from app.executors.gateway import Gateway
from executor_client.wire.protocol import SUCCESS, LogRequest, Reply

T = TypeVar("T")

logger = logging.getLogger(__name__)

#: an executor that does not answer a probe within this time counts as silent
PROBE_TIMEOUT_S = 2.0


class SentRun(NamedTuple):
    """A run, and the executor it was sent to."""

    peer: Peer
    job_id: int
    log_id: int
    trigger_ms: Millis

    @property
    def job_at(self) -> tuple[str, int]:
        """Address and job."""
        return self.peer.address, self.job_id


def probe_all(gateway: Gateway, pool: Executor, runs: Sequence[SentRun]) -> list[Sign]:
    """Probe for every run.

    Each address gets one ``/beat`` and one ``/idleBeat`` for each of its jobs, and another for a run without
    a log. An address with which a probe ends in an error is not probed again in this check, and what it has
    answered proves nothing.
    """
    silent: set[str] = set()
    failing: set[str] = set()
    hanging: set[str] = set()

    def probe_or_none(peer: Peer, probe: Callable[[], T]) -> T | None:
        if peer.address in silent | failing:
            return None
        try:
            return probe()
        except Exception:  # It would end the check of all other runs.
            logger.exception("probe failed address=%s", peer.address)
            failing.add(peer.address)
            return None

    def beat(peer: Peer) -> None:
        if probe_or_none(peer, lambda: _is_alive(gateway, peer)) is False:
            silent.add(peer.address)

    list(pool.map(beat, {run.peer.address: run.peer for run in runs}.values()))
    one_of_each_job = {run.job_at: run for run in runs}
    idle_beats = pool.map(
        lambda run: probe_or_none(run.peer, lambda: _probe_idle(gateway, run, hanging)),
        one_of_each_job.values(),
    )
    idle = dict(zip(one_of_each_job, idle_beats, strict=True))
    signs = pool.map(
        lambda run: probe_or_none(run.peer, lambda: _probe(gateway, run, idle[run.job_at], hanging)), runs
    )
    return [
        sign or (Sign.SILENT if run.peer.address in silent else Sign.INCONCLUSIVE)
        for run, sign in zip(runs, signs, strict=True)
    ]


def _is_alive(gateway: Gateway, peer: Peer) -> bool:
    """Whether the address answers at all, even with an error."""
    try:
        gateway.beat(peer, timeout_s=PROBE_TIMEOUT_S)
    except ExecutorUnreachable:
        return False
    return True


def _probe_idle(gateway: Gateway, run: SentRun, hanging: set[str]) -> Reply | None:
    """Probe whether a job is idle; do not wait again for an address that has just left that unanswered."""
    if run.peer.address in hanging:
        return None
    try:
        return gateway.idle_beat(run.peer, run.job_id, timeout_s=PROBE_TIMEOUT_S)
    except ExecutorUnreachable:
        hanging.add(run.peer.address)
        return None


def _probe(gateway: Gateway, run: SentRun, idle: Reply | None, hanging: set[str]) -> Sign:
    """Return the evidence on one run; if its job is idle, its log is read.

    Without a log the job is probed once more: since its first answer the run may have arrived.
    """
    log = None
    if idle is not None and idle.code == SUCCESS:
        log = _read_log(gateway, run, hanging)
    sign = judge_probes(alive=True, idle=idle, log=log)
    if sign is not Sign.NO_TRACE:
        return sign
    return judge_probes(alive=True, idle=_probe_idle(gateway, run, hanging), log=log)


def _read_log(gateway: Gateway, run: SentRun, hanging: set[str]) -> Reply | None:
    """Return the answer to ``/log``; None: its address has left one unanswered and is not probed again."""
    if run.peer.address in hanging:
        return None
    try:
        chunk = gateway.read_log(
            run.peer, LogRequest(run.log_id, run.trigger_ms, 1), timeout_s=PROBE_TIMEOUT_S
        )
    except ExecutorUnreachable as exc:
        if exc.reason in (NO_ANSWER, NO_CONNECTION):
            hanging.add(run.peer.address)
        return Reply(500, exc.reason)
    return Reply(SUCCESS, None, chunk.to_wire())
