"""API: backfills, runs of a job for past instants."""

from functools import partial

from app.api.v1.cursors import cut, read_cursor, read_id_cursor
from app.api.v1.endpoint import Call, Made, Resource
from app.api.v1.schemas.backfills import (
    BackfillCancelIn,
    BackfillIn,
    BackfillInstantOut,
    BackfillInstantQuery,
    BackfillMade,
    BackfillOut,
    BackfillQuery,
    ListedInstantOut,
)
from app.api.v1.schemas.base import Listed
from app.clock import now_ms
from app.database.engine import read_scope, transact
from app.domain.access.permissions import Right
from app.domain.backfills.kinds import INSTANTS_MAX, Children, OnFailure, Order, Which
from app.services.backfills import backfills, listing
from app.services.backfills.backfills import BackfillDraft, BackfillPlan
from app.services.backfills.kills import kill_running
from app.services.backfills.listing import BackfillView, InstantView
from app.services.backfills.steps import step

resource = Resource("backfills", "Runs of a job for past instants, made up for on request.")


@resource.post(
    "/jobs/<int:job_id>/backfills", body=BackfillIn, answer=BackfillMade, status=202, right=Right.OPERATE
)
def add_backfill(call: Call, job_id: int, body: BackfillIn) -> Made | BackfillMade:
    """Run a job for past instants of its present schedule, or for the given logical times.

    The runs wait behind all others. A dry run returns the list of the instants, and what is known of each.
    Refused if there is nothing to run, or if another backfill of the job runs some of the instants.
    """
    draft = BackfillDraft(
        from_ms=body.from_ms or 0,
        to_ms=body.to_ms if body.to_ms is not None else call.now_ms,
        times=body.times,
        which=Which(body.which),
        order=Order(body.order),
        max_running=body.max_running,
        children=Children(body.children),
        on_failure=OnFailure(body.on_failure),
    )
    zone = call.config.time_zone
    if call.dry_run:
        plan = backfills.plan_backfill(
            call.session, job_id, draft, actor=call.actor, zone=zone, now_ms=call.now_ms
        )
        return _planned(plan)
    backfill_id = backfills.start_backfill(
        call.session,
        job_id,
        draft,
        actor=call.actor,
        zone=zone,
        shared_with_java=call.config.shared_with_java,
        clock=now_ms,
    )
    view = listing.show_backfill(call.session, backfill_id, actor=call.actor)
    answer = BackfillMade(
        id=backfill_id, message=view.sentence, summary=view.summary, overlapping=[], instants=[]
    )
    return Made(answer, f"/backfills/{backfill_id}")


@resource.get("/backfills", query=BackfillQuery, answer=Listed[BackfillOut])
def list_backfills(call: Call) -> Listed[BackfillOut]:
    """List backfills, the newest first."""
    query: BackfillQuery = call.query
    rows = listing.list_page(
        call.session,
        actor=call.actor,
        job_id=query.job_id or 0,
        states=[query.state] if query.state else (),
        before_id=read_id_cursor(query.cursor) or 0,
        limit=query.limit + 1,
    )
    page, next_cursor = cut(rows, query.limit, lambda view: (view.row.id,))
    return Listed[BackfillOut](items=[_answer(view) for view in page], next_cursor=next_cursor)


@resource.get("/backfills/<int:backfill_id>", answer=BackfillOut)
def get_backfill(call: Call, backfill_id: int) -> BackfillOut:
    """Return a backfill, and how many of its instants are in each state."""
    return _answer(listing.show_backfill(call.session, backfill_id, actor=call.actor))


@resource.get(
    "/backfills/<int:backfill_id>/instants", query=BackfillInstantQuery, answer=Listed[BackfillInstantOut]
)
def list_instants(call: Call, backfill_id: int) -> Listed[BackfillInstantOut]:
    """List the instants that a backfill runs, in its order, with their runs."""
    query: BackfillInstantQuery = call.query
    position = read_cursor(query.cursor, range(INSTANTS_MAX))
    rows = listing.list_instants(
        call.session,
        backfill_id,
        actor=call.actor,
        states=[query.state] if query.state else (),
        after=-1 if position is None else int(position[0]),
        limit=query.limit + 1,
    )
    page, next_cursor = cut(rows, query.limit, lambda view: (view.number,))
    return Listed[BackfillInstantOut](items=[_instant(view) for view in page], next_cursor=next_cursor)


