"""API: blackouts, times in which nothing may start."""

from app.api.v1.cursors import cut, read_id_cursor
from app.api.v1.endpoint import Call, Made, Resource
from app.api.v1.schemas.base import Listed
from app.api.v1.schemas.blackouts import BlackoutIn, BlackoutOut, BlackoutQuery
from app.clock import now_ms
from app.domain.access.permissions import Right
from app.services.calendars import blackouts
from app.services.calendars.blackouts import BlackoutDraft, BlackoutState, BlackoutView

resource = Resource(
    "blackouts", "Times in which nothing starts: of all jobs, a tag, an executor group or a job."
)


@resource.get("/blackouts", answer=Listed[BlackoutOut], query=BlackoutQuery)
def list_blackouts(call: Call) -> Listed[BlackoutOut]:
    """List blackouts, the newest first."""
    query: BlackoutQuery = call.query
    rows = blackouts.list_page(
        call.session,
        actor=call.actor,
        now_ms=call.now_ms,
        state=BlackoutState(query.state) if query.state else None,
        before_id=read_id_cursor(query.cursor) or 0,
        limit=query.limit + 1,
    )
    page, next_cursor = cut(rows, query.limit, lambda view: (view.id,))
    return Listed[BlackoutOut](items=[_answer(view) for view in page], next_cursor=next_cursor)


@resource.get("/blackouts/<int:blackout_id>", answer=BlackoutOut, etag=True)
def get_blackout(call: Call, blackout_id: int) -> BlackoutOut:
    """Return a blackout."""
    return _answer(blackouts.get_blackout(call.session, blackout_id, actor=call.actor, now_ms=call.now_ms))


@resource.post("/blackouts", body=BlackoutIn, answer=BlackoutOut, status=201, right=Right.OPERATE)
def add_blackout(call: Call, body: BlackoutIn) -> Made:
    """Make a blackout: from its commit on no schedule starts a run in it; runs in progress go on.

    Of all jobs and of a tag it is made by administrators, of an executor group and a job with the right
    `operate`.
    """
    draft = BlackoutDraft(
        reason=body.reason,
        from_ms=body.from_ms,
        to_ms=body.to_ms,
        cron=body.cron or "",
        duration_s=body.duration_s,
        time_zone=body.time_zone or "",
        group_id=body.group_id,
        job_id=body.job_id,
        tag=body.tag or "",
        afterwards=body.afterwards,
        readable_by_java=call.config.shared_with_java,
    )
    view = blackouts.add_blackout(call.session, draft, actor=call.actor, clock=now_ms)
    return Made(_answer(view), f"/blackouts/{view.id}")


@resource.post("/blackouts/<int:blackout_id>/end", answer=BlackoutOut, right=Right.OPERATE)
def end_blackout(call: Call, blackout_id: int) -> BlackoutOut:
    """End a blackout now; one that is to come never begins."""
    return _answer(blackouts.end_blackout(call.session, blackout_id, actor=call.actor, clock=now_ms))


def _answer(view: BlackoutView) -> BlackoutOut:
    blackout = view.blackout
    window = None if view.window is None else {"from": view.window[0], "to": view.window[1]}
    return BlackoutOut.model_validate(
        {
            "id": view.id,
            "state": view.state.value,
            "window": window,
            "from": blackout.from_ms,
            "to": blackout.until_ms,
            "cron": blackout.cron or None,
            "duration_s": blackout.duration_s or None,
            "time_zone": blackout.zone if blackout.cron else None,
            "group_id": blackout.group_id,
            "job_id": blackout.job_id,
            "tag": blackout.tag or None,
            "name": view.name,
            "afterwards": blackout.afterwards.value,
            "reason": blackout.reason,
            "author": view.author,
            "created_at": view.created_ms,
            "ended_at": view.ended_ms,
        }
    )
