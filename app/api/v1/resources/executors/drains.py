"""API: drained instances."""

from app.api.v1.cursors import cut, read_id_cursor
from app.api.v1.endpoint import Call, Made, Resource
from app.api.v1.schemas.base import Listed
from app.api.v1.schemas.executors import DrainIn, DrainOut, OfGroupQuery
from app.domain.access.permissions import Right
from app.errors import InvalidInput, NotFound
from app.models.drain import Drain
from app.services.executors import drains

resource = Resource("drains", "Drained instances: no new run is sent to them, current runs continue.")


@resource.get("/drains", answer=Listed[DrainOut], query=OfGroupQuery)
def list_drains(call: Call) -> Listed[DrainOut]:
    """List drained instances, the newest first."""
    query: OfGroupQuery = call.query
    rows = drains.list_newest(
        call.session,
        actor=call.actor,
        group_id=query.group_id or 0,
        before_id=read_id_cursor(query.cursor) or 0,
        limit=query.limit + 1,
    )
    page, next_cursor = cut(rows, query.limit, lambda row: (row.id,))
    return Listed[DrainOut](items=[_drain_out(row) for row in page], next_cursor=next_cursor)


@resource.post("/drains", body=DrainIn, answer=DrainOut, status=201, right=Right.OPERATE)
def drain(call: Call, body: DrainIn) -> Made:
    """Drain an instance, also for the time after its restart; one that is drained stays so."""
    try:
        row = drains.drain(call.session, body.group_id, body.address, actor=call.actor, now_ms=call.now_ms)
    except NotFound as exc:
        raise InvalidInput("group_id", "there is no such executor group") from exc
    return Made(_drain_out(row), f"/drains/{row.id}")


@resource.get("/drains/<int:drain_id>", answer=DrainOut)
def get_drain(call: Call, drain_id: int) -> DrainOut:
    """Return a drained instance."""
    return _drain_out(drains.get_drain(call.session, drain_id, actor=call.actor))


@resource.delete("/drains/<int:drain_id>", right=Right.OPERATE)
def undrain(call: Call, drain_id: int) -> None:
    """Send new runs to an instance again."""
    row = drains.get_drain(call.session, drain_id, actor=call.actor)
    drains.undrain(call.session, row.group_id, row.address, actor=call.actor, now_ms=call.now_ms)


def _drain_out(row: Drain) -> DrainOut:
    return DrainOut(
        id=row.id,
        group_id=row.group_id,
        address=row.address,
        since=row.since_ms,
        drained_by=row.username,
    )
