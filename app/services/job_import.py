"""Jobs read from a file and stored by the services of single jobs, with their rules, rights and trail: all of them or none.

A dry run is the same transaction, rolled back: what it tells is what the import will do.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from sqlalchemy.orm import Session

from app.clock import Millis
from app.db import session_scope
from app.domain.children import child_ids_text
from app.domain.enums import BlockStrategy, Delivery, GlueType, MisfireStrategy, RouteStrategy, ScheduleType
from app.domain.permissions import Actor, Right
from app.domain.texts import N_
from app.errors import InvalidInput, PermissionDenied, XxlJobError
from app.models.group import Group
from app.models.job import Job
from app.services import glue, jobs
from app.services.job_file import CHILDREN, NUMBERS, SOURCE, TEXTS, TIMES, Entry, write_time
from app.services.job_rules import JobDraft, clean_source
from app.store import group_lists, job_lists, locks

#: what a new job is where the file does not say it
DEFAULTS = JobDraft(
    schedule_type=ScheduleType.NONE.value,
    misfire_strategy=MisfireStrategy.DO_NOTHING.value,
    executor_route_strategy=RouteStrategy.FIRST.value,
    executor_block_strategy=BlockStrategy.SERIAL_EXECUTION.value,
    glue_type=GlueType.BEAN.value,
)
#: the remark of a version whose own remark in the file is too short or too long to be one
REMARK = "imported from a file"
#: field -> values it can have
OPTIONS: dict[str, type[StrEnum]] = {
    "scheduleType": ScheduleType,
    "misfireStrategy": MisfireStrategy,
    "executorRouteStrategy": RouteStrategy,
    "executorBlockStrategy": BlockStrategy,
    "delivery": Delivery,
    "glueType": GlueType,
}
#: attributes a file can change -> their names in it
NAMES = {attribute: name for name, attribute in (TEXTS | TIMES | NUMBERS).items()}


class Kind(StrEnum):
    """What an import does with one job."""

    NEW = "new"
    CHANGED = "changed"
    SAME = "same"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Change:
    """One field before and after; sources by their length only."""

    field: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What becomes of one job of the file."""

    number: int
    app_name: str
    name: str
    kind: Kind
    #: id here; 0 where there is none, or none to keep
    job_id: int = 0
    changes: tuple[Change, ...] = ()
    #: of an error: the field, the problem, and what it can be
    field: str = ""
    problem: str = ""
    options: tuple[str, ...] = ()


@dataclass(slots=True)
class _Place:
    """Where the jobs of the file go: what is here already, as far as the actor may see it."""

    session: Session
    actor: Actor
    now_ms: Millis
    #: nothing is kept: ids made on the way mean nothing to anybody
    dry: bool
    groups: dict[str, list[Group]] = field(default_factory=dict)
    jobs: dict[tuple[str, str, str], list[Job]] = field(default_factory=dict)
    #: ids the file gives away
    file_ids: frozenset[int] = frozenset()
    #: id in the file -> id here; 0 where that job has an error of its own
    ids: dict[int, int] = field(default_factory=dict)
    #: ids made here and now
    made: set[int] = field(default_factory=set)


def import_jobs(entries: Sequence[Entry], *, actor: Actor, now_ms: Millis, dry: bool) -> list[Finding]:
    """Store the jobs in one transaction and tell of each what it was; ``dry``, or any error: nothing is stored."""
    with session_scope() as session:
        place = _find(_Place(session, actor, now_ms, dry), entries)
        findings = [_carry_out(place, entry) for entry in children_first(entries)]
        if dry or any(finding.kind is Kind.ERROR for finding in findings):
            session.rollback()
            findings = [replace(each, job_id=0) if each.kind is Kind.NEW else each for each in findings]
    return sorted(findings, key=lambda finding: finding.number)


