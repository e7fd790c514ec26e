"""Versions of jobs: every change of a job's fields is stored, in the transaction of the change.

Switches and runs are no versions. The code of a job has versions of its own (``glue``).
"""

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.domain.access.permissions import Actor
from app.domain.jobs.members import read_members
from app.store.jobs import tags as job_tags
from app.store.jobs import versions as store

#: where the changes of this thread or request come from, such as ``import jobs.json`` or
#: ``apply infra@1a2b3c``; empty: what their actor acts through, or the console
change_source: ContextVar[str] = ContextVar("change_source", default="")
#: source of a version that another program on the same database made
OUTSIDE = "outside"
#: versions kept of each job
VERSIONS_MAX = 500
_USERNAME_MAX, _SOURCE_MAX = 64, 255


@dataclass(frozen=True, slots=True)
class Present:
    """Fields of a job as they are stored, by their names in the API."""

    fields: Mapping[str, Any]
    #: when the job was changed last
    changed_ms: Millis


@contextmanager
def changes_from(source: str) -> Iterator[None]:
    """Name the source of all changes in the block."""
    outer = change_source.set(source)
    try:
        yield
    finally:
        change_source.reset(outer)


def source_of(actor: Actor) -> str:
    """Return where a change comes from; empty: the console."""
    return change_source.get() or actor.via


def read_present(session: Session, job_ids: Collection[int]) -> dict[int, Present]:
    """Return the fields of the jobs that exist, by id; two statements."""
    tags = job_tags.find_tags(session, job_ids)
    return {
        row.id: Present(read_members(row, tags.get(row.id, ())), row.update_time or 0)
        for row in store.read_jobs(session, job_ids)
    }


def keep(session: Session, before: Mapping[int, Present | None], *, actor: Actor, now_ms: Millis) -> None:
    """Store a version of each of the jobs that differs from what it was ``before``; None: it is new.

    The caller has locked the jobs. The state before is stored, too, if the newest version does not have it:
    of a job without a version, and of one that another program has changed. A constant number of statements.
    """
    after = read_present(session, before)
    changed_ids = [job_id for job_id, now in after.items() if not _is_same(before[job_id], now)]
    if not changed_ids:
        return
    newest = store.find_newest(session, [job_id for job_id in changed_ids if before[job_id] is not None])
    rows, full = list[bulk.Row](), list[int]()
    for job_id in changed_ids:
        missing = _missing_version(job_id, before[job_id], newest.get(job_id), now_ms)
        number = (newest[job_id].number if job_id in newest else 0) + len(missing) + 1
        new_row = _row(job_id, number, after[job_id].fields, now_ms)
        new_row |= {
            "username": actor.username[:_USERNAME_MAX],
            "source": source_of(actor)[:_SOURCE_MAX],
        }
        rows += [*missing, new_row]
        if number > VERSIONS_MAX:
            full.append(job_id)
    store.insert_versions(session, rows)
    store.delete_older(session, full, keep=VERSIONS_MAX)


def _is_same(before: Present | None, now: Present) -> bool:
    return before is not None and before.fields == now.fields


def _missing_version(
    job_id: int, before: Present | None, newest: store.Newest | None, now_ms: Millis
) -> list[bulk.Row]:
    """Return the version of the state before a change, if the newest one does not have it."""
    if before is None:
        return []
    changed_ms = min(before.changed_ms or now_ms, now_ms)
    if newest is None:
        return [_row(job_id, 1, before.fields, changed_ms)]
    # A field that is newer than the version is not a change.
    if all(before.fields.get(name) == value for name, value in json.loads(newest.fields).items()):
        return []
    row = _row(job_id, newest.number + 1, before.fields, max(changed_ms, newest.at_ms))
    return [row | {"source": OUTSIDE}]


def _row(job_id: int, number: int, fields: Mapping[str, Any], at_ms: Millis) -> bulk.Row:
    return {
        "job_id": job_id,
        "number": number,
        "at_ms": at_ms,
        "username": "",
        "source": "",
        "fields": json.dumps(fields, ensure_ascii=False),
    }
