"""API: scheduled times that were not fired."""

from app.api.v1.cursors import BIG_ID, cut, read_id_cursor
from app.api.v1.endpoint import Call, Resource
from app.api.v1.schemas.base import Listed
from app.api.v1.schemas.runs import SkipOut, SkipQuery
from app.domain.access.permissions import Right
from app.store.jobs import skips
from app.store.jobs.skips import SkipFilter

resource = Resource("skips", "Scheduled times that were not fired, with the reason.")


@resource.get("/skips", query=SkipQuery, answer=Listed[SkipOut])
def list_skips(call: Call) -> Listed[SkipOut]:
    """List the skips, the last recorded first."""
    query: SkipQuery = call.query
    skip_filter = SkipFilter(query.job_id, query.from_ms, query.to_ms, read_id_cursor(query.cursor, BIG_ID))
    group_ids = call.actor.group_ids(Right.VIEW)
    rows = skips.list_from(call.session, skip_filter, group_ids=group_ids, limit=query.limit + 1)
    page, next_cursor = cut(rows, query.limit, lambda skip: (skip.id,))
    items = [
        SkipOut(
            id=skip.id,
            job_id=skip.job_id,
            first_at=skip.from_ms,
            last_at=skip.to_ms,
            count=skip.skipped,
            reason=skip.reason,
            trigger_type=skip.trigger_type,
            round=skip.round_id,
            recorded_at=skip.recorded_ms,
        )
        for skip in page
    ]
    return Listed[SkipOut](items=items, next_cursor=next_cursor)
