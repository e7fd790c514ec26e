"""Probes: what executors answer about open runs, several of them asked at once."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import NamedTuple

from app.clock import Millis
from app.domain.evidence import Sign, judge_probes
from app.errors import ExecutorUnreachable
from app.executors.calls import Peer
from app.executors.gateway import Gateway
from executor_client.protocol import SUCCESS, LogRequest, Reply

#: an executor that does not answer a probe within this time counts as silent
PROBE_TIMEOUT_S = 2.0


class SentRun(NamedTuple):
    """A run, and the executor it was sent to."""

    peer: Peer
    job_id: int
    log_id: int
    trigger_ms: Millis

    @property
    def job_there(self) -> tuple[str, int]:
        """Address and job."""
        return self.peer.address, self.job_id


def probe_all(gateway: Gateway, pool: Executor, runs: Sequence[SentRun]) -> list[Sign]:
    """Probe for every run; each address gets one ``/beat``, and one ``/idleBeat`` for each of its jobs."""
    peers = {run.peer.address: run.peer for run in runs}
    alive = dict(zip(peers, pool.map(lambda peer: _is_alive(gateway, peer), peers.values()), strict=True))
    of_jobs = {run.job_there: run for run in runs if alive[run.peer.address]}
    hanging: set[str] = set()
    idle = dict(
        zip(of_jobs, pool.map(lambda run: _ask_idle(gateway, run, hanging), of_jobs.values()), strict=True)
    )
    return list(pool.map(lambda run: _probe(gateway, run, alive, idle.get(run.job_there)), runs))


def _is_alive(gateway: Gateway, peer: Peer) -> bool:
    """Whether the address answers at all, even with an error."""
    try:
        gateway.beat(peer, timeout_s=PROBE_TIMEOUT_S)
    except ExecutorUnreachable:
        return False
    return True


def _ask_idle(gateway: Gateway, run: SentRun, hanging: set[str]) -> Reply | None:
    """Ask whether a job is idle; do not wait again for an address that has just left that unanswered."""
    if run.peer.address in hanging:
        return None
    try:
        return gateway.idle_beat(run.peer, run.job_id, timeout_s=PROBE_TIMEOUT_S)
    except ExecutorUnreachable:
        hanging.add(run.peer.address)
        return None


def _probe(gateway: Gateway, run: SentRun, alive: Mapping[str, bool], idle: Reply | None) -> Sign:
    """Return the evidence on one run; if its job is idle, the executor is asked for its log."""
    if not alive[run.peer.address]:
        return Sign.SILENT
    log = None
    if idle is not None and idle.code == SUCCESS:
        request = LogRequest(run.log_id, run.trigger_ms, 1)
        try:
            found = gateway.read_log(run.peer, request, timeout_s=PROBE_TIMEOUT_S)
            log = Reply(SUCCESS, None, found.to_wire())
        except ExecutorUnreachable as exc:
            log = Reply(500, exc.reason)
    return judge_probes(alive=True, idle=idle, log=log)
