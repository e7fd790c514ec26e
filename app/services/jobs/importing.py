"""Jobs read from a file and stored with the rules, rights and trail of single jobs: all of them or none.

What is to be written is found out and checked outside of any writing transaction, which on SQLite would keep everybody else from
writing. The transaction then only looks whether all that was found is as it was, and writes in bulk; a dry run opens none at all.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sqlalchemy.orm import Session

from app.clock import Clock, Millis
from app.db import read_scope, session_scope
from app.domain.children import child_ids_text, parse_child_ids
from app.domain.enums import TriggerStatus
from app.domain.permissions import Actor, Right
from app.domain.tags import FIELD as TAGS
from app.domain.texts import N_
from app.errors import InvalidInput
from app.models.job import Job
from app.services import audit
from app.services.jobs import glue
from app.services.jobs.import_plan import Change, Finding, Found, Kind, Planned, plan_import
from app.services.jobs.job_file import CHILDREN, Entry
from app.services.jobs.replan import replan_jobs
from app.services.jobs.rules import CHILDREN_MAX, audited, limited_text
from app.store import bulk, group_lists, job_lists, job_tags, locks

__all__ = ["Change", "Finding", "Kind", "import_jobs"]

#: how often an import is planned anew because somebody changed what it found
ATTEMPTS = 3


def import_jobs(entries: Sequence[Entry], *, actor: Actor, clock: Clock, dry: bool) -> list[Finding]:
    """Store the jobs in one transaction and tell of each what it was; ``dry``, or any error: nothing is stored.

    Raises InvalidInput where others keep changing these jobs meanwhile.
    """
    for _attempt in range(ATTEMPTS):
        with read_scope() as session:
            found = _find(session, entries, actor)
        plan = plan_import(found, entries, actor=actor, now_ms=clock())
        if dry or any(planned.finding.kind is Kind.ERROR for planned in plan):
            return _in_order(planned.finding for planned in plan)
        with session_scope() as session:
            locks.take_import_lock(session)  # a job that is missing has no row to lock: two could add it
            if found.has_children or any(entry.children for entry in entries):
                locks.take_schedule_lock(
                    session
                )  # as every writer of children does: two could close a circle together
            if _find(session, entries, actor, lock=True) == found:
                return _in_order(_write(session, plan, actor=actor, clock=clock))
    raise InvalidInput("file", N_("Somebody else is changing these jobs: try it again"))


def _in_order(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: finding.number)


def _find(session: Session, entries: Sequence[Entry], actor: Actor, *, lock: bool = False) -> Found:
    """Find what the file names, as far as the actor may see it; with ``lock`` nobody changes it until the commit."""
    named = {entry.app_name for entry in entries}
    keys = {entry.key for entry in entries}
    groups = {
        group.id: group.app_name
        for group in group_lists.find_visible(session, actor.group_ids(Right.VIEW))
        if group.app_name in named
    }
    rows = job_lists.find_named(session, {key[1] for key in keys}, group_ids=groups)
    ids = [
        job_id
        for job_id, group_id, description, handler in rows
        if (groups[group_id], description, handler) in keys
    ]
    jobs = job_lists.read_definitions(session, ids, lock=lock)
    if lock:
        held = group_lists.hold_groups(session, groups)
        groups = {group_id: app_name for group_id, app_name in groups.items() if group_id in held}
    return Found(groups, jobs, job_lists.find_descendants(session, ids), job_tags.find_tags(session, ids))


def _write(session: Session, plan: Sequence[Planned], *, actor: Actor, clock: Clock) -> list[Finding]:
    """Store what was planned, by a few statements; return the findings with the ids that were given."""
    now_ms = clock()
    ids = _add(session, plan, now_ms)
    changed = [planned for planned in plan if planned.columns and planned.job_id > 0]
    replanned = {planned.job_id: planned.replan for planned in changed if planned.replan is not None}
    if replanned:
        replan_jobs(session, replanned, clock=clock)
    bulk.update_many(
        session,
        Job,
        [{"id": each.job_id, **_with_ids(each.columns, ids), "update_time": now_ms} for each in changed],
    )
    job_tags.replace_tags(
        session, {ids.get(each.job_id, each.job_id): each.tags[1] for each in plan if each.tags is not None}
    )
    entries = [_trail_entry(planned, ids) for planned in plan if planned.columns]
    audit.record_many(session, entries, actor=actor, now_ms=now_ms)
    versions = [planned.version for planned in plan if planned.version is not None]
    if versions:
        glue.save_versions(session, versions, actor=actor, now_ms=now_ms)
    return [_found(planned, ids) for planned in plan]


def _add(session: Session, plan: Sequence[Planned], now_ms: Millis) -> dict[int, int]:
    """Insert the new jobs, stopped; return their ids by those they were planned with. New children are entered when all have ids."""
    new = [planned for planned in plan if planned.job_id < 0]
    stamps = {"add_time": now_ms, "update_time": now_ms, "glue_updatetime": now_ms}
    clocks = {
        "trigger_status": int(TriggerStatus.STOPPED),
        "trigger_last_time": 0,
        "trigger_next_time": 0,
        "last_fire_ms": 0,
    }
    given = bulk.insert_with_ids(session, Job, [{**planned.columns, **stamps, **clocks} for planned in new])
    ids = {planned.job_id: job_id for planned, job_id in zip(new, given, strict=True)}
    parents = [planned for planned in new if "-" in str(planned.columns["child_jobid"])]
    texts = [(ids[planned.job_id], _with_ids(planned.columns, ids)["child_jobid"]) for planned in parents]
    bulk.update_many(session, Job, [{"id": job_id, "child_jobid": text} for job_id, text in texts])
    return ids


def _with_ids(columns: Mapping[str, object], ids: Mapping[int, int]) -> dict[str, object]:
    """Return columns with the ids that new children were given."""
    return {**columns, "child_jobid": _named(str(columns["child_jobid"]), ids)}


def _named(text: str, ids: Mapping[int, int]) -> str:
    if "-" not in text:
        return text
    return limited_text(
        CHILDREN, child_ids_text([ids.get(child, child) for child in parse_child_ids(text)]), CHILDREN_MAX
    )


def _trail_entry(planned: Planned, ids: Mapping[int, int]) -> audit.Entry:
    columns = _with_ids(planned.columns, ids)
    tags = {TAGS: planned.tags} if planned.tags is not None else {}
    if planned.job_id < 0:
        return audit.Entry(
            "job.add", ("job", ids[planned.job_id]), {**audited(columns), **tags, "started": False}
        )
    return audit.Entry(
        "job.update", ("job", planned.job_id), audited(audit.difference(planned.before, columns) | tags)
    )


def _found(planned: Planned, ids: Mapping[int, int]) -> Finding:
    """Return what became of a job, its new children by their ids."""
    finding = replace(planned.finding, job_id=ids.get(planned.job_id, planned.finding.job_id))
    if not planned.columns:
        return finding
    text = _named(str(planned.columns["child_jobid"]), ids)
    return replace(
        finding,
        changes=tuple(
            replace(each, new=text) if each.field == CHILDREN else each for each in finding.changes
        ),
    )
