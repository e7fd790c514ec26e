"""What an import would write, found out without writing: which job of the file is which, the rules, the rights, the changes.

Jobs are looked at in the order they would be stored in, children first; what was planned for one is seen by those behind it.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from app.clock import Millis
from app.domain.children import child_ids_text, leads_to, parse_child_ids
from app.domain.enums import (
    BlockStrategy,
    Delivery,
    GlueType,
    MisfireStrategy,
    RouteStrategy,
    ScheduleType,
    TriggerStatus,
)
from app.domain.permissions import Actor, Right, require_right
from app.domain.schedule import Schedule
from app.domain.tags import FIELD as TAGS
from app.domain.tags import tags_text
from app.domain.texts import N_
from app.errors import InvalidInput, PermissionDenied, XxlJobError
from app.models.base import zone_name
from app.models.job import Job
from app.services.jobs import glue, jobs
from app.services.jobs.job_file import CHILDREN, NUMBERS, SOURCE, TEXTS, TIMES, Entry, write_time
from app.services.jobs.replan import PLANNED_BY, first_instant
from app.services.jobs.rules import JobDraft, check_draft, clean_source, schedule_of

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


@dataclass(frozen=True, slots=True)
class Found:
    """All that a plan was made from; a plan is void where it has changed."""

    #: group id -> appname, of those the file names and the actor may see
    groups: Mapping[int, str]
    #: the jobs the file may mean, by id: what they are, not how their schedules go on
    jobs: Sequence[Mapping[str, Any]]
    #: job id -> (group id, ids of children), of those jobs and all they lead to
    descendants: Mapping[int, tuple[int, Sequence[int]]]
    #: job id -> tags, of the jobs that have any
    tags: Mapping[int, tuple[str, ...]]

    @property
    def has_children(self) -> bool:
        """Whether one of the jobs has a child."""
        return any(job["child_jobid"] for job in self.jobs)


@dataclass(frozen=True, slots=True)
class Planned:
    """What is to be written of one job; nothing where ``columns`` are empty and there is no version."""

    finding: Finding
    #: below 0: a new job, whose children-to-be are named so too
    job_id: int = 0
    columns: Mapping[str, object] = field(default_factory=dict)
    #: the same columns as they are
    before: Mapping[str, object] = field(default_factory=dict)
    #: the other schedule of a job that had one, and its first instant if it is running
    replan: tuple[Schedule, Millis] | None = None
    #: a new version of its source
    version: dict[str, Any] | None = None
    #: the tags as they are and as they will be; None: they stay
    tags: tuple[tuple[str, ...], tuple[str, ...]] | None = None


class _Place:
    """Where the jobs of the file go: what is there already, and what is planned so far."""

    def __init__(self, found: Found, entries: Sequence[Entry], actor: Actor, now_ms: Millis) -> None:
        self.actor, self.now_ms = actor, now_ms
        self.group_ids = frozenset(found.groups)
        self.groups: dict[str, list[int]] = {}
        for group_id, app_name in found.groups.items():
            self.groups.setdefault(app_name, []).append(group_id)
        self.jobs: dict[tuple[str, str, str], list[Job]] = {}
        for row in found.jobs:
            job = Job(**row)
            key = found.groups[job.job_group], job.job_desc.strip(), (job.executor_handler or "").strip()
            self.jobs.setdefault(key, []).append(job)
        #: ids the file gives away
        self.file_ids = frozenset(entry.file_id for entry in entries if entry.file_id)
        #: id in the file -> id here; 0 where that job has an error of its own
        self.ids: dict[int, int] = {}
        for entry in entries:
            matching = self.jobs.get(entry.key, [])
            if entry.file_id and len(matching) == 1 and entry.error is None:
                self.ids[entry.file_id] = matching[0].id
        #: new job -> its id in the file
        self.new: dict[int, int] = {}
        self.descendants, self.tags = dict(found.descendants), found.tags
        #: child -> the jobs that name it
        self.parents = defaultdict[int, set[int]](set)
        for job_id, (_group_id, children) in self.descendants.items():
            for child in children:
                self.parents[child].add(job_id)
        #: new jobs are named downwards from here: as many digits as their ids will have
        self.lowest = -max(self.descendants, default=0)

    def has_group(self, group_id: int) -> bool:
        """Only groups that were found are asked for."""
        return group_id in self.group_ids

    def groups_of(self, job_ids: Collection[int]) -> Mapping[int, int]:
        """Return job id -> group id of those of the jobs that exist, or will."""
        return {job_id: self.descendants[job_id][0] for job_id in job_ids if job_id in self.descendants}

    def leads_to(self, child_id: int, job_id: int) -> bool:
        """Follow the child jobs as planned so far."""
        return leads_to(child_id, job_id, self._children_of, self._parents_of)

    def keep(self, job_id: int, columns: Mapping[str, Any]) -> None:
        """Let the jobs behind see a job as it will be."""
        for child in self._children_of([job_id]).get(job_id, ()):
            self.parents[child].discard(job_id)
        self.descendants[job_id] = (columns["job_group"], parse_child_ids(columns["child_jobid"]))
        for child in self.descendants[job_id][1]:
            self.parents[child].add(job_id)

    def _children_of(self, job_ids: Collection[int]) -> Mapping[int, Sequence[int]]:
        return {job_id: self.descendants[job_id][1] for job_id in job_ids if job_id in self.descendants}

    def _parents_of(self, job_ids: Collection[int]) -> Mapping[int, Collection[int]]:
        return {job_id: self.parents[job_id] for job_id in job_ids if job_id in self.parents}


def plan_import(found: Found, entries: Sequence[Entry], *, actor: Actor, now_ms: Millis) -> list[Planned]:
    """Return what is to be written of each job of the file, in the order of the writing."""
    place = _Place(found, entries, actor, now_ms)
    return [_plan(place, entry) for entry in children_first(entries)]


def children_first(entries: Sequence[Entry]) -> list[Entry]:
    """Return the jobs so that each comes after its children; those of a circle last, in their order."""
    ids = {entry.file_id for entry in entries if entry.file_id}
    missing = {entry.number: ids.intersection(entry.children or ()) for entry in entries}
    parents = defaultdict[int, list[Entry]](list)
    for entry in entries:
        for child in missing[entry.number]:
            parents[child].append(entry)
    ordered = list[Entry]()
    ready = [entry for entry in entries if not missing[entry.number]]
    while ready:
        ordered += ready
        freed = {entry.file_id for entry in ready if entry.file_id}
        touched = {parent.number: parent for child in freed for parent in parents[child]}
        for number in touched:
            missing[number] -= freed
        ready = [parent for number, parent in sorted(touched.items()) if not missing[number]]
    return ordered + [entry for entry in entries if missing[entry.number]]


def _plan(place: _Place, entry: Entry) -> Planned:
    """Plan one job; an error is told, and the children are no error of its parents."""
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
        return Planned(
            Finding(
                entry.number,
                entry.app_name,
                entry.key[1],
                Kind.ERROR,
                field=name,
                problem=problem,
                options=options,
            )
        )


def _matching(place: _Place, entry: Entry) -> Job | None:
    """Return the job the file means, None for a new one; raises InvalidInput where that cannot be said."""
    found = place.jobs.get(entry.key, [])
    if len(found) > 1:
        ids = ", ".join(str(job.id) for job in found)
        raise InvalidInput(
            "jobDesc",
            N_(
                "More than one job has this appname, jobDesc and executorHandler: %(ids)s. Rename all but one",
                ids=ids,
            ),
        )
    groups = place.groups.get(entry.app_name, [])
    if not groups:
        raise InvalidInput(
            "appname", N_("There is no executor group with this appname; add it first or correct the appname")
        )
    if not found and len(groups) > 1:
        raise InvalidInput(
            "appname",
            N_("Several executor groups have this appname, so the group of a new job is ambiguous"),
        )
    return found[0] if found else None


def _add(place: _Place, entry: Entry) -> Planned:
    draft = replace(DEFAULTS, job_group=place.groups[entry.app_name][0], **entry.given)
    draft = replace(draft, child_jobid=child_ids_text(_children(place, entry, None)))
    draft = replace(draft, glue_source=entry.source or "", glue_remark=entry.remark)
    columns = check_draft(place, draft, actor=place.actor)
    if draft.glue_type != GlueType.BEAN and draft.glue_source.strip():
        require_right(place.actor, draft.job_group, Right.GLUE, missing=jobs.MISSING)
    place.lowest -= 1
    place.keep(place.lowest, columns)
    if entry.file_id:
        place.ids[entry.file_id] = place.lowest
        place.new[place.lowest] = entry.file_id
    finding = Finding(entry.number, entry.app_name, draft.job_desc, Kind.NEW)
    return Planned(finding, place.lowest, columns, tags=((), draft.tags) if draft.tags else None)


def _change(place: _Place, entry: Entry, own: Job) -> Planned:
    """Change a job where it differs from the file; one that is the same needs no right but to be seen."""
    before = replace(_draft_of(own), tags=place.tags.get(own.id, ()))
    draft = replace(before, **entry.given)
    if draft.glue_type != own.glue_type:
        raise InvalidInput("glueType", N_("The run mode of a job cannot be changed."))
    if entry.children is not None:
        draft = replace(draft, child_jobid=child_ids_text(_children(place, entry, own)))
    columns: dict[str, Any] = {}
    changes: list[Change] = []
    replan = None
    if draft != before:
        require_right(place.actor, own.job_group, Right.EDIT, missing=jobs.MISSING)
        columns |= check_draft(place, draft, actor=place.actor, own=own)
        replan = _replan(own, draft, columns, place.now_ms)
        changes += _differences(place, before, replace(draft, **columns))
        place.keep(own.id, columns)
    version = _version(place, entry, own)
    if version is not None:
        lengths = [
            N_("%(n)s characters", n=len(source))
            for source in (own.glue_source or "", version["glue_source"])
        ]
        changes.append(Change(SOURCE, *lengths))
    kind = Kind.CHANGED if changes else Kind.SAME
    finding = Finding(
        entry.number, entry.app_name, str(columns.get("job_desc", own.job_desc)), kind, own.id, tuple(changes)
    )
    tags = (before.tags or (), draft.tags or ()) if draft.tags != before.tags else None
    return Planned(
        finding, own.id, columns, {name: getattr(own, name) for name in columns}, replan, version, tags
    )


def _replan(
    own: Job, draft: JobDraft, columns: Mapping[str, Any], now_ms: Millis
) -> tuple[Schedule, Millis] | None:
    """Return the other schedule of a job and, if it is running, its first instant; None where it stays as it is."""
    if all(getattr(own, name) == columns[name] for name in PLANNED_BY):
        return None
    schedule = schedule_of(replace(draft, **columns), zone_name())
    return schedule, first_instant(
        schedule, 0, now_ms=now_ms
    ) if own.trigger_status == TriggerStatus.RUNNING else 0


def _version(place: _Place, entry: Entry, own: Job) -> dict[str, Any] | None:
    """Return the new version of a job's source, None where it stays."""
    if entry.source is None or clean_source(own.glue_type, entry.source) == (own.glue_source or ""):
        return None
    remark = entry.remark if glue.REMARK_MIN <= len(entry.remark) <= glue.REMARK_MAX else REMARK
    return glue.version_row(own, entry.source, remark, actor=place.actor, now_ms=place.now_ms)


