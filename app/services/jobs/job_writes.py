"""Bulk writing of planned jobs: a few statements for all, with versions and audit entries of single jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.orm import Session

from app.clock import Clock, Millis
from app.database.rows import bulk
from app.domain.access.permissions import Actor
from app.domain.enums import TriggerStatus
from app.domain.jobs.children import FIELD as CHILDREN
from app.domain.jobs.children import child_ids_text, parse_child_ids
from app.domain.jobs.tags import FIELD as TAGS
from app.domain.rounds.runs_after import with_ids
from app.domain.schedules.schedule import Schedule
from app.domain.text.limits import limited_text
from app.models.job import Job
from app.pipeline.spans import keep_spans
from app.services.auditing import audit
from app.services.calendars.scopes import hold_scopes, keep_scopes
from app.services.jobs import glue, versions
from app.services.jobs.replan import replan_jobs
from app.services.jobs.rules import CHILDREN_MAX, audit_fields
from app.services.limits.uses import keep_uses
from app.services.rounds import keeping
from app.services.rounds.keeping import keep_edges
from app.store.jobs import tags as job_tags


@dataclass(frozen=True, slots=True)
class JobWrite:
    """What to write of a job, checked by the rules of jobs."""

    #: negative: provisional id of a new job, also used by its parents
    job_id: int
    columns: Mapping[str, object] = field(default_factory=dict)
    #: current values of these columns
    before: Mapping[str, object] = field(default_factory=dict)
    #: a changed schedule, and its first instant (0 if the schedule is off)
    replan: tuple[Schedule, Millis] | None = None
    #: a new version of the source
    version: dict[str, Any] | None = None
    #: the tags before and after; None: unchanged
    tags: tuple[tuple[str, ...], tuple[str, ...]] | None = None


def write_jobs(session: Session, writes: Sequence[JobWrite], *, actor: Actor, clock: Clock) -> dict[int, int]:
    """Store the jobs in the transaction of the caller; return provisional id -> id of the new ones."""
    now_ms = clock()
    has_scopes = hold_scopes(session, now_ms=now_ms)
    former = versions.read_present(
        session, [write.job_id for write in writes if write.job_id > 0 and write.columns]
    )
    keeping.hold_predecessors(session, [_text_of(write) for write in writes])
    ids = _add(session, writes, now_ms)
    updates = [write for write in writes if write.columns and write.job_id > 0]
    replans = {write.job_id: write.replan for write in updates if write.replan is not None}
    changed_ms = replan_jobs(session, replans, clock=clock) if replans else now_ms
    rows = [{"id": write.job_id, **_with_ids(write.columns, ids), "update_time": now_ms} for write in updates]
    bulk.update_many(session, Job, rows)
    keep_uses(session, list(_former(writes, ids, "limits")))
    keep_edges(session, _former(writes, ids, "runs_after"), now_ms=now_ms)
    keep_spans(session, [*ids.values(), *(write.job_id for write in updates)], now_ms=changed_ms)
    tags = {ids.get(write.job_id, write.job_id): write.tags[1] for write in writes if write.tags is not None}
    job_tags.replace_tags(session, tags)
    if has_scopes:
        keep_scopes(session, tags, new_job_ids=list(_former(writes, ids, "job_group")), clock=clock)
    versions.keep(session, {**former, **dict.fromkeys(ids.values())}, actor=actor, now_ms=now_ms)
    entries = [_audit_entry(write, ids) for write in writes if write.columns]
    audit.record_many(session, entries, actor=actor, now_ms=now_ms)
    sources = [write.version for write in writes if write.version is not None]
    if sources:
        glue.save_versions(session, sources, actor=actor, now_ms=now_ms)
    return ids


def _text_of(write: JobWrite) -> str | None:
    text = write.columns.get("runs_after")
    return text if isinstance(text, str) else None


def _former(writes: Sequence[JobWrite], ids: Mapping[int, int], name: str) -> dict[int, Any]:
    """Return job id -> former value of a column, of the jobs where it changes; None for new ones."""
    return {
        ids.get(write.job_id, write.job_id): write.before.get(name)
        for write in writes
        if write.columns.get(name) != write.before.get(name)
    }


def _add(session: Session, writes: Sequence[JobWrite], now_ms: Millis) -> dict[int, int]:
    """Insert the new jobs, stopped, then how they follow each other; return provisional id -> id."""
    new = [write for write in writes if write.job_id < 0]
    stamps = {"add_time": now_ms, "update_time": now_ms, "glue_updatetime": now_ms}
    clocks = {
        "trigger_status": int(TriggerStatus.STOPPED),
        "trigger_last_time": 0,
        "trigger_next_time": 0,
        "last_fire_ms": 0,
    }
    new_ids = bulk.insert_with_ids(session, Job, [{**write.columns, **stamps, **clocks} for write in new])
    ids = {write.job_id: job_id for write, job_id in zip(new, new_ids, strict=True)}
    link_writes = [write for write in new if _with_ids(write.columns, {}) != _with_ids(write.columns, ids)]
    columns = [(ids[write.job_id], _with_ids(write.columns, ids)) for write in link_writes]
    bulk.update_many(session, Job, [{"id": job_id, **_links(values)} for job_id, values in columns])
    return ids


def _links(columns: Mapping[str, object]) -> dict[str, object]:
    return {name: columns[name] for name in ("child_jobid", "runs_after")}


def _with_ids(columns: Mapping[str, object], ids: Mapping[int, int]) -> dict[str, object]:
    """Return columns with the ids of new jobs that they name."""
    text, runs_after = str(columns["child_jobid"]), columns["runs_after"]
    if "-" in text:
        text = child_ids_text([ids.get(child, child) for child in parse_child_ids(text)])
        text = limited_text(CHILDREN, text, CHILDREN_MAX)
    if isinstance(runs_after, str):
        runs_after = with_ids(runs_after, ids)
    return {**columns, "child_jobid": text, "runs_after": runs_after}


def _audit_entry(write: JobWrite, ids: Mapping[int, int]) -> audit.Entry:
    columns = _with_ids(write.columns, ids)
    tags = {TAGS: write.tags} if write.tags is not None else {}
    if write.job_id < 0:
        changes = {**audit_fields(columns), **tags, "started": False}
        return audit.Entry("job.add", ("job", ids[write.job_id]), changes)
    changes = audit_fields(audit.difference(write.before, columns) | tags)
    return audit.Entry("job.update", ("job", write.job_id), changes)