def children_first(entries: Sequence[Entry]) -> list[Entry]:
    """Return the jobs so that each comes after its children; those of a circle last, in their order."""
    waiting, ordered = list(entries), list[Entry]()
    while waiting:
        missing = {entry.file_id for entry in waiting if entry.file_id}
        ready = [entry for entry in waiting if missing.isdisjoint(entry.children or ())]
        if not ready:
            return ordered + waiting
        ordered += ready
        numbers = {entry.number for entry in ready}
        waiting = [entry for entry in waiting if entry.number not in numbers]
    return ordered


def _find(place: _Place, entries: Sequence[Entry]) -> _Place:
    """Find what the file names, and lock it in the order every writer keeps: lock row, then jobs."""
    session, actor = place.session, place.actor
    place.file_ids = frozenset(entry.file_id for entry in entries if entry.file_id)
    named = {entry.app_name for entry in entries}
    app_names: dict[int, str] = {}
    for group in group_lists.find_visible(session, actor.group_ids(Right.VIEW)):
        if group.app_name in named:
            place.groups.setdefault(group.app_name, []).append(group)
            app_names[group.id] = group.app_name
    keys = {entry.key for entry in entries}
    found = job_lists.find_named(session, {key[1] for key in keys}, group_ids=app_names)
    found = [job for job in found if _key(job, app_names) in keys]
    if any(entry.children for entry in entries) or any(job.child_jobid for job in found):
        locks.take_schedule_lock(session)
    for job in locks.lock_jobs(session, [job.id for job in found]):
        place.jobs.setdefault(_key(job, app_names), []).append(job)
    for entry in entries:
        matching = place.jobs.get(entry.key, [])
        if entry.file_id and len(matching) == 1 and entry.error is None:
            place.ids[entry.file_id] = matching[0].id
    return place


def _key(job: Job, app_names: dict[int, str]) -> tuple[str, str, str]:
    return app_names.get(job.job_group, ""), job.job_desc.strip(), (job.executor_handler or "").strip()


def _carry_out(place: _Place, entry: Entry) -> Finding:
    """Store one job; an error is told, and the children are no error of its parents."""
    try:
        if entry.error is not None:
            raise entry.error
        own = _matching(place, entry)
        return _add(place, entry) if own is None else _change(place, entry, own)
    except XxlJobError as exc:
        if entry.file_id:
            place.ids[entry.file_id] = 0
        name, problem = _told(place, entry, exc)
        options = tuple(OPTIONS[name]) if name in OPTIONS else ()
        return Finding(entry.number, entry.app_name, entry.key[1], Kind.ERROR, field=name, problem=problem, options=options)


def _matching(place: _Place, entry: Entry) -> Job | None:
    """Return the job the file means, None for a new one; raises InvalidInput where that cannot be said."""
    found = place.jobs.get(entry.key, [])
    if len(found) > 1:
        ids = ", ".join(str(job.id) for job in found)
        raise InvalidInput(
            "jobDesc", N_("More than one job has this appname, jobDesc and executorHandler: %(ids)s. Rename all but one", ids=ids)
        )
    groups = place.groups.get(entry.app_name, [])
    if not groups:
        raise InvalidInput("appname", N_("There is no executor with this appname: add it first, or correct the appname"))
    if not found and len(groups) > 1:
        raise InvalidInput("appname", N_("More than one executor has this appname: a new job belongs to none of them for sure"))
    return found[0] if found else None


def _add(place: _Place, entry: Entry) -> Finding:
    draft = replace(DEFAULTS, job_group=place.groups[entry.app_name][0].id, **entry.given)
    draft = replace(draft, child_jobid=child_ids_text(_children(place, entry, None)))
    draft = replace(draft, glue_source=entry.source or "", glue_remark=entry.remark)
    job_id = jobs.add_job(place.session, draft, actor=place.actor, now_ms=place.now_ms)
    place.made.add(job_id)
    if entry.file_id:
        place.ids[entry.file_id] = job_id
    return Finding(entry.number, entry.app_name, draft.job_desc, Kind.NEW, job_id)


