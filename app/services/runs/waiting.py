"""The waiting list: runs that wait for a slot, predecessors or a blackout, started or withdrawn.

A waiting run has the id of its trigger; one of the schedule, a child or a retry has ``w<id of its fire>``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor, Right, require_right
from app.domain.calendars.rule_book import RuleBook
from app.domain.enums import HELD_BACK, FireState, LimitKind, TriggerType
from app.domain.limits.admission import Scope
from app.domain.limits.waits import Wait, WaitReason, parse_wait
from app.domain.runs.trigger_keys import Trigger, parse_id, trigger_of
from app.domain.text.texts import N_
from app.errors import Conflict, NotFound
from app.models.base import zone_name
from app.pipeline.limits.limit_skips import skip_fires
from app.pipeline.limits.limit_usage import LimitUsage
from app.services.auditing import audit
from app.services.calendars.paused_runs import WaitedBlackout, blackout_of
from app.services.runs import logs, planned_runs
from app.services.runs.trigger_runs import NO_RUN
from app.store.accounts.audit import find_runs as find_visible
from app.store.base import locks
from app.store.calendars import current_book
from app.store.calendars.paused_fires import PAUSED
from app.store.fires import triggered_fires as planned_fires
from app.store.fires.missed_runs import MISSED
from app.store.fires.triggered_fires import LockedFire
from app.store.limits import rules as limit_rules
from app.store.limits import waiting_list
from app.store.limits.slots import NO_END
from app.store.limits.waiting_list import Holder, ListedFire, Place, WaitFilter
from app.store.rounds.rounds import PREDECESSORS
from app.store.runs import neighbours

__all__ = ["Place", "WaitFilter"]

#: before the number of a fire in the id of a run
PREFIX = "w"
#: digits of the number of a fire
ID_DIGITS = 18
#: reason of the skip of a run that a user has withdrawn
WITHDRAWN = "withdrawn"
#: runs that are named as holders
HOLDERS_NAMED, HOLDERS_LISTED = 5, 200
ALL = WaitFilter()
STARTED = N_("The run has started already; it can be killed, but not withdrawn")


@dataclass(frozen=True, slots=True)
class WaitedLimit:
    """Limit that a run waits for, as it is now."""

    id: int
    kind: LimitKind
    #: of a named limit its name; of a job or group its id
    name: str
    reason: WaitReason
    used: int
    slots: int
    #: log ids of some of the runs that have its slots
    log_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """A run that waits."""

    id: str
    fire_id: int
    job_id: int
    group_id: int
    job_name: str
    due_ms: Millis
    logical_ms: Millis
    trigger_type: str
    priority: int
    #: place in the order, for the next page
    place: Place
    #: 1 is first of those that wait for the same limit; None: it is not known
    position: int | None
    #: end of its longest wait; None: it waits for as long as it takes
    end_ms: Millis | None
    #: text of the job's key for this run
    limit_key: str
    #: None: it waits for something else, or another program has changed what it waits for
    waits_for: WaitedLimit | None
    #: round that it waits for or belongs to
    round_id: int | None = None
    #: whether it waits for its predecessors
    is_gated: bool = False
    #: whether it waits for the missed run before it
    is_missed: bool = False
    #: number of the trigger that asked for the chain
    chain: int | None = None
    #: None: it waits for something else
    blackout: WaitedBlackout | None = None


def fire_id_of(run_id: str) -> int | None:
    """Return the id of the fire in an id such as ``"w4711"``; None for another one."""
    number = run_id.removeprefix(PREFIX)
    is_number = number.isascii() and number.isdecimal() and len(number) <= ID_DIGITS
    return int(number) if run_id.startswith(PREFIX) and is_number else None


def list_waiting(
    session: Session,
    *,
    actor: Actor,
    group_id: int = 0,
    criteria: WaitFilter = ALL,
    after: Place | None = None,
    limit: int,
) -> tuple[list[WaitingRun], Place | None]:
    """Return the first runs that wait, in their order, and where the list goes on.

    ``group_id`` 0: all that the actor may see. The number of statements does not depend on that of the runs.
    """
    visible = actor.group_ids(Right.VIEW)
    if group_id:
        visible = frozenset({group_id}) if visible is None or group_id in visible else frozenset()
    rows = waiting_list.list_waiting(session, criteria, visible, after=after, limit=limit + 1)
    runs = _runs(session, rows[:limit], actor)
    return runs, runs[-1].place if len(rows) > limit else None


def find_waiting(session: Session, run_id: str, *, actor: Actor) -> WaitingRun | None:
    """Return a run that waits for more than a scheduler and that the actor may see; None: there is none."""
    fires = _fires(session, run_id, _trigger_of(session, run_id))
    waiting = [fire for fire in fires if fire.state in HELD_BACK]
    visible = [fire for fire in waiting if actor.may(fire.group_id, Right.VIEW)]
    return next(iter(_runs(session, visible[:1], actor)), None)


def find_fire(session: Session, run_id: str) -> ListedFire | None:
    """Return the fire that an id such as ``"w4711"`` names."""
    fire_id = fire_id_of(run_id)
    return next(iter(waiting_list.find_fires(session, [fire_id])), None) if fire_id is not None else None


def id_of(fire: ListedFire) -> str:
    """Return the id of a run without a row."""
    trigger = trigger_of(fire.job_id, fire.fire_key)
    return trigger.id if trigger is not None else f"{PREFIX}{fire.id}"


def list_holders(session: Session, kind: LimitKind, number: int, *, actor: Actor) -> list[Holder]:
    """Return the first runs that have slots of a limit: by its id, or that of its job or group.

    Those of groups that the actor may not see have neither an id nor a name.
    """
    rows = waiting_list.list_holders(session, kind, number, limit=HOLDERS_LISTED)
    return [
        row if actor.may(row.group_id, Right.VIEW) else row._replace(job_id=0, job_name="", log_id=None)
        for row in rows
    ]


def start_now(session: Session, run_id: str, *, actor: Actor, now_ms: Millis) -> None:
    """Start a run that waits for a limit or a blackout, whatever they are, or for its predecessors.

    The latter may have to wait for either then, as may a missed run that waits for the one before it. Raises
    NotFound, PermissionDenied, and Conflict if it does not wait.
    """
    job_id, rows = _lock(session, run_id, actor)
    held_rows = [row for row in rows if row.state in HELD_BACK]
    gated_ids = [row.fire.id for row in held_rows if row.waits_for in (PREDECESSORS, MISSED)]
    waiting = [row.fire.id for row in held_rows if row.waits_for not in (PREDECESSORS, MISSED)]
    if not waiting and not gated_ids:
        if any(row.fire.admitted_ms or row.fire.due_time <= now_ms for row in rows):
            raise Conflict(N_("The run waits for no limit: it starts as soon as a scheduler takes it"))
        raise Conflict(N_("The run waits for no limit: it is planned for later"))
    planned_fires.admit(session, waiting, now_ms=now_ms)
    planned_fires.pass_gate(session, gated_ids)
    _record(session, "run.start", job_id, rows, actor=actor, now_ms=now_ms)


def withdraw_run(session: Session, run_id: str, *, actor: Actor, now_ms: Millis) -> None:
    """Delete a run that waits for a round or a limit, or a triggered one that no scheduler has claimed.

    An instant of the schedule, a child and a retry are recorded as skipped; a trigger leads nowhere any more.
    Raises NotFound, PermissionDenied, and Conflict once it has started.
    """
    if (trigger := _trigger_of(session, run_id)) is not None:
        planned_runs.withdraw(session, trigger, actor=actor, now_ms=now_ms)
        return
    job_id, rows = _lock(session, run_id, actor)
    if any(row.state not in HELD_BACK for row in rows):
        raise Conflict(N_("The run waits for no limit: only a run that was triggered can be withdrawn then"))
    skip_fires(
        session,
        [row.fire for row in rows],
        zone=zone_name(),
        now_ms=now_ms,
        reason=WITHDRAWN,
        holds_jobs=True,
    )
    _record(session, "job.withdraw", job_id, rows, actor=actor, now_ms=now_ms)


def release_slot(session: Session, log_id: int, *, actor: Actor, now_ms: Millis) -> None:
    """Release the slots that a run holds which has ended as unresolved.

    Raises NotFound, PermissionDenied, and Conflict if it holds none.
    """
    log = logs.get_log(session, log_id, actor=actor, right=Right.OPERATE)
    if not planned_fires.release(session, log_id):
        raise Conflict(N_("The run holds no slot of a limit"))
    audit.record(
        session,
        "run.release",
        actor=actor,
        now_ms=now_ms,
        target=("log", log_id),
        changes={"job_id": log.job_id},
    )


def _lock(session: Session, run_id: str, actor: Actor) -> tuple[int, list[LockedFire]]:
    """Lock the job of a run without a row, and its fires; return the id of the job, and the fires.

    Raises NotFound, PermissionDenied, and Conflict once it has a row.
    """
    trigger = _trigger_of(session, run_id)
    fires = _fires(session, run_id, trigger)
    job_id = trigger.job_id if trigger is not None else next((fire.job_id for fire in fires), None)
    group_id = locks.lock_group_of(session, job_id) if job_id is not None else None
    if job_id is None or group_id is None:
        raise NotFound(NO_RUN)
    require_right(actor, group_id, Right.OPERATE, missing=NO_RUN)
    rows = planned_fires.lock_unsent(session, [fire.id for fire in fires])
    has_run = trigger is not None and bool(neighbours.find_triggered(session, trigger))
    if has_run or len(rows) < len(fires):
        raise Conflict(STARTED)
    if not rows:
        raise NotFound(NO_RUN)
    return job_id, rows


def _trigger_of(session: Session, run_id: str) -> Trigger | None:
    """Return the trigger that an id names, or that of the fire it names; None: there is none."""
    if (trigger := parse_id(run_id)) is not None:
        return trigger
    fire = find_fire(session, run_id)
    return trigger_of(fire.job_id, fire.fire_key) if fire is not None else None


def _fires(session: Session, run_id: str, trigger: Trigger | None) -> list[ListedFire]:
    """Return the fires of a run without a row, several of a broadcast of which a shard has started."""
    if trigger is None:
        fire = find_fire(session, run_id)
        return [fire] if fire is not None else []
    waiting = neighbours.find_waiting(session, trigger, is_moved=True)
    return waiting_list.find_fires(session, [fire.id for fire in waiting])


def _record(
    session: Session, action: str, job_id: int, rows: Sequence[LockedFire], *, actor: Actor, now_ms: Millis
) -> None:
    first = rows[0].fire
    changes: dict[str, object] = {"due_ms": first.due_time}
    if first.trigger_type != TriggerType.MANUAL:
        changes["trigger_type"] = first.trigger_type
    audit.record(session, action, actor=actor, now_ms=now_ms, target=("job", job_id), changes=changes)


def _runs(session: Session, rows: Sequence[ListedFire], actor: Actor) -> list[WaitingRun]:
    if not rows:
        return []
    waits = {fire.id: wait for fire in rows if (wait := parse_wait(fire.waits_for)) is not None}
    limit_of = {fire_id: wait.limit_id for fire_id, wait in waits.items()}
    last = max((fire.place, fire.id) for fire in rows)
    positions = waiting_list.find_positions(session, limit_of, last=last)
    limits = _waited_limits(session, rows, waits, actor)
    book = current_book.refresh(session) if any(fire.waits_for == PAUSED for fire in rows) else RuleBook()
    return [
        WaitingRun(
            id=id_of(fire),
            fire_id=fire.id,
            job_id=fire.job_id,
            group_id=fire.group_id,
            job_name=fire.job_name,
            due_ms=fire.due_ms,
            logical_ms=fire.logical_ms,
            trigger_type=fire.trigger_type,
            priority=fire.priority,
            place=(fire.place, fire.id),
            position=positions.get(fire.id),
            end_ms=None if fire.end_ms >= NO_END or fire.state == FireState.GATED else fire.end_ms,
            limit_key=fire.limit_key,
            waits_for=limits.get(fire.id),
            round_id=fire.round_id,
            is_gated=fire.state == FireState.GATED and fire.waits_for not in (PAUSED, MISSED),
            is_missed=fire.state == FireState.GATED and fire.waits_for == MISSED,
            chain=fire.chain,
            blackout=blackout_of(fire, book) if fire.waits_for == PAUSED else None,
        )
        for fire in rows
    ]


def _waited_limits(
    session: Session, rows: Sequence[ListedFire], waits: Mapping[int, Wait], actor: Actor
) -> dict[int, WaitedLimit]:
    """Return fire id -> what it waits for, with the slots in use now."""
    names = limit_rules.find_names(session, {wait.limit_id for wait in waits.values()})
    usage, limits = LimitUsage.read_waiting(session), dict[int, WaitedLimit]()
    for fire in rows:
        wait = waits.get(fire.id)
        if wait is None or wait.limit_id not in names:
            continue
        kind, name = names[wait.limit_id]
        rule = usage.rules.get(fire.job_id)
        has_keys = kind is LimitKind.JOB and rule is not None and bool(rule.limit_key)
        scope = Scope(wait.limit_id, fire.limit_key if has_keys else "")
        log_ids = usage.holders.get(scope, [])[:HOLDERS_NAMED]
        slots = usage.slots.get(wait.limit_id, wait.slots)
        limits[fire.id] = WaitedLimit(
            wait.limit_id, kind, name, wait.reason, usage.used[scope], slots, tuple(log_ids)
        )
    holder_ids = {log_id for limit in limits.values() for log_id in limit.log_ids}
    visible = (
        find_visible(session, holder_ids, group_ids=actor.group_ids(Right.VIEW)) if holder_ids else set()
    )
    return {
        fire_id: replace(limit, log_ids=tuple(log_id for log_id in limit.log_ids if log_id in visible))
        for fire_id, limit in limits.items()
    }
