"""Audit: record of changes by users, written in the transaction of the change."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor, require_admin
from app.models.audit import AuditEntry
from app.store.accounts import audit as store
from app.store.accounts.audit import AuditFilter
from app.store.base.paging import Page, Slice

#: fields whose values are never audited
SECRET_FIELDS = frozenset(
    {"password", "access_token", "former_token", "alarm_urls", "token", "settings", "secret"}
)
BLANKED = "***"
#: longest value; sources of GLUE jobs have versions of their own
VALUE_MAX = 500
#: longest text of all changes in UTF-8; the column has 65,535 bytes on MySQL and MariaDB
TEXT_BYTES_MAX = 60_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One audited change."""

    action: str
    #: kind and id of the object
    target: tuple[str, int] = ("", 0)
    #: fields and values; secrets are blanked when written
    changes: Mapping[str, Any] | None = None


#: entries of a block of ``collecting``
_collection: ContextVar[list[Entry] | None] = ContextVar("collected", default=None)


@contextmanager
def collecting() -> Iterator[list[Entry]]:
    """Collect the entries of this block instead of writing them; the caller writes one for all of them."""
    entries: list[Entry] = []
    outer = _collection.set(entries)
    try:
        yield entries
    finally:
        _collection.reset(outer)


def record(
    session: Session,
    action: str,
    *,
    actor: Actor,
    now_ms: Millis,
    target: tuple[str, int] = ("", 0),
    changes: Mapping[str, Any] | None = None,
) -> None:
    """Write an entry.

    ``target`` is kind and id of the object, ``changes`` are its fields (secrets are blanked).
    """
    record_many(session, [Entry(action, target, changes)], actor=actor, now_ms=now_ms)


def record_many(session: Session, entries: Sequence[Entry], *, actor: Actor, now_ms: Millis) -> None:
    """Write entries in one statement, in order."""
    collection = _collection.get()
    if collection is not None:
        collection += entries
        return
    store.insert_entries(session, [_row(entry, actor, now_ms) for entry in entries])


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the fields that differ, each as ``[before, after]``."""
    return {name: [before.get(name), value] for name, value in after.items() if before.get(name) != value}


def changes_of(entry: AuditEntry) -> dict[str, Any]:
    """Return the fields of an entry; those of one that was cut are not readable and left out."""
    try:
        changes = json.loads(entry.changes or "{}")
    except ValueError:
        return {}
    return changes if isinstance(changes, dict) else {}


def list_entries(
    session: Session, audit_filter: AuditFilter, *, actor: Actor, start: int, length: int
) -> Page[AuditEntry]:
    """Return a page of the change history, newest first unless ordered otherwise. Administrators only."""
    require_admin(actor)
    return store.list_entries(session, audit_filter, start=start, length=length)


def list_before(
    session: Session, audit_filter: AuditFilter, *, actor: Actor, before_id: int | None, limit: int
) -> Slice[AuditEntry]:
    """Return the newest entries with an id below ``before_id`` (None: of all). Administrators only."""
    require_admin(actor)
    return store.list_before(session, audit_filter, before_id=before_id, limit=limit)


def _row(entry: Entry, actor: Actor, now_ms: Millis) -> dict[str, Any]:
    return {
        "at_ms": now_ms,
        "user_id": actor.user_id or None,
        "username": actor.username[:64],
        "address": actor.address[:64],
        "via": actor.via[:80],
        "action": entry.action,
        "object_type": entry.target[0],
        "object_id": entry.target[1],
        "changes": _as_text(entry.changes) if entry.changes else None,
    }


def _as_text(changes: Mapping[str, Any]) -> str:
    values = {name: _display_value(name, value) for name, value in changes.items()}
    text = json.dumps(values, ensure_ascii=False, default=str)
    return text.encode("utf-8", "replace")[:TEXT_BYTES_MAX].decode("utf-8", "ignore")


def _display_value(name: str, value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_display_value(name, item) for item in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    if name in SECRET_FIELDS:
        return BLANKED if value else value
    text = str(value)
    return text if len(text) <= VALUE_MAX else text[:VALUE_MAX] + "…"
