"""Resolver: settles runs of unknown fate, by evidence and the job's delivery policy, never by age alone.

docs/reference/pipeline.md, section 7. A check reads in one transaction, probes executors outside of any, and
writes in another, which skips runs that a callback has settled meanwhile.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import announce_due_fires, transact
from app.database.rows import bulk
from app.domain.enums import AddressType, Delivery, FireState, NodeKind, TriggerCode
from app.domain.executors.addresses import without_slash
from app.domain.runs.evidence import Decision, Evidence, ResolveAction, Sign, decide
from app.domain.runs.trace_templates import CLAIMED_AFTER, RESOLVED, SENT_TO, UNREPORTED, fill
from app.domain.runs.trigger_report import format_instant, join_lines
from app.executors.calls import NO_TOKEN, Peer
from app.executors.gateway import Gateway
from app.models.fire import Fire
from app.models.group import Group
from app.models.log import JobLog
from app.pipeline.claim_trace import trace_trigger
from app.pipeline.complete import Result, Source, complete
from app.pipeline.group_addresses import find_foreign, withholds_token
from app.pipeline.probes import SentRun, probe_all
from app.settings.config import Config
from app.store.executors import groups, registry
from app.store.fires import logs
from app.store.fires import open as open_fires
from app.store.fires import queue as fires
from app.store.fires.logs import RunState, UnfinishedRun
from app.store.fires.open import OpenFire
from app.store.jobs.of_results import find_deliveries
from app.store.nodes import nodes

logger = logging.getLogger(__name__)

#: period of the rounds, and probes in flight
PERIOD_MS: Millis = 1_000
PROBES_AT_ONCE = 16
#: fires of one round
LEASE_ROWS = 500
CHECK_ROWS = 200
#: a check that was interrupted is repeated after this
RECHECK_MS: Millis = 15_000
#: Pause after a round as a multiple of the CPU time that this process used meanwhile, and its upper limit:
#: checks take a quarter of a core at most, so that they do not delay the results they wait for.
PAUSE_FACTOR = 3
PAUSE_MAX_MS: Millis = 5_000


@dataclass(frozen=True, slots=True)
class _Case:
    """An open run with all that the database has about it."""

    fire: OpenFire
    peer: Peer
    delivery: Delivery
    durable: bool
    #: boot id of a durable executor; empty for others
    boot_id: str
    is_registered: bool
    trigger_ms: Millis
    #: a console is running that could have taken a result
    reachable: bool
    #: its group no longer has its address, or was deleted: no token is sent there, hence no probe
    withheld: bool

    @property
    def sent_run(self) -> SentRun:
        """The run as the probes need it."""
        return SentRun(self.peer, self.fire.job_id, self.fire.log_id, self.trigger_ms)


class _ResolvedRun(NamedTuple):
    """An open run and a decision on it other than to wait."""

    case: _Case
    decision: Decision
    run: RunState


def expire_leases(*, node: str, now_ms: Millis) -> int:
    """Mark sends as UNKNOWN whose lease has expired or whose node is dead; return how many.

    ``node`` is the caller's own: it is alive even if its heartbeats reach a slow database late. Opens its own
    transaction, unless nothing is being sent.
    """
    if not open_fires.has_leased():
        return 0

    def work(session: Session) -> int:
        dead = [name for name in nodes.find_dead(session, NodeKind.WORKERS, now_ms=now_ms) if name != node]
        return open_fires.expire_leases(session, now_ms=now_ms, dead_owners=dead, limit=LEASE_ROWS)

    count = transact(work)
    if count:
        logger.warning("leases expired count=%s", count)
    return count


class Resolver:
    """Checks open runs; probes several executors at once."""

    def __init__(
        self, config: Config, *, tokens: tuple[str, ...], cpu_s: Callable[[], float] = time.process_time
    ) -> None:
        self._cpu_s = cpu_s
        self._gateway = Gateway(config.executor_networks)
        self._tokens = tokens
        self._zone = config.time_zone
        self._pool = ThreadPoolExecutor(PROBES_AT_ONCE, thread_name_prefix="probe")

    def close(self) -> None:
        """Stop waiting for probes."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def tick(self, now_ms: Millis) -> Millis:
        """Check the open runs that are due for a check; return the wait until the next round."""
        if not open_fires.has_open(now_ms=now_ms):
            return PERIOD_MS
        began_s = self._cpu_s()
        cases = transact(lambda session: _take(session, self._tokens, now_ms))
        if cases:
            cases_to_probe = [case for case in cases if not case.withheld]
            probe_signs = probe_all(self._gateway, self._pool, [case.sent_run for case in cases_to_probe])
            signs = {case.fire.id: sign for case, sign in zip(cases_to_probe, probe_signs, strict=True)}
            decisions = [
                (case, decide(_evidence(case, signs.get(case.fire.id, Sign.INCONCLUSIVE), now_ms)))
                for case in cases
            ]
            transact(lambda session: _write(session, decisions, self._zone, now_ms))
        pause_ms = round((self._cpu_s() - began_s) * 1000 * PAUSE_FACTOR)
        return max(min(pause_ms, PAUSE_MAX_MS), 0 if len(cases) == CHECK_ROWS else PERIOD_MS)


