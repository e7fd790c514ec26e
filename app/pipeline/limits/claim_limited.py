"""Claim of fires with limits, in a transaction of its own, so that no other fire waits for a limit's lock.

docs/reference/limits.md. It also takes those that wait before them: a new fire overtakes none.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import claims_paused, read_scope, transact
from app.domain.limits.admission import Action, Demand
from app.domain.schedules.planning import DueFire
from app.pipeline.calendars.pauses import pause, pause_of
from app.pipeline.claim import ClaimBatch, LockedFires, claim_locked, lock_due
from app.pipeline.claimed_run import Claimer
from app.pipeline.gate import asks
from app.pipeline.group_candidates import find_group_candidates
from app.pipeline.limits.limit_skips import skip_fires
from app.pipeline.limits.limit_usage import LimitUsage
from app.pipeline.limits.slot_gate import open_gate
from app.pipeline.rounds.gate import hold, needs_round
from app.store.fires import queue as fires
from app.store.limits import slots

#: waits that are ended in one transaction
PAGE = 500


def claim_limited(
    session: Session, due: Sequence[DueFire], claimer: Claimer, *, now_ms: Millis
) -> ClaimBatch:
    """Claim those of the fires that get their slots; the others wait or are skipped.

    Works in the caller's transaction; the runs may be sent after its commit.
    """
    batch = ClaimBatch()
    if claims_paused(session, now_ms=now_ms):
        return batch
    pending = _pause(session, lock_due(session, due, now_ms, fires.lock_unsent), batch, now_ms)
    pending = _hold(session, pending, claimer, batch, now_ms)
    pending = _asking(pending)
    if not pending.to_run:
        return batch
    usage = LimitUsage.read(session, {fire.job_id for fire, _ in pending.to_run})
    pending = _with_first(session, pending, usage, now_ms)
    gate = open_gate(session, pending.to_run, usage, zone=claimer.zone, now_ms=now_ms)
    pairs = {fire.id: (fire, job) for fire, job in pending.to_run}
    pending = pending._replace(to_run=[pairs[fire_id] for fire_id in gate.candidates])
    candidates_by_group = find_group_candidates(session, pending.to_run, now_ms=now_ms)
    claim_locked(session, pending, candidates_by_group, claimer, Counter(), batch, now_ms=now_ms, gate=gate)
    # One that waits is found again by the next look at the list.
    waiting_ids = {candidate.fire.id for candidate in gate.candidates.values() if candidate.former}
    batch.parked_fires = {
        address: new
        for address, parked_fires in batch.parked_fires.items()
        if (new := [fire for fire in parked_fires if fire.id not in waiting_ids])
    }
    return batch


def _pause(session: Session, pending: LockedFires, batch: ClaimBatch, now_ms: Millis) -> LockedFires:
    """Return the fires without those that wait for the end of a blackout from now on."""
    closures = {
        fire.id: closure
        for fire, job in pending.to_run
        if (closure := pause_of(fire, job, now_ms=now_ms)) is not None
    }
    if not closures:
        return pending
    pause(session, [(fire, closures[fire.id]) for fire, _ in pending.to_run if fire.id in closures])
    batch.waiting += len(closures)
    return pending._replace(to_run=[pair for pair in pending.to_run if pair[0].id not in closures])


def _hold(
    session: Session, pending: LockedFires, claimer: Claimer, batch: ClaimBatch, now_ms: Millis
) -> LockedFires:
    """Return the fires if none needs a round; otherwise those wait for it, and the others are claimed later.

    Limits are locked before rounds.
    """
    gate_fires = [pair for pair in pending.to_run if needs_round(*pair)]
    if not gate_fires:
        return pending
    batch.new_fires += hold(session, gate_fires, zone=claimer.zone, now_ms=now_ms)
    batch.waiting += len(gate_fires)
    gated_ids = {fire.id for fire, _ in gate_fires}
    others = [fire for fire, _ in pending.to_run if fire.id not in gated_ids]
    batch.new_fires += [DueFire(fire.id, fire.job_id, fire.due_time) for fire in others]
    return pending._replace(to_run=[])


def _asking(pending: LockedFires) -> LockedFires:
    """Leave out fires that a user has started since they were found: they ask for no slots, and are due."""
    return pending._replace(to_run=[pair for pair in pending.to_run if asks(pair[0])])


def _with_first(session: Session, pending: LockedFires, usage: LimitUsage, now_ms: Millis) -> LockedFires:
    """Return the fires with those that wait first for the same limits and have room."""
    held_ids = {fire.id for fire, _ in pending.to_run}
    first = [fire for fire, _key in usage.find_first(session) if fire.id not in held_ids]
    if not first:
        return pending
    waiting = lock_due(session, first, now_ms, fires.lock_waiting)
    return LockedFires([*pending.to_run, *waiting.to_run], pending.run_by_id | waiting.run_by_id)


def has_waiting() -> bool:
    """Whether any run waits for a limit; opens its own transaction."""
    return slots.has_waiting()


def find_ready() -> list[DueFire]:
    """Return the waiting fires that get slots by what is read without locks; opens its own transaction."""
    with read_scope() as session:
        usage = LimitUsage.read_waiting(session)
        first = usage.find_first(session)
    book, ready = usage.book(()), list[DueFire]()
    for fire, key in first:
        if (rule := usage.rules.get(fire.job_id)) is None:  # The claim deletes it.
            ready.append(fire)
            continue
        demand = Demand(usage.demand(rule, key), waits=True)
        if book.decide(demand).action is Action.ADMIT:
            book.take(demand)
            ready.append(fire)
    return ready


def end_waits(*, zone: str, now_ms: Millis) -> int:
    """Skip the fires whose longest wait is over; return how many. Opens its own transactions."""
    count = 0
    while over := slots.find_over(now_ms=now_ms, limit=PAGE):
        page_count = transact(partial(_end_waits, fire_ids=over, zone=zone, now_ms=now_ms))
        count += page_count
        if page_count < PAGE:
            break
    return count


def _end_waits(session: Session, fire_ids: Sequence[int], zone: str, now_ms: Millis) -> int:
    over = fires.lock_waiting(session, fire_ids)
    skip_fires(session, over, zone=zone, now_ms=now_ms)
    return len(over)
