"""Planned runs: triggers for an instant to come, which wait as fires and can be withdrawn."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor, Right, require_right
from app.domain.runs.trigger_keys import Trigger, trigger_of
from app.domain.text.texts import N_
from app.errors import Conflict, NotFound
from app.services.auditing import audit
from app.services.rounds.chains import withdraw_chain
from app.services.runs.logs import MISSING
from app.services.runs.trigger_runs import NO_RUN
from app.store.base import locks
from app.store.fires import queue as fires
from app.store.fires import triggered_fires as planned_fires
from app.store.runs import neighbours


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run that is planned for an instant."""

    trigger: Trigger
    due_ms: Millis


@dataclass(frozen=True, slots=True)
class UnclaimedRun(PlannedRun):
    """A triggered run that no scheduler has claimed."""

    group_id: int
    #: what it stands for
    logical_ms: Millis
    chain: int | None = None
    round_id: int | None = None


def list_planned(session: Session, job_id: int, *, now_ms: Millis, limit: int) -> list[PlannedRun]:
    """Return the runs planned for a job, the next first."""
    rows = planned_fires.find_ahead(session, job_id, now_ms=now_ms, limit=limit)
    triggers = [(trigger_of(job_id, key), due_ms) for key, due_ms in rows]
    return [PlannedRun(trigger, due_ms) for trigger, due_ms in triggers if trigger is not None]


def list_unclaimed(
    session: Session,
    *,
    actor: Actor,
    group_id: int,
    job_id: int,
    before: tuple[Millis, int] | None,
    limit: int,
    logical: tuple[Millis | None, Millis | None] = (None, None),
    chain: int | None = None,
) -> tuple[list[UnclaimedRun], tuple[Millis, int] | None]:
    """Return triggered runs that no scheduler has claimed, the last due first, and where the list goes on.

    ``group_id`` and ``job_id``: 0 for all that the actor may see; ``logical``: first and last logical time.
    """
    visible = actor.group_ids(Right.VIEW)
    if group_id:
        visible = frozenset({group_id}) if visible is None or group_id in visible else frozenset()
    rows = planned_fires.list_unclaimed(
        session,
        group_ids=visible,
        job_id=job_id,
        before=before,
        limit=limit + 1,
        logical=logical,
        chain=chain,
    )
    runs = [
        UnclaimedRun(trigger, row.due_ms, row.group_id, row.logical_ms, row.chain, row.round_id)
        for row in rows[:limit]
        if (trigger := trigger_of(row.job_id, row.key)) is not None
    ]
    last = rows[limit - 1] if len(rows) > limit else None
    return runs, (last.due_ms, last.id) if last is not None else None


def withdraw(session: Session, trigger: Trigger, *, actor: Actor, now_ms: Millis) -> None:
    """Delete a triggered run that no scheduler has claimed, also one that waits for a limit.

    Raises NotFound, PermissionDenied, and Conflict once it has started or ended.
    """
    group_id = locks.lock_group_of(session, trigger.job_id)
    if group_id is None:
        raise NotFound(MISSING)
    require_right(actor, group_id, Right.OPERATE, missing=MISSING)
    waiting = neighbours.find_waiting(session, trigger, is_moved=True)
    unsent_fires = [row.fire for row in planned_fires.lock_unsent(session, [fire.id for fire in waiting])]
    has_run = bool(neighbours.find_triggered(session, trigger))
    if not waiting and not has_run:
        raise NotFound(NO_RUN)
    if has_run or len(unsent_fires) < len(waiting):
        raise Conflict(N_("The run has started already; it can be killed, but not withdrawn"))
    fires.delete_fires(session, [fire.id for fire in unsent_fires])
    if unsent_fires[0].chain == trigger.number:
        withdraw_chain(session, trigger, unsent_fires[0].logical_time, now_ms=now_ms)
    audit.record(
        session,
        "job.withdraw",
        actor=actor,
        now_ms=now_ms,
        target=("job", trigger.job_id),
        changes={"due_ms": waiting[0].due_ms},
    )