def _take(session: Session, tokens: tuple[str, ...], now_ms: Millis) -> list[_Case]:
    """Take the runs that are due for a check."""
    due = open_fires.take_open(session, now_ms=now_ms, next_check_ms=now_ms + RECHECK_MS, limit=CHECK_ROWS)
    run_by_id = logs.find_unfinished(session, [fire.log_id for fire in due])
    unfinished_fires = [fire for fire in due if fire.log_id in run_by_id]
    _forget(session, [fire for fire in due if fire.log_id not in run_by_id])
    delivery_by_job = find_deliveries(session, {fire.job_id for fire in unfinished_fires})
    # The groups are those of the log rows, because a job may have been moved since.
    group_by_id = groups.find_groups(session, {run_by_id[fire.log_id].job_group for fire in unfinished_fires})
    withheld = _find_withheld(session, unfinished_fires, run_by_id, group_by_id, now_ms)
    boots = registry.find_boots(session, {fire.address for fire in unfinished_fires})
    reachable = bool(nodes.count_live(session, NodeKind.CONSOLE, now_ms=now_ms))
    cases = []
    for fire in unfinished_fires:
        run = run_by_id[fire.log_id]
        group = group_by_id.get(run.job_group)
        # It stays durable once its registration has expired.
        accepted_durably = fire.state == FireState.ACCEPTED and bool(fire.boot_id)
        address_and_app = (fire.address, group.app_name if group is not None else "")
        boot_id, capabilities = boots.get(address_and_app, (fire.boot_id, ""))
        durable = accepted_durably or "durable-dedup" in capabilities
        case = _Case(
            fire,
            _peer(fire, group, tokens),
            _delivery(delivery_by_job.get(fire.job_id, Delivery.AT_MOST_ONCE.value)),
            durable,
            boot_id if durable else "",
            _is_registered(fire, group),
            run.trigger_ms,
            reachable,
            fire.id in withheld,
        )
        cases.append(case)
    return cases


def _peer(fire: OpenFire, group: Group | None, tokens: tuple[str, ...]) -> Peer:
    if group is None:
        return Peer(fire.address, "", *NO_TOKEN)
    return Peer(fire.address, group.app_name, *(group.tokens or tokens))


def _find_withheld(
    session: Session,
    fires_to_check: Sequence[OpenFire],
    run_by_id: Mapping[int, UnfinishedRun],
    group_by_id: Mapping[int, Group],
    now_ms: Millis,
) -> set[int]:
    """Return the ids of those whose address must not get a token."""
    addresses_by_group: dict[int, set[str]] = {}
    for fire in fires_to_check:
        group_id = run_by_id[fire.log_id].job_group
        if withholds_token(group_by_id.get(group_id)):
            addresses_by_group.setdefault(group_id, set()).add(fire.address)
    foreign = find_foreign(session, addresses_by_group, group_by_id, now_ms=now_ms)
    return {
        fire.id
        for fire in fires_to_check
        if fire.address in foreign.get(run_by_id[fire.log_id].job_group, ())
    }


def _is_registered(fire: OpenFire, group: Group | None) -> bool:
    """Whether the address is registered; one entered by hand counts as registered."""
    return group is not None and (
        group.address_type == AddressType.MANUAL
        or without_slash(fire.address) in map(without_slash, group.addresses)
    )


def _forget(session: Session, ended_fires: Sequence[OpenFire]) -> None:
    """Delete the fires of runs that another admin has ended, by a result or by deleting their log row."""
    if ended_fires:
        fires.delete_fires(session, [fire.id for fire in ended_fires])
        log_ids = [fire.log_id for fire in ended_fires]
        logger.info("fires removed, runs already ended by another admin log_ids=%s", log_ids)


def _delivery(name: str) -> Delivery:
    try:
        return Delivery(name)
    except ValueError:
        return Delivery.AUTO


