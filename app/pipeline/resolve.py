"""Settling runs whose fate is open: by evidence and the job's delivery policy, never by age alone.

Source: docs/reference/pipeline.md, section 7.

A look reads in one transaction, asks the executors outside of any, and writes in another, which takes back nothing that a
callback has settled meanwhile.
"""

import logging
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import Millis
from app.config import Config
from app.db import announce_due_fires, read_scope, transact
from app.domain.enums import AddressType, Delivery, FireState, NodeKind, TriggerCode
from app.domain.evidence import Decision, Evidence, ResolveAction, Sign, decide, judge_probes
from app.domain.trace_templates import CLAIMED_AFTER, RESOLVED, SENT_TO, UNREPORTED, fill
from app.domain.trigger_report import format_instant, join_lines
from app.errors import ExecutorUnreachable
from app.executors.calls import Peer
from app.executors.gateway import Gateway
from app.models.base import zone_name
from app.models.fire import Fire
from app.models.log import JobLog
from app.pipeline.claim_trace import trace_trigger
from app.pipeline.complete import Result, Source, complete
from app.store import bulk, fires, groups, jobs, logs, nodes, registry
from app.store.fires import OpenFire
from executor_client.protocol import SUCCESS, LogRequest, Reply

logger = logging.getLogger(__name__)

#: period of the looks, and probes in flight
PERIOD_MS: Millis = 500
PROBES_AT_ONCE = 16
#: fires of one round
LEASE_ROWS = 500
CHECK_ROWS = 200
#: a probe that has not answered by then found nobody
PROBE_TIMEOUT_S = 2.0
#: a look that broke off is made again after this
RECHECK_MS: Millis = 15_000


@dataclass(frozen=True, slots=True)
class _Case:
    """One open run with what the database knows about it."""

    fire: OpenFire
    peer: Peer
    delivery: Delivery
    durable: bool
    #: of a durable executor; empty: a foreign one
    boot_id: str
    registered: bool
    trigger_ms: Millis
    #: a console lives that could have taken a result
    reachable: bool


def expire_leases(*, node: str, now_ms: Millis) -> int:
    """Free what a sender took and never reported, at once where its node is dead; return how many. Opens its own transaction.

    ``node`` is the one that asks: it lives, however late its heartbeats reach a database that is slow.
    """

    def work(session: Session) -> int:
        dead = [name for name in nodes.find_dead(session, NodeKind.WORKERS, now_ms=now_ms) if name != node]
        return fires.expire_leases(session, now_ms=now_ms, dead_owners=dead, limit=LEASE_ROWS)

    freed = transact(work)
    if freed:
        logger.warning("leases expired count=%s", freed)
    return freed


