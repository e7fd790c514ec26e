"""Statements on `xxl_job_audit`. Rows are only added; the clean-up deletes old ones."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.list_orders import UNSORTED, Order
from app.models.audit import AuditEntry
from app.store import bulk
from app.store.ordering import SortKey, ordering
from app.store.paging import Page, contains, fetch_page

#: counting stops here, since the table is long
COUNT_MAX = 10_000
#: actions of refusals
REFUSED, REFUSED_LOGIN = "refused.", "login.refused"
#: sort keys; entries are numbered in order of time, and no other column has an index
ORDERS: dict[str, SortKey] = {"time": SortKey(())}


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Filter of the change history; empty values and None match all."""

    username: str = ""
    #: prefix of the action, such as ``job.``
    action: str = ""
    #: only refused requests and logins
    refusals: bool = False
    object_type: str = ""
    object_id: int | None = None
    from_ms: Millis | None = None
    to_ms: Millis | None = None
    #: by ``time``; otherwise newest first
    order: Order = UNSORTED


def insert_entry(session: Session, entry: AuditEntry) -> None:
    """Insert an entry."""
    session.add(entry)
    session.flush()


def insert_entries(session: Session, rows: Sequence[bulk.Row]) -> None:
    """Insert entries in order."""
    bulk.insert_many(session, AuditEntry, rows)


def list_of_object(session: Session, object_type: str, object_id: int, *, limit: int) -> list[AuditEntry]:
    """Return the newest entries about one object."""
    query = select(AuditEntry).where(AuditEntry.object_type == object_type, AuditEntry.object_id == object_id)
    return list(session.scalars(query.order_by(AuditEntry.id.desc()).limit(limit)))


def list_entries(session: Session, wanted: AuditFilter, *, start: int, length: int) -> Page[AuditEntry]:
    """Return a page of entries, newest first unless the filter orders otherwise."""
    query = select(AuditEntry).order_by(
        *ordering(wanted.order, ORDERS, row_id=AuditEntry.id, default=[AuditEntry.id.desc()])
    )
    if wanted.username:
        query = query.where(contains(AuditEntry.username, wanted.username))
    if wanted.action:
        query = query.where(AuditEntry.action.startswith(wanted.action, autoescape=True))
    if wanted.refusals:
        is_request = AuditEntry.action.startswith(REFUSED, autoescape=True)
        query = query.where(or_(is_request, AuditEntry.action == REFUSED_LOGIN))
    if wanted.object_type:
        query = query.where(AuditEntry.object_type == wanted.object_type)
    if wanted.object_id is not None:
        query = query.where(AuditEntry.object_id == wanted.object_id)
    if wanted.from_ms is not None:
        query = query.where(AuditEntry.at_ms >= wanted.from_ms)
    if wanted.to_ms is not None:
        query = query.where(AuditEntry.at_ms <= wanted.to_ms)
    return fetch_page(session, query, start=start, length=length, count_to=COUNT_MAX)