def _evidence(case: _Case, sign: Sign, now_ms: Millis) -> Evidence:
    fire = case.fire
    since_ms = fire.lease_until if fire.state == FireState.UNKNOWN else fire.accepted_ms
    return Evidence(
        state=FireState(fire.state),
        delivery=case.delivery,
        sign=sign,
        durable=case.durable,
        is_registered=case.is_registered,
        probes=fire.probe_count,
        attempt=fire.attempt,
        age_ms=now_ms - since_ms,
        reachable=case.reachable,
        withheld=case.withheld,
    )


def _write(session: Session, decisions: Sequence[tuple[_Case, Decision]], zone: str, now_ms: Millis) -> None:
    """Carry out the decisions on runs that have not changed since they were read."""
    runs = logs.lock_runs(session, [case.fire.log_id for case, _ in decisions])
    mark_by_fire = open_fires.lock_open(session, [case.fire.id for case, _ in decisions])
    ended_fires: list[OpenFire] = []
    waiting_rows: list[bulk.Row] = []
    resolved_runs: list[_ResolvedRun] = []
    for case, decision in decisions:
        fire, run = case.fire, runs.get(case.fire.log_id)
        if mark_by_fire.get(fire.id) != (fire.state, fire.epoch, fire.lease_until):
            continue
        if run is None or not logs.is_unfinished(run.trigger_code, run.handle_code):
            ended_fires.append(fire)
        elif decision.action is ResolveAction.WAIT:
            waiting_rows.append(_mark(case, decision, now_ms))
        else:
            resolved_runs.append(_ResolvedRun(case, decision, run))
    _write_resolved(session, resolved_runs, zone, now_ms)
    bulk.update_many(session, Fire, waiting_rows)
    _forget(session, ended_fires)


def _write_resolved(
    session: Session, resolved_runs: Sequence[_ResolvedRun], zone: str, now_ms: Millis
) -> None:
    """Write the decisions that end a wait: started, send again, unresolved."""
    traces: list[bulk.Row] = []
    marks: list[bulk.Row] = []
    rows_to_send: list[bulk.Row] = []
    results: list[Result] = []
    for case, decision, run in resolved_runs:
        action, lines = decision.action, _lines(case.fire, run, decision, zone)
        logger.warning("run resolved log_id=%s outcome=%s reason=%s", run.id, action, decision.reason)
        if action is ResolveAction.UNRESOLVED:
            code, trace = TriggerCode.UNRESOLVED, join_lines(lines)
            results.append(Result(run.id, Source.RESOLVER, trigger_code=code, trace=trace))
            continue
        is_started = action is ResolveAction.STARTED
        code = TriggerCode.ACCEPTED if is_started else TriggerCode.NONE
        trace = join_lines(run.trigger_msg, lines)
        traces.append({"id": run.id, "trigger_msg": trace, "trigger_code": code.value})
        if is_started:
            marks.append(_mark(case, decision, now_ms))
        else:
            rows_to_send.append(_again(case, decision))
    bulk.update_many(session, JobLog, traces)
    if rows_to_send:
        bulk.update_many(session, Fire, rows_to_send)
        announce_due_fires(session)
    bulk.update_many(session, Fire, marks)
    if results:
        complete(session, results, now_ms=now_ms, holds_fires=True)


def _lines(fire: OpenFire, run: RunState, decision: Decision, zone: str) -> list[str]:
    """Return the lines to add to the run's trace."""
    line = fill(RESOLVED, outcome=decision.action, reason=decision.reason)
    return [*([] if run.trigger_msg else _unreported_trace(fire, zone)), line]


def _unreported_trace(fire: OpenFire, zone: str) -> list[str]:
    """Return the trace, from the fire, of a send whose node ended before recording it."""
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
    is_elsewhere = decision.action is ResolveAction.SEND_ELSEWHERE
    return {
        "id": case.fire.id,
        "state": FireState.PENDING.value,
        "owner": "",
        "address": None if is_elsewhere else case.fire.address,
        "boot_id": "" if is_elsewhere else case.boot_id,
        "lease_until": 0,
        "deadline_ms": 0,
        "probe_count": 0,
    }


def _mark(case: _Case, decision: Decision, now_ms: Millis) -> bulk.Row:
    """Return the fire after a check."""
    fire = case.fire
    is_started = decision.action is ResolveAction.STARTED
    return {
        "id": fire.id,
        "state": (FireState.ACCEPTED if is_started else FireState(fire.state)).value,
        "accepted_ms": now_ms if is_started else fire.accepted_ms,
        "deadline_ms": now_ms + decision.wait_ms,
        "probe_count": decision.probes,
    }