@resource.post("/backfills/<int:backfill_id>/pause", answer=BackfillOut, right=Right.OPERATE)
def pause_backfill(call: Call, backfill_id: int) -> BackfillOut:
    """Start no further run; those in progress end."""
    backfills.pause_backfill(call.session, backfill_id, actor=call.actor, clock=now_ms)
    return _answer(listing.show_backfill(call.session, backfill_id, actor=call.actor))


@resource.post("/backfills/<int:backfill_id>/resume", answer=BackfillOut, right=Right.OPERATE)
def resume_backfill(call: Call, backfill_id: int) -> BackfillOut:
    """Go on with a backfill that is paused or has stopped at a failure: what failed is run once more."""
    backfills.resume_backfill(call.session, backfill_id, actor=call.actor, clock=now_ms)
    return _answer(listing.show_backfill(call.session, backfill_id, actor=call.actor))


@resource.post(
    "/backfills/<int:backfill_id>/cancel",
    body=BackfillCancelIn,
    answer=BackfillOut,
    right=Right.OPERATE,
    transaction=False,
    calls_executors=True,
)
def cancel_backfill(call: Call, backfill_id: int, body: BackfillCancelIn) -> BackfillOut:
    """Withdraw what no executor has yet; it is cancelled when its last run has ended.

    With `kill` the runs in progress are killed. If an executor does not answer, the backfill is being
    cancelled nevertheless; a second request kills what is left.
    """
    cancel = partial(backfills.cancel_backfill, backfill_id=backfill_id, actor=call.actor, clock=now_ms)
    if call.dry_run:
        with read_scope() as session:
            backfills.check_cancel(session, backfill_id, actor=call.actor)
            return _answer(listing.show_backfill(session, backfill_id, actor=call.actor))
    transact(cancel)
    if body.kill:
        kill_running(backfill_id, actor=call.actor, caller=call.executors, now_ms=call.now_ms)
        transact(partial(step, backfill_id=backfill_id, clock=now_ms))
    with read_scope() as session:
        return _answer(listing.show_backfill(session, backfill_id, actor=call.actor))


def _planned(plan: BackfillPlan) -> BackfillMade:
    return BackfillMade(
        id=None,
        message=plan.sentence,
        summary=plan.summary,
        overlapping=list(plan.overlapping),
        instants=[
            ListedInstantOut(
                time=instant.logical_ms,
                standing=instant.standing.value,
                run=instant.is_run,
                reason=instant.reason,
            )
            for instant in plan.instants
        ],
    )


def _answer(view: BackfillView) -> BackfillOut:
    row = view.row
    return BackfillOut.model_validate(
        {
            "id": row.id,
            "job_id": row.job_id,
            "description": view.job_name,
            "group_id": view.group_id,
            "state": row.state,
            "reason": view.reason,
            "from": row.from_ms,
            "to": row.to_ms,
            "which": row.which,
            "order": row.run_order,
            "max_running": row.max_running,
            "children": row.children,
            "on_failure": row.on_failure,
            "total": row.total,
            "ended": view.ended,
            "counts": dict(view.counts),
            "attempt": row.attempt,
            "message": view.sentence,
            "summary": view.summary,
            "author": row.username,
            "created_at": row.created_ms,
            "updated_at": row.updated_ms,
            "ended_at": row.ended_ms or None,
        }
    )


def _instant(view: InstantView) -> BackfillInstantOut:
    return BackfillInstantOut.model_validate(
        {
            "number": view.number,
            "time": view.logical_ms,
            "state": view.state,
            "attempt": view.attempt,
            "run_id": str(view.log_id) if view.log_id else None,
            "begun_at": view.begun_ms or None,
            "ended_at": view.ended_ms or None,
        }
    )
