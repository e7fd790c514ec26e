"""API: mutes of jobs and executor groups."""

from app.api.v1.cursors import ID, INSTANT, cut, read_cursor
from app.api.v1.endpoint import Call, Made, Resource
from app.api.v1.schemas.alarms import MuteIn, MuteOut
from app.api.v1.schemas.base import Listed, ListQuery
from app.domain.access.permissions import Right
from app.domain.alarms.muting import UNTIL_UNDONE_MS
from app.services.alarms import mutes
from app.services.alarms.mutes import Muted, MuteDraft

resource = Resource("mutes", "No alarms of a job or an executor group for a while.")


@resource.get("/mutes", answer=Listed[MuteOut], query=ListQuery)
def list_mutes(call: Call) -> Listed[MuteOut]:
    """List the mutes in effect, the first to end first."""
    limit = call.query.limit
    until_ms, mute_id = read_cursor(call.query.cursor, INSTANT, ID) or (0, 0)
    after = (int(until_ms), int(mute_id))
    rows = mutes.list_muted(call.session, call.actor, now_ms=call.now_ms, limit=limit + 1, after=after)
    page, next_cursor = cut(rows, limit, lambda row: (row.mute.until_ms, row.mute.id))
    return Listed[MuteOut](items=[_answer(row) for row in page], next_cursor=next_cursor)


@resource.get("/mutes/<int:mute_id>", answer=MuteOut, etag=True)
def get_mute(call: Call, mute_id: int) -> MuteOut:
    """Return a mute in effect."""
    row = mutes.get_mute(call.session, mute_id, actor=call.actor, right=Right.VIEW, now_ms=call.now_ms)
    return _answer(row)


@resource.post("/mutes", body=MuteIn, answer=MuteOut, status=201, right=Right.OPERATE)
def add_mute(call: Call, body: MuteIn) -> Made:
    """Mute a job or a group."""
    until_ms = UNTIL_UNDONE_MS if body.until is None else body.until
    draft = MuteDraft(reason=body.reason, until_ms=until_ms)
    job_id, group_id = body.job_id or 0, body.group_id or 0
    if job_id:
        mutes.mute_job(call.session, job_id, draft, actor=call.actor, now_ms=call.now_ms)
    else:
        mutes.mute_group(call.session, group_id, draft, actor=call.actor, now_ms=call.now_ms)
    mute = mutes.find_of(call.session, job_id=job_id, group_id=group_id, now_ms=call.now_ms)
    assert mute is not None
    return Made(get_mute(call, mute.id), f"/mutes/{mute.id}")


@resource.delete("/mutes/<int:mute_id>", right=Right.OPERATE)
def delete_mute(call: Call, mute_id: int) -> None:
    """End a mute: what still fails is reported."""
    session, actor = call.session, call.actor
    mute = mutes.get_mute(session, mute_id, actor=actor, right=Right.OPERATE, now_ms=call.now_ms).mute
    mutes.unmute(session, job_id=mute.job_id, group_id=mute.group_id, actor=actor, now_ms=call.now_ms)


def _answer(row: Muted) -> MuteOut:
    mute = row.mute
    return MuteOut(
        id=mute.id,
        job_id=mute.job_id or None,
        group_id=mute.group_id or None,
        name=row.name,
        since=mute.since_ms,
        until=None if mute.until_ms >= UNTIL_UNDONE_MS else mute.until_ms,
        username=mute.username,
        reason=mute.reason,
    )
