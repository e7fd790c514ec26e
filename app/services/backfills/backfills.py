"""Backfills: what one would run, its start, pause, resumption and end. docs/reference/backfills.md.

Who has *operate* on the executor group of the job may make and change them.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.orm import Session

from app.clock import Clock, Millis
from app.database.rows import bulk
from app.domain.access.permissions import Actor, Right, require_right
from app.domain.backfills.instants import ListedInstant, list_instants, run_order, summary_of
from app.domain.backfills.kinds import (
    ACTIVE,
    ACTIVE_MAX,
    INSTANTS_MAX,
    RUNNING_MAX,
    BackfillState,
    Children,
    OnFailure,
    Order,
    Which,
)
from app.domain.backfills.schedule_times import WITH_INSTANTS, ScheduleTimes, list_times
from app.domain.backfills.sentences import STATES, sentence_of
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_, Text
from app.errors import Conflict, InvalidInput, NotFound
from app.models.backfill import Backfill
from app.services.auditing import audit
from app.services.backfills.steps import step, wait_again
from app.services.rounds.chains import check_chain
from app.store.backfills import history, records, steps
from app.store.base import locks
from app.store.calendars import rules
from app.store.jobs import scheduling as jobs
from app.store.jobs.scheduling import DueJob, phased_schedule_of, with_anchors

MISSING = N_("There is no such backfill")
NO_JOB = N_("Job id is invalid")
#: states of backfills that can be cancelled
CANCELLABLE = (*ACTIVE, BackfillState.FAILED)
WITHOUT_JAVA = N_(
    "Not possible while a Java admin uses the database (XXL_JOB_SHARED_WITH_JAVA): it does not know backfills"
)


@dataclass(frozen=True, slots=True)
class BackfillDraft:
    """A backfill as entered: a range of logical times, or some of them."""

    from_ms: Millis = 0
    #: exclusive
    to_ms: Millis = 0
    #: logical times that are run whatever the schedule says; empty: those of the range
    times: Sequence[Millis] = ()
    which: Which = Which.ALL
    order: Order = Order.OLDEST_FIRST
    max_running: int = 1
    children: Children = Children.NONE
    on_failure: OnFailure = OnFailure.STOP


@dataclass(frozen=True, slots=True)
class BackfillPlan:
    """What a backfill would run."""

    instants: Sequence[ListedInstant]
    #: logical times that it runs, in its order
    to_run: Sequence[Millis]
    #: active backfills of the job that run some of them
    overlapping: Sequence[int]
    which: Which

    @property
    def summary(self) -> dict[str, int]:
        """How many instants there are of each standing, and how many are run."""
        return summary_of(self.instants)

    @property
    def sentence(self) -> Text:
        """The same as a sentence."""
        return sentence_of(self.summary, self.which)


def plan_backfill(
    session: Session, job_id: int, draft: BackfillDraft, *, actor: Actor, zone: str, now_ms: Millis
) -> BackfillPlan:
    """Return what a backfill would run. Raises NotFound, PermissionDenied and InvalidInput.

    ``zone``: of schedules without one of their own.
    """
    job = jobs.find_planned(session, [job_id]).get(job_id)
    if job is None:
        raise NotFound(NO_JOB)
    require_right(actor, job.job_group, Right.OPERATE, missing=NO_JOB)
    draft = _check(draft, now_ms)
    source = _named_times(draft) if draft.times else _schedule_times(session, job, draft, zone, now_ms)
    runs = history.find_runs(session, job_id, draft.from_ms, draft.to_ms, times=source.logical_times)
    instants = list_instants(source.logical_times, source.exclusions, runs, draft.which)
    to_run = run_order(instants, draft.order)
    overlapping = sorted(records.find_overlaps(session, job_id, to_run))
    return BackfillPlan(instants, to_run, overlapping, draft.which)


def _check(draft: BackfillDraft, now_ms: Millis) -> BackfillDraft:
    """Return the draft, with the range of its times if it names some; raises InvalidInput."""
    errors = InputErrors()
    with errors:
        if not 1 <= draft.max_running <= RUNNING_MAX:
            raise InvalidInput("max_running", N_("a number from 1 to %(most)s", most=RUNNING_MAX))
    if draft.times:
        draft = replace(draft, from_ms=min(draft.times), to_ms=max(draft.times) + 1)
    with errors:
        if len({*draft.times}) > INSTANTS_MAX:
            raise InvalidInput("times", N_("at most %(limit)s instants", limit=INSTANTS_MAX))
    field = "times" if draft.times else "from"
    with errors:
        if draft.from_ms < 0:
            raise InvalidInput(field, N_("a time since 1970"))
    with errors:
        if draft.from_ms >= draft.to_ms:
            raise InvalidInput("to", N_("the end must be later than the start"))
    with errors:
        if draft.to_ms > now_ms + 1:
            raise InvalidInput(
                "times" if draft.times else "to",
                N_("the time must not be in the future: a backfill runs past instants"),
            )
    errors.raise_all()
    return draft


def _named_times(draft: BackfillDraft) -> ScheduleTimes:
    return ScheduleTimes(sorted({*draft.times}), {})


def _schedule_times(
    session: Session, job: DueJob, draft: BackfillDraft, zone: str, now_ms: Millis
) -> ScheduleTimes:
    if job.schedule_type not in WITH_INSTANTS:
        raise InvalidInput(
            "from",
            N_(
                "The schedule of the job, %(type)s, has no past instants; name the logical times, or backfill"
                " the job that it runs after with its whole chain",
                type=job.schedule_type,
            ),
        )
    book = rules.read_book(session, since_ms=draft.from_ms)  # The current one has no blackout of last year.
    try:
        schedule = phased_schedule_of(with_anchors(session, [job])[job.id], zone, book)
        result = list_times(schedule, draft.from_ms, draft.to_ms, now_ms=now_ms, most=INSTANTS_MAX)
    except (ValueError, InvalidInput) as exc:  # It was written by a Java admin, or by SQL.
        raise InvalidInput("from", N_("The schedule is invalid: %(reason)s", reason=exc)) from exc
    if result.is_cut:
        raise InvalidInput(
            "to",
            N_(
                "The range has more than %(limit)s instants; choose a shorter one and make several backfills",
                limit=INSTANTS_MAX,
            ),
        )
    return result


def start_backfill(
    session: Session,
    job_id: int,
    draft: BackfillDraft,
    *,
    actor: Actor,
    zone: str,
    shared_with_java: bool,
    clock: Clock,
) -> int:
    """Store a backfill, whose steps the monitor makes; return its id.

    Raises what ``plan_backfill`` does, and Conflict if there is nothing to run or another backfill of the job
    runs some of the instants.
    """
    if shared_with_java:
        raise Conflict(WITHOUT_JAVA)
    locks.lock_group_of(session, job_id)  # Two at once would not see each other.
    now_ms = clock()
    plan = plan_backfill(session, job_id, draft, actor=actor, zone=zone, now_ms=now_ms)
    _require_room(session, job_id, plan.overlapping)
    if not plan.to_run:
        raise Conflict(N_("There is nothing to run: no instant of the range is to be run by this choice"))
    if draft.children is Children.CHAIN:
        check_chain(session, job_id, actor=actor, shared_with_java=shared_with_java)
    draft = _check(draft, now_ms)
    request_fields = _request_fields(draft)
    backfill_id = records.insert_backfill(
        session, _row(session, job_id, plan, actor, now_ms) | request_fields, plan.to_run
    )
    changes = {"backfill": backfill_id, "total": len(plan.to_run), **request_fields}
    audit.record(session, "job.backfill", actor=actor, now_ms=now_ms, target=("job", job_id), changes=changes)
    step(session, backfill_id, clock=clock)
    return backfill_id


def _require_room(session: Session, job_id: int, overlapping: Sequence[int]) -> None:
    """Raise Conflict if a job, whose group is locked, may have no further active backfill.

    A step reads the open runs of all of them.
    """
    if overlapping:
        raise Conflict(
            N_(
                "Backfill %(id)s runs some of these instants; wait for its end, or cancel it",
                id=overlapping[0],
            )
        )
    if len(records.find_page(session, None, job_id=job_id, states=ACTIVE, limit=ACTIVE_MAX)) == ACTIVE_MAX:
        raise Conflict(
            N_(
                "The job has %(limit)s backfills that have not ended; wait for the end of one, or cancel one",
                limit=ACTIVE_MAX,
            )
        )


def _request_fields(draft: BackfillDraft) -> dict[str, Any]:
    """Return the columns that a draft says."""
    return {
        "from_ms": draft.from_ms,
        "to_ms": draft.to_ms,
        "which": draft.which.value,
        "run_order": draft.order.value,
        "max_running": draft.max_running,
        "children": draft.children.value,
        "on_failure": draft.on_failure.value,
    }


def _row(session: Session, job_id: int, plan: BackfillPlan, actor: Actor, now_ms: Millis) -> bulk.Row:
    name = jobs.find_names(session, [job_id])[job_id]
    return {
        "job_id": job_id,
        "job_group": name.job_group,
        "job_name": name.job_desc,
        "total": len(plan.to_run),
        "summary": json.dumps(plan.summary),
        "user_id": actor.user_id,
        "username": actor.username[:64],
        "created_ms": now_ms,
        "updated_ms": now_ms,
    }


def get_backfill(session: Session, backfill_id: int, *, actor: Actor, right: Right = Right.VIEW) -> Backfill:
    """Return a backfill that the actor may see or change; raises NotFound and PermissionDenied."""
    backfill = records.find_backfill(session, backfill_id)
    if backfill is None:
        raise NotFound(MISSING)
    groups = jobs.find_names(session, [backfill.job_id])
    group_id = groups[backfill.job_id].job_group if groups else backfill.job_group
    require_right(actor, group_id, right, missing=MISSING)
    return backfill


def pause_backfill(session: Session, backfill_id: int, *, actor: Actor, clock: Clock) -> None:
    """Start no further run; those in progress end. Raises Conflict unless it is running."""
    _change(session, backfill_id, (BackfillState.RUNNING,), BackfillState.PAUSED, actor=actor, clock=clock)


def resume_backfill(session: Session, backfill_id: int, *, actor: Actor, clock: Clock) -> None:
    """Go on with a backfill that is paused or has stopped at a failure: what has failed is run once more.

    Raises what ``start_backfill`` does for its children, and Conflict in any other state.
    """
    backfill = get_backfill(session, backfill_id, actor=actor, right=Right.OPERATE)
    if backfill.children == Children.CHAIN:  # Perhaps its author had more rights.
        check_chain(session, backfill.job_id, actor=actor, shared_with_java=False)
    locks.lock_group_of(session, backfill.job_id)
    row = steps.find_row(session, backfill_id, lock=True)
    has_failed = row is not None and row.state == BackfillState.FAILED
    if row is not None and has_failed:
        waiting = records.find_left(session, backfill_id)
        _require_room(session, row.job_id, sorted(records.find_overlaps(session, row.job_id, waiting)))
        wait_again(session, row, clock())
        steps.write_backfill(session, backfill_id, attempt=row.attempt + 1, ended_ms=0)
    former = (BackfillState.PAUSED, BackfillState.FAILED)
    _change(session, backfill_id, former, BackfillState.RUNNING, actor=actor, clock=clock)


def cancel_backfill(session: Session, backfill_id: int, *, actor: Actor, clock: Clock) -> None:
    """Withdraw what no executor has yet; it is cancelled when its last run has ended.

    One that has stopped at a failure is cancelled as well. Raises Conflict if it has ended.
    """
    _change(session, backfill_id, CANCELLABLE, BackfillState.CANCELLING, actor=actor, clock=clock)


def check_cancel(session: Session, backfill_id: int, *, actor: Actor) -> None:
    """Raise what ``cancel_backfill`` would, and change nothing."""
    _require_state(get_backfill(session, backfill_id, actor=actor, right=Right.OPERATE).state, CANCELLABLE)


def _require_state(state: str, states: Sequence[BackfillState]) -> None:
    if state not in states:
        raise Conflict(STATES[BackfillState(state)])


_ACTIONS = {
    BackfillState.PAUSED: "pause",
    BackfillState.RUNNING: "resume",
    BackfillState.CANCELLING: "cancel",
}


def _change(
    session: Session,
    backfill_id: int,
    former: Sequence[BackfillState],
    state: BackfillState,
    *,
    actor: Actor,
    clock: Clock,
) -> None:
    backfill = get_backfill(session, backfill_id, actor=actor, right=Right.OPERATE)
    row = steps.find_row(session, backfill_id, lock=True)
    if row is None:
        raise NotFound(MISSING)
    if row.state == state:
        return
    _require_state(row.state, former)
    now_ms = clock()
    steps.write_backfill(session, backfill_id, state=state.value, updated_ms=now_ms, reason=None)
    audit.record(
        session,
        f"job.backfill_{_ACTIONS[state]}",
        actor=actor,
        now_ms=now_ms,
        target=("job", backfill.job_id),
        changes={"backfill": backfill_id},
    )
    step(session, backfill_id, clock=clock)
