"""API: the change history."""

from app.api.v1.cursors import BIG_ID, read_id_cursor, write_cursor
from app.api.v1.endpoint import ADMIN, Call, Resource
from app.api.v1.schemas.base import Listed
from app.api.v1.schemas.report import AuditOut, AuditQuery
from app.errors import InvalidInput
from app.models.audit import AuditEntry
from app.services.auditing import audit
from app.store.accounts.audit import AuditFilter

resource = Resource("audit", "Changes and refused requests.")


@resource.get("/audit", answer=Listed[AuditOut], query=AuditQuery, right=ADMIN)
def list_entries(call: Call) -> Listed[AuditOut]:
    """List the entries of the change history, newest first."""
    query: AuditQuery = call.query
    if query.object_id is not None and not query.object_type:
        raise InvalidInput("object_type", "is needed with object_id")
    audit_filter = AuditFilter(
        username=query.username,
        action=query.action,
        refusals=query.refusals,
        object_type=query.object_type,
        object_id=query.object_id,
        from_ms=query.from_ms,
        to_ms=query.to_ms,
    )
    before_id = read_id_cursor(query.cursor, BIG_ID)
    page = audit.list_before(
        call.session, audit_filter, actor=call.actor, before_id=before_id, limit=query.limit
    )
    cursor = None if page.before_id is None else write_cursor(page.before_id)
    return Listed[AuditOut](items=[_answer(entry) for entry in page.rows], next_cursor=cursor)


def _answer(entry: AuditEntry) -> AuditOut:
    return AuditOut(
        id=entry.id,
        at=entry.at_ms,
        user_id=entry.user_id,
        username=entry.username,
        address=entry.address,
        via=entry.via,
        action=entry.action,
        object_type=entry.object_type,
        object_id=entry.object_id or None,
        changes=audit.changes_of(entry),
    )
