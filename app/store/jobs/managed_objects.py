"""Statements on `xxl_job_managed` and `xxl_job_apply`: objects managed as code, and applies."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select, update
from sqlalchemy.orm import Session, load_only

from app.clock import Millis
from app.database.engine import affected
from app.database.rows import bulk, deletion
from app.models.code import Apply, CodeObject
from app.models.job import Job

JOB, GROUP, CHANNEL, CALENDAR = "job", "group", "channel", "calendar"
#: newest applies that are searched for a job
SEARCHED_MAX = 100
_COLUMNS = (
    CodeObject.kind,
    CodeObject.managed_key,
    CodeObject.object_id,
    CodeObject.fields,
    CodeObject.source,
    CodeObject.apply_id,
    CodeObject.applied_ms,
)


@dataclass(frozen=True, slots=True)
class ManagedObject:
    """Object managed as code; ``fields`` are those that the code owns, with the values applied last."""

    kind: str
    key: str
    object_id: int
    fields: Mapping[str, Any]
    source: str = ""
    apply_id: int = 0
    applied_ms: Millis = 0


def list_managed(session: Session) -> list[ManagedObject]:
    """Return all managed objects by kind and key, also those whose object is gone."""
    return _read(session, select(*_COLUMNS).order_by(CodeObject.kind, CodeObject.managed_key))


def find_of_objects(session: Session, kind: str, object_ids: Collection[int]) -> dict[int, ManagedObject]:
    """Return object id -> managed object of this kind; objects that no code manages are left out."""
    query = select(*_COLUMNS).where(CodeObject.kind == kind, CodeObject.object_id.in_(list(object_ids)))
    return {entry.object_id: entry for entry in _read(session, query)}


def find_managed(session: Session, kind: str, object_id: int) -> ManagedObject | None:
    """Return a managed object by its id; None if it is not managed."""
    return find_of_objects(session, kind, [object_id]).get(object_id)


def is_managed() -> ColumnElement[bool]:
    """Return the condition for jobs that are managed as code."""
    return Job.id.in_(select(CodeObject.object_id).where(CodeObject.kind == JOB))


def list_changed_last(session: Session, *, limit: int) -> list[int]:
    """Return the ids of the jobs managed as code that were changed last, the newest change first."""
    query = select(Job.id).join(CodeObject, CodeObject.object_id == Job.id).where(CodeObject.kind == JOB)
    newest_first = query.order_by(Job.update_time.desc(), Job.id.desc()).limit(limit)
    return [row[0] for row in bulk.read_rows(session, newest_first)]


def replace_managed(
    session: Session, removed_keys: Sequence[tuple[str, str]], new_objects: Sequence[ManagedObject]
) -> None:
    """Delete the managed objects of these kinds and keys, and store new ones in place of any with equal keys.

    The caller holds the import lock.
    """
    keys = {*removed_keys, *((entry.kind, entry.key) for entry in new_objects)}
    objects = {(entry.kind, entry.object_id) for entry in new_objects}
    rows = bulk.read_rows(
        session, select(CodeObject.id, CodeObject.kind, CodeObject.managed_key, CodeObject.object_id)
    )
    ids = [row[0] for row in rows if (row[1], row[2]) in keys or (row[1], row[3]) in objects]
    deletion.by_values(session, CodeObject, "id", ids)
    bulk.insert_many(session, CodeObject, [_row(entry) for entry in new_objects])


def insert_apply(session: Session, apply: Apply) -> int:
    """Insert an apply; return its id."""
    session.add(apply)
    session.flush()
    return apply.id


def find_apply(session: Session, apply_id: int) -> Apply | None:
    """Return an apply or None."""
    return session.get(Apply, apply_id)


def lock_undone(session: Session, apply_id: int) -> Millis:
    """Lock an apply; return when it was undone, 0 if it was not."""
    return session.scalar(select(Apply.undone_ms).where(Apply.id == apply_id).with_for_update()) or 0


def list_applies(session: Session, *, before_id: int | None, limit: int) -> list[Apply]:
    """Return the newest applies with an id below ``before_id`` (None: of all)."""
    columns = (Apply.at_ms, Apply.username, Apply.source, Apply.plan, Apply.undone_ms)
    query = select(Apply).options(load_only(*columns, raiseload=True)).order_by(Apply.id.desc()).limit(limit)
    return list(session.scalars(query if before_id is None else query.where(Apply.id < before_id)))


def list_applies_of_job(session: Session, job_id: int, *, limit: int) -> list[Apply]:
    """Return those of the newest applies that changed a job, the newest first; their plans are not read."""
    first_id = select(func.max(Apply.id) - SEARCHED_MAX).scalar_subquery()
    # The text is that of the JSON in ``before``. The few applies of another kind of object with this id are
    # read as well.
    is_in_apply = Apply.before.contains(f'"id": {job_id}, "before": ')
    columns = (Apply.at_ms, Apply.username, Apply.source, Apply.before, Apply.undone_ms)
    query = select(Apply).options(load_only(*columns, raiseload=True)).where(Apply.id > first_id, is_in_apply)
    return list(session.scalars(query.order_by(Apply.id.desc()).limit(limit)))


def set_undone(session: Session, apply_id: int, *, now_ms: Millis) -> bool:
    """Record that an apply was undone; False if it was already."""
    statement = update(Apply).where(Apply.id == apply_id, Apply.undone_ms == 0)
    return affected(session, statement.values(undone_ms=now_ms)) == 1


def _read(session: Session, query: Select[Any]) -> list[ManagedObject]:
    rows = bulk.read_rows(session, query)
    return [ManagedObject(row[0], row[1], row[2], json.loads(row[3]), *row[4:]) for row in rows]


def _row(entry: ManagedObject) -> bulk.Row:
    return {
        "kind": entry.kind,
        "managed_key": entry.key,
        "object_id": entry.object_id,
        "fields": json.dumps(entry.fields, ensure_ascii=False),
        "source": entry.source[:255],
        "apply_id": entry.apply_id,
        "applied_ms": entry.applied_ms,
    }
