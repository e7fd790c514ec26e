"""API: named limits of runs at once."""

from typing import Any

from sqlalchemy.orm import Session

from app.api.v1.cursors import cut, read_cursor
from app.api.v1.endpoint import Call, Resource
from app.api.v1.schemas.base import Listed
from app.api.v1.schemas.limits import LimitDetail, LimitIn, LimitOut, LimitQuery, SharingJob, SlotHolder
from app.domain.access.permissions import Right
from app.domain.enums import FireState, LimitKind
from app.services.limits import limits
from app.services.limits.limits import LimitDraft, NamedLimit
from app.services.runs import waiting
from app.store.limits.listing import lock_named
from app.store.limits.waiting_list import Holder

resource = Resource("limits", "Named limits that jobs share: how many of their runs at once.")


def _lock(session: Session, name: str) -> None:
    lock_named(session, [name])


@resource.get("/limits", answer=Listed[LimitOut], query=LimitQuery)
def list_limits(call: Call) -> Listed[LimitOut]:
    """List named limits by name."""
    query: LimitQuery = call.query
    position = read_cursor(query.cursor, str)
    after = "" if position is None else str(position[0])
    rows = limits.list_limits(call.session, actor=call.actor, after=after, limit=query.limit + 1)
    page, next_cursor = cut(rows, query.limit, lambda row: (row.name,))
    return Listed[LimitOut](items=[LimitOut(**_members(row)) for row in page], next_cursor=next_cursor)


@resource.get("/limits/<name>", answer=LimitDetail, etag=True)
def get_limit(call: Call, name: str) -> LimitDetail:
    """Return a named limit, the jobs that share it, and the runs that have its slots."""
    return _detail(call, limits.get_limit(call.session, name, actor=call.actor))


@resource.put("/limits/<name>", body=LimitIn, answer=LimitDetail, right=Right.EDIT, etag=True, lock=_lock)
def set_limit(call: Call, name: str, body: LimitIn) -> LimitDetail:
    """Make a named limit, or change its slots or group. Runs in progress stay, even if too many."""
    draft = LimitDraft(body.slots, body.group_id, keeps_group="group_id" not in body.model_fields_set)
    return _detail(call, limits.set_limit(call.session, name, draft, actor=call.actor, now_ms=call.now_ms))


@resource.delete("/limits/<name>", right=Right.EDIT, lock=_lock)
def delete_limit(call: Call, name: str) -> None:
    """Delete a named limit that no job uses."""
    limits.remove_limit(call.session, name, actor=call.actor, now_ms=call.now_ms)


def _detail(call: Call, limit: NamedLimit) -> LimitDetail:
    jobs = limits.list_jobs(call.session, limit, actor=call.actor)
    holders = waiting.list_holders(call.session, LimitKind.NAMED, limit.id, actor=call.actor)
    return LimitDetail(
        **_members(limit),
        sharing=[SharingJob(job_id=job.id, description=job.name, weight=job.weight) for job in jobs],
        holders=[_holder(row) for row in holders],
    )


def _members(limit: NamedLimit) -> dict[str, Any]:
    return {
        "name": limit.name,
        "slots": limit.slots,
        "group_id": limit.group_id,
        "jobs": limit.users,
        "max_weight": limit.max_weight,
        "used": limit.used,
        "waiting": limit.waiting,
    }


def _holder(row: Holder) -> SlotHolder:
    return SlotHolder(
        run_id=str(row.log_id) if row.log_id else None,
        job_id=row.job_id or None,
        weight=row.weight,
        since=row.admitted_ms or None,
        held=row.state == FireState.HELD,
    )