class Resolver:
    """Looks at open runs; probes several executors at once."""

    def __init__(self, config: Config, *, token: str) -> None:
        self._gateway = Gateway(config.executor_networks)
        self._token = token
        self._pool = ThreadPoolExecutor(PROBES_AT_ONCE, thread_name_prefix="probe")

    def close(self) -> None:
        """Wait for no probe any more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def tick(self, now_ms: Millis) -> Millis:
        """Evidence at the open runs that are due for it; return the wait until the next round."""
        cases = _read(self._token, now_ms)
        if cases:
            signs = _probe_all(self._gateway, self._pool, cases)
            decisions = [
                (case, decide(_evidence(case, sign, now_ms))) for case, sign in zip(cases, signs, strict=True)
            ]
            transact(lambda session: _write(session, decisions, now_ms))
        return 0 if len(cases) == CHECK_ROWS else PERIOD_MS


def _read(token: str, now_ms: Millis) -> list[_Case]:
    """Take the runs that are due for a look, with all that is known of them."""

    def work(session: Session) -> list[_Case]:
        due = fires.take_open(session, now_ms=now_ms, next_look_ms=now_ms + RECHECK_MS, limit=CHECK_ROWS)
        unfinished = logs.find_unfinished(session, [fire.log_id for fire in due])
        taken = [fire for fire in due if fire.log_id in unfinished]
        _forget(session, [fire for fire in due if fire.log_id not in unfinished])
        of_jobs = jobs.find_deliveries(session, {fire.job_id for fire in taken})
        of_groups = groups.find_groups(session, {group_id for _, group_id in of_jobs.values()})
        boots = registry.find_boots(session, {fire.address for fire in taken})
        reachable = bool(nodes.count_live(session, NodeKind.CONSOLE, now_ms=now_ms))
        cases = []
        for fire in taken:
            delivery, group_id = of_jobs.get(fire.job_id, (Delivery.AT_MOST_ONCE.value, 0))
            group = of_groups.get(group_id)
            manual = group is not None and group.address_type == AddressType.MANUAL
            peer = Peer(
                fire.address,
                group.app_name if group else "",
                (group.access_token if group else None) or token,
            )
            accepted_durably = fire.state == FireState.ACCEPTED and bool(
                fire.boot_id
            )  # also once its registration has died
            boot_id, said = boots.get(fire.address, (fire.boot_id, ""))
            durable = accepted_durably or "durable-dedup" in said
            registered = manual or (group is not None and fire.address in group.addresses)
            boot_id, trigger_ms = boot_id if durable else "", unfinished[fire.log_id].trigger_ms
            cases.append(
                _Case(fire, peer, _delivery(delivery), durable, boot_id, registered, trigger_ms, reachable)
            )
        return cases

    with read_scope() as session:
        if not fires.has_open(session, now_ms=now_ms):
            return []
    return transact(work)


def _forget(session: Session, over: Sequence[OpenFire]) -> None:
    """Delete the fires of runs that ended without this program: a Java admin wrote their result, or deleted their log row."""
    if over:
        fires.delete_fires(session, [fire.id for fire in over])
        logger.info(
            "fires removed, runs already ended by another admin log_ids=%s", [fire.log_id for fire in over]
        )


def _delivery(name: str) -> Delivery:
    try:
        return Delivery(name)
    except ValueError:
        return Delivery.AUTO


def _probe_all(gateway: Gateway, pool: Executor, cases: Sequence[_Case]) -> list[Sign]:
    """Ask about every run; one address is asked for its beat once."""
    peers = {case.peer.address: case.peer for case in cases}
    alive = dict(zip(peers, pool.map(lambda peer: _is_alive(gateway, peer), peers.values()), strict=True))
    hanging: set[str] = set()
    return list(pool.map(lambda case: _probe(gateway, case, alive[case.peer.address], hanging), cases))


def _is_alive(gateway: Gateway, peer: Peer) -> bool:
    """Whether somebody answers at all, whatever it says."""
    try:
        gateway.beat(peer, timeout_s=PROBE_TIMEOUT_S)
    except ExecutorUnreachable:
        return False
    return True


def _probe(gateway: Gateway, case: _Case, alive: bool, hanging: set[str]) -> Sign:
    """Ask about one run; an address that has just left such a question unanswered is not waited for again."""
    if not alive:
        return Sign.SILENT
    if case.peer.address in hanging:
        return Sign.INCONCLUSIVE
    idle = log = None
    try:
        idle = gateway.idle_beat(case.peer, case.fire.job_id, timeout_s=PROBE_TIMEOUT_S)
        if idle.code == SUCCESS:
            request = LogRequest(case.fire.log_id, case.trigger_ms, 1)
            log = Reply(
                SUCCESS, None, gateway.read_log(case.peer, request, timeout_s=PROBE_TIMEOUT_S).to_wire()
            )
    except ExecutorUnreachable as exc:
        if idle is None:
            hanging.add(case.peer.address)
        else:
            log = Reply(500, exc.reason)
    return judge_probes(alive=True, idle=idle, log=log)


def _evidence(case: _Case, sign: Sign, now_ms: Millis) -> Evidence:
    fire = case.fire
    since_ms = fire.lease_until if fire.state == FireState.UNKNOWN else fire.accepted_ms
    return Evidence(
        state=FireState(fire.state),
        delivery=case.delivery,
        sign=sign,
        durable=case.durable,
        registered=case.registered,
        probes=fire.probe_count,
        attempt=fire.attempt,
        age_ms=now_ms - since_ms,
        reachable=case.reachable,
    )


def _write(session: Session, decisions: Sequence[tuple[_Case, Decision]], now_ms: Millis) -> None:
    """Carry out the decisions on runs that are still as they were read."""
    runs = logs.lock_runs(session, [case.fire.log_id for case, _ in decisions])
    held = fires.lock_open(session, [case.fire.id for case, _ in decisions])
    lost: list[Result] = []
    traces: list[bulk.Row] = []
    again: list[bulk.Row] = []
    marks: list[bulk.Row] = []
    over: list[OpenFire] = []
    for case, decision in decisions:
        fire, run = case.fire, runs.get(case.fire.log_id)
        if held.get(fire.id) != (fire.state, fire.epoch, fire.lease_until):
            continue
        if run is None or not logs.is_unfinished(run.trigger_code, run.handle_code):
            over.append(fire)
            continue
        if decision.action is ResolveAction.WAIT:
            marks.append(_mark(case, decision, now_ms))
            continue
        logger.warning(
            "run resolved log_id=%s outcome=%s reason=%s", fire.log_id, decision.action, decision.reason
        )
        told = [
            *([] if run.trigger_msg else _unreported(fire)),
            fill(RESOLVED, outcome=decision.action, reason=decision.reason),
        ]
        if decision.action is ResolveAction.UNRESOLVED:
            lost.append(
                Result(
                    fire.log_id, Source.RESOLVER, trigger_code=TriggerCode.UNRESOLVED, trace=join_lines(told)
                )
            )
            continue
        started = decision.action is ResolveAction.STARTED
        code = TriggerCode.ACCEPTED if started else TriggerCode.NONE
        traces.append(
            {"id": run.id, "trigger_msg": join_lines(run.trigger_msg, told), "trigger_code": code.value}
        )
        if started:
            marks.append(_mark(case, decision, now_ms))
        else:
            again.append(_again(case, decision))
    bulk.update_many(session, JobLog, traces)
    if again:
        bulk.update_many(session, Fire, again)
        announce_due_fires(session)
    bulk.update_many(session, Fire, marks)
    _forget(session, over)
    if lost:
        complete(session, lost, now_ms=now_ms)


def _unreported(fire: OpenFire) -> list[str]:
    """Return what the row knows of a send whose sender ended before it could tell."""
    zone = zone_name()
    return [
        trace_trigger(fire.trigger_type, fire.due_time, zone),
        fill(
            CLAIMED_AFTER,
            instant=format_instant(fire.sent_ms, zone),
            ms=fire.sent_ms - fire.due_time,
            node=fire.owner,
        ),
        fill(SENT_TO, address=fire.address),
        fill(UNREPORTED, node=fire.owner),
    ]


def _again(case: _Case, decision: Decision) -> bulk.Row:
    elsewhere = decision.action is ResolveAction.SEND_ELSEWHERE
    return {
        "id": case.fire.id,
        "state": FireState.PENDING.value,
        "owner": "",
        "address": None if elsewhere else case.fire.address,
        "boot_id": "" if elsewhere else case.boot_id,
        "lease_until": 0,
        "deadline_ms": 0,
        "probe_count": 0,
    }


def _mark(case: _Case, decision: Decision, now_ms: Millis) -> bulk.Row:
    """Note a look, and what it found."""
    fire = case.fire
    started = decision.action is ResolveAction.STARTED
    return {
        "id": fire.id,
        "state": (FireState.ACCEPTED if started else FireState(fire.state)).value,
        "accepted_ms": now_ms if started else fire.accepted_ms,
        "deadline_ms": now_ms + decision.wait_ms,
        "probe_count": decision.probes,
    }
