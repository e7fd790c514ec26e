"""Recording: writes the outcomes of sends, in batches, conditional on owner and epoch.

docs/reference/pipeline.md, section 5.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.domain.enums import FireState, HandleCode, TriggerCode
from app.domain.runs.evidence import Fate, why_not_started
from app.domain.runs.trace_templates import LEASE_EXPIRED
from app.domain.runs.trigger_report import join_lines
from app.models.fire import Fire
from app.models.log import JobLog
from app.pipeline.claimed_run import ClaimedRun
from app.pipeline.complete import Result, Source, complete
from app.pipeline.masking import SentSecrets, maskers_of
from app.pipeline.send import SendOutcome
from app.store.executors import drains
from app.store.fires import logs
from app.store.fires import open as open_fires
from app.store.fires import sent as sent_fires
from app.store.fires.sent import SentFire

#: first check of an accepted run, after its acceptance
FIRST_CHECK_MS: Millis = 10_000


def record(session: Session, outcomes: Sequence[SendOutcome], *, node: str, now_ms: Millis) -> None:
    """Write the outcomes; if another node holds the fire by now, add only a missing trace.

    The log's trigger columns are written if `trigger_msg` is still empty, even if an early callback has
    already ended the run.
    """
    runs = logs.lock_traced(session, [outcome.claim.log_id for outcome in outcomes])
    fire_by_id = sent_fires.lock_sent(session, [outcome.claim.fire_id for outcome in outcomes])
    outcomes = _mask(session, outcomes, now_ms)
    refusals: list[Result] = []
    traces: list[bulk.Row] = []
    resent: list[bulk.Row] = []
    marks: list[bulk.Row] = []
    for outcome in outcomes:
        claim, run, fire = (
            outcome.claim,
            runs.get(outcome.claim.log_id),
            fire_by_id.get(outcome.claim.fire_id),
        )
        is_current = fire is not None and _counts(outcome, fire, node)
        if run is not None and is_current and outcome.verdict.fate is Fate.REFUSED:
            trace = join_lines(claim.trace, outcome.trace)
            refusals.append(_refusal(run.id, outcome, trace))
        elif run is not None and (is_current or run.trigger_msg is None):
            trace = join_lines(run.trigger_msg, claim.trace, outcome.trace)
            is_accepted = outcome.verdict.fate is Fate.ACCEPTED and run.trigger_code == TriggerCode.NONE
            row = {
                "id": run.id,
                "trigger_msg": trace,
                "trigger_code": 200 if is_accepted else run.trigger_code,
            }
            if claim.attempt > 1:
                resent.append(row)
            else:
                late_ms = max(0, outcome.sent_ms - claim.due_ms) if outcome.sent_ms else None
                traces.append(row | {"late_ms": late_ms})
        if is_current and outcome.verdict.fate is not Fate.REFUSED:
            marks.append(_mark(outcome, now_ms))
    bulk.update_many(session, JobLog, traces)
    bulk.update_many(session, JobLog, resent)
    bulk.update_many(session, Fire, marks)
    if refusals:
        complete(session, refusals, now_ms=now_ms, holds_fires=True)
    unreachable = {address for outcome in outcomes for address in outcome.unreachable}
    if unreachable:
        open_fires.check_soon(session, unreachable, now_ms=now_ms)


def _mask(session: Session, outcomes: Sequence[SendOutcome], now_ms: Millis) -> Sequence[SendOutcome]:
    """Return the outcomes with traces that have no value, also no former one, of secrets that were sent."""
    secrets_by_run = {
        outcome.claim.log_id: SentSecrets(outcome.claim.job_group, outcome.claim.parameter.secrets)
        for outcome in outcomes
        if outcome.claim.parameter is not None
    }
    if not secrets_by_run:
        return outcomes
    maskers = maskers_of(session, secrets_by_run, now_ms=now_ms)
    return [
        outcome._replace(trace=tuple(map(masker.mask, outcome.trace)))
        if (masker := maskers.get(outcome.claim.log_id)) is not None
        else outcome
        for outcome in outcomes
    ]


def _counts(outcome: SendOutcome, fire: SentFire, node: str) -> bool:
    """Whether an outcome may still change its fire.

    It counts even after the lease, until the fire is claimed again. A definite refusal also overrides a
    resolver that mistook a busy executor for one that has the run, unless an earlier send may have started
    it.
    """
    fate = outcome.verdict.fate
    if fire.state == FireState.ACCEPTED:
        return fate is Fate.REFUSED and _is_mistaken(outcome.claim, fire, node)
    if fire.state == FireState.UNKNOWN and fate is Fate.UNKNOWN:
        return False
    return fire.belongs_to(node, outcome.claim.epoch)


def _refusal_code(outcome: SendOutcome) -> int:
    """Return the `trigger_code` of a refusal; a code that would mean an open run becomes 500."""
    code = outcome.verdict.code
    open_codes = (TriggerCode.NONE, TriggerCode.ACCEPTED, TriggerCode.UNRESOLVED)
    return TriggerCode.REFUSED if code in open_codes or not 0 < code < 2**31 else code


def _refusal(log_id: int, outcome: SendOutcome, trace: str) -> Result:
    is_unreachable = not outcome.sent_ms or bool(outcome.unreachable)
    not_started = why_not_started(outcome.verdict, is_unreachable=is_unreachable)
    code = _refusal_code(outcome)
    return Result(log_id, Source.REFUSED, trigger_code=code, trace=trace, not_started=not_started.value)


def _mark(outcome: SendOutcome, now_ms: Millis) -> bulk.Row:
    is_accepted = outcome.verdict.fate is Fate.ACCEPTED
    return {
        "id": outcome.claim.fire_id,
        "state": (FireState.ACCEPTED if is_accepted else FireState.UNKNOWN).value,
        "accepted_ms": now_ms if is_accepted else 0,
        "deadline_ms": now_ms + FIRST_CHECK_MS if is_accepted else now_ms,
        "boot_id": outcome.boot_id,
        "lease_until": 0 if is_accepted else now_ms,
        "probe_count": 0,
    }


def give_back(session: Session, claims: Sequence[ClaimedRun], *, node: str) -> int:
    """Reset runs of which no byte was sent to PENDING, as before the claim; return how many were still held.

    The log row and its id stay. The address is dropped unless the run had it before the claim: an executor
    without a free permit for so long may be hanging. The log row of a run that was sent earlier shows the
    address of that send again.
    """
    unsent = _lock_unsent(session, claims, node)
    pending = {"state": FireState.PENDING.value, "owner": "", "lease_until": 0, "deadline_ms": 0}
    rows = [
        {"id": claim.fire_id, **pending, "address": claim.former_address, "attempt": claim.attempt - 1}
        for claim in unsent
    ]
    log_rows = [
        {"id": claim.log_id, "executor_address": claim.sent_to} for claim in unsent if claim.attempt > 1
    ]
    bulk.update_many(session, JobLog, log_rows)
    bulk.update_many(session, Fire, rows)
    return len(rows)


class Lease(NamedTuple):
    """The node that holds claims, and until when."""

    node: str
    until_ms: Millis


def renew(session: Session, claims: Sequence[ClaimedRun], lease: Lease) -> list[ClaimedRun]:
    """Renew the leases of unsent claims; return those still held."""
    valid_claims = _lock_unsent(session, claims, lease.node)
    bulk.update_many(session, Fire, [_renewal(claim, lease.until_ms) for claim in valid_claims])
    return valid_claims


def _lock_unsent(session: Session, claims: Sequence[ClaimedRun], node: str) -> list[ClaimedRun]:
    """Lock runs of which no byte was sent; return those that are still held and have no result.

    This also overrides a resolver that mistook a busy executor for one that has the run, and resets its row.
    """
    # Logs are locked before fires everywhere.
    runs = logs.lock_runs(session, [claim.log_id for claim in claims])
    fire_by_id = sent_fires.lock_sent(session, [claim.fire_id for claim in claims])
    valid_claims, resets = [], []
    for claim in claims:
        fire, run = fire_by_id.get(claim.fire_id), runs.get(claim.log_id)
        if fire is None or run is None or run.handle_code != HandleCode.NONE:
            continue
        is_mistaken = _is_mistaken(claim, fire, node)
        if is_mistaken or fire.belongs_to(node, claim.epoch):
            valid_claims.append(claim)
        if is_mistaken:
            trace = join_lines(run.trigger_msg, LEASE_EXPIRED)
            resets.append({"id": run.id, "trigger_code": TriggerCode.NONE.value, "trigger_msg": trace})
    bulk.update_many(session, JobLog, resets)
    return valid_claims


def _is_mistaken(claim: ClaimedRun, fire: SentFire, node: str) -> bool:
    """Whether a resolver marked this run as started on mere evidence, before its first send."""
    return fire.state == FireState.ACCEPTED and claim.attempt == 1 and fire.is_of(node, claim.epoch)


def _renewal(claim: ClaimedRun, lease_until: Millis) -> bulk.Row:
    state = FireState.ROUTING if claim.address is None else FireState.SENDING
    return {"id": claim.fire_id, "state": state.value, "lease_until": lease_until, "deadline_ms": 0}


def fix_address(
    session: Session, claim: ClaimedRun, address: str, lease: Lease, *, late: bool = False
) -> bool:
    """Store the address that a probe has chosen, ROUTING -> SENDING.

    False if the claim has been lost meanwhile. Also False after long probing (``late``) if the address has
    been drained since the claim: the run is then routed again.
    """
    logs.lock_runs(session, [claim.log_id])  # Logs are locked before fires everywhere.
    fire = sent_fires.lock_sent(session, [claim.fire_id]).get(claim.fire_id)
    if fire is None or not fire.belongs_to(lease.node, claim.epoch):
        return False
    if late and drains.takes_no_more(session, fire.id, address):
        return False
    bulk.update_many(session, JobLog, [{"id": claim.log_id, "executor_address": address}])
    row = {"id": fire.id, "state": FireState.SENDING.value, "address": address, "lease_until": lease.until_ms}
    bulk.update_many(session, Fire, [row])
    return True