def _change(place: _Place, entry: Entry, own: Job) -> Finding:
    """Change a job where it differs from the file; one that is the same needs no right but to be seen."""
    before = _draft_of(own)
    draft = replace(before, **entry.given)
    if draft.glue_type != own.glue_type:
        raise InvalidInput("glueType", N_("The run mode of a job cannot be changed."))
    if entry.children is not None:
        draft = replace(draft, child_jobid=child_ids_text(_children(place, entry, own)))
    changes: list[Change] = []
    if draft != before:
        jobs.update_job(place.session, own.id, draft, actor=place.actor, now_ms=place.now_ms)
        changes += _differences(place, before, _draft_of(own))
    old_source = own.glue_source or ""
    if entry.source is not None and (source := clean_source(own.glue_type, entry.source)) != old_source:
        remark = entry.remark if glue.REMARK_MIN <= len(entry.remark) <= glue.REMARK_MAX else REMARK
        glue.save_source(place.session, own.id, source, remark, actor=place.actor, now_ms=place.now_ms)
        changes.append(Change(SOURCE, N_("%(n)s characters", n=len(old_source)), N_("%(n)s characters", n=len(source))))
    kind = Kind.CHANGED if changes else Kind.SAME
    return Finding(entry.number, entry.app_name, own.job_desc, kind, own.id, tuple(changes))


def _children(place: _Place, entry: Entry, own: Job | None) -> list[int]:
    """Return the ids here of the children; one that is not in the file must be a child already."""
    found = []
    for child in entry.children or ():
        if child in place.ids:
            found.append(place.ids[child])
        elif child in place.file_ids:
            raise InvalidInput(CHILDREN, N_("Child job %(id)s leads back to this job: they would run each other for ever", id=child))
        elif own is not None and child in own.child_ids:
            found.append(child)
        else:
            raise InvalidInput(CHILDREN, N_("Child job %(id)s is not in the file: export it too, or take it out of childJobId", id=child))
    return [job_id for job_id in found if job_id]


def _draft_of(job: Job) -> JobDraft:
    values: dict[str, Any] = {attribute: getattr(job, attribute) or "" for attribute in TEXTS.values()}
    values |= {attribute: getattr(job, attribute) for attribute in (*NUMBERS.values(), *TIMES.values())}
    return JobDraft(job_group=job.job_group, child_jobid=child_ids_text(job.child_ids), **values)


def _differences(place: _Place, before: JobDraft, after: JobDraft) -> list[Change]:
    """Return the fields that differ; a child that is new has no id yet that counts."""
    changes = []
    for attribute, name in NAMES.items():
        old, new = getattr(before, attribute), getattr(after, attribute)
        if old != new:
            old, new = (write_time(old), write_time(new)) if name in TIMES else (str(old), str(new))
            changes.append(Change(name, old, new))
    if before.child_jobid != after.child_jobid:
        ids = after.child_jobid.split(",") if after.child_jobid else []
        known = {str(here): f"*{file_id}" for file_id, here in place.ids.items() if place.dry and here in place.made}
        changes.append(Change(CHILDREN, before.child_jobid, ",".join(known.get(text, text) for text in ids)))
    return changes


def _told(place: _Place, entry: Entry, error: XxlJobError) -> tuple[str, str]:
    """Return the field an error is about, and its text."""
    if isinstance(error, InvalidInput):
        return error.field, error.message
    if not isinstance(error, PermissionDenied):
        return SOURCE if entry.source is not None else "jobDesc", error.args[0]
    group_ids = [job.job_group for job in place.jobs.get(entry.key, [])] or [group.id for group in place.groups[entry.app_name]]
    if not place.actor.may(group_ids[0], Right.EDIT):
        return "appname", N_("You may not edit the jobs of this executor")
    if entry.source and not place.actor.may(group_ids[0], Right.GLUE):
        return SOURCE, N_("You may not write code for this executor")
    return CHILDREN, N_("You may not run one of these child jobs")