def _children(place: _Place, entry: Entry, own: Job | None) -> list[int]:
    """Return the ids here of the children; one that is not in the file must be a child already."""
    found = []
    for child in entry.children or ():
        if child in place.ids:
            found.append(place.ids[child])
        elif child in place.file_ids:
            raise InvalidInput(
                CHILDREN,
                N_("Child job %(id)s leads back to this job; they would trigger each other forever", id=child),
            )
        elif own is not None and child in own.child_ids:
            found.append(child)
        else:
            raise InvalidInput(
                CHILDREN,
                N_(
                    "Child job %(id)s is not in the file; export it too, or remove it from childJobId",
                    id=child,
                ),
            )
    return [job_id for job_id in found if job_id]


def _draft_of(job: Job) -> JobDraft:
    values: dict[str, Any] = {attribute: getattr(job, attribute) or "" for attribute in TEXTS.values()}
    values |= {attribute: getattr(job, attribute) for attribute in (*NUMBERS.values(), *TIMES.values())}
    return JobDraft(job_group=job.job_group, child_jobid=child_ids_text(job.child_ids), **values)


def _differences(place: _Place, before: JobDraft, after: JobDraft) -> list[Change]:
    """Return the fields that differ; a child that is new has no id yet."""
    changes = []
    for attribute, name in NAMES.items():
        old, new = getattr(before, attribute), getattr(after, attribute)
        if old != new:
            old, new = (write_time(old), write_time(new)) if name in TIMES else (str(old), str(new))
            changes.append(Change(name, old, new))
    if before.child_jobid != after.child_jobid:
        named = [
            f"*{place.new[child]}" if child in place.new else str(child)
            for child in parse_child_ids(after.child_jobid)
        ]
        changes.append(Change(CHILDREN, before.child_jobid, ",".join(named)))
    if before.tags != after.tags:
        changes.append(Change(TAGS, tags_text(before.tags or ()), tags_text(after.tags or ())))
    return changes


def _told(place: _Place, entry: Entry, error: XxlJobError) -> tuple[str, str]:
    """Return the field an error is about, and its text."""
    if isinstance(error, InvalidInput):
        return error.field, error.message
    if not isinstance(error, PermissionDenied):
        return SOURCE if entry.source is not None else "jobDesc", error.args[0]
    group_ids = [job.job_group for job in place.jobs.get(entry.key, [])] or place.groups[entry.app_name]
    if not place.actor.may(group_ids[0], Right.EDIT):
        return "appname", N_("You have no permission to edit jobs of this executor group")
    if entry.source and not place.actor.may(group_ids[0], Right.GLUE):
        return SOURCE, N_("You have no permission to write code for this executor group")
    return CHILDREN, N_("You have no permission to run one of these child jobs")
