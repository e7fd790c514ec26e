"""Import plan: what an import would write, found without writing.

It matches the jobs of the file with stored ones, checks rules and rights, and compares. Jobs are planned in
the order in which they would be stored, children first; each sees what is planned for those before it.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app.clock import Millis
from app.domain.access.permissions import Actor, Right, require_right
from app.domain.enums import (
    BlockStrategy,
    GlueType,
    MisfireStrategy,
    RouteStrategy,
    ScheduleType,
    TriggerStatus,
)
from app.domain.jobs.children import child_ids_text, leads_to, parse_child_ids
from app.domain.schedules.schedule import Schedule
from app.domain.text.texts import N_
from app.errors import InvalidInput, PermissionDenied, XxlJobError
from app.models.base import zone_name
from app.models.job import Job
from app.services.jobs import glue, jobs
from app.services.jobs.replan import PLANNED_BY, first_instant
from app.services.jobs.rules import CHILD_DENIED, JobDraft, check_draft, clean_source, schedule_of
from app.services.jobs.transfer.findings import OPTIONS, Change, Finding, Kind, differences, draft_of
from app.services.jobs.transfer.job_file import CHILDREN, SOURCE, Entry

__all__ = ["Change", "Finding", "Kind"]

#: values of a new job that the file does not set
DEFAULTS = JobDraft(
    schedule_type=ScheduleType.NONE.value,
    misfire_strategy=MisfireStrategy.DO_NOTHING.value,
    executor_route_strategy=RouteStrategy.FIRST.value,
    executor_block_strategy=BlockStrategy.SERIAL_EXECUTION.value,
    glue_type=GlueType.BEAN.value,
)
#: remark of a version whose own remark in the file is too short or too long
REMARK = "imported from a file"


@dataclass(frozen=True, slots=True)
class Found:
    """Stored data that a plan is based on; the plan is void if any of it has changed."""

    #: group id -> appname, for groups in the file that the actor may see
    groups: Mapping[int, str]
    #: definitions of the jobs that the file may refer to, by id
    jobs: Sequence[Mapping[str, Any]]
    #: job id -> (group id, ids of children), for those jobs and their descendants
    descendants: Mapping[int, tuple[int, Sequence[int]]]
    #: job id -> tags, for jobs that have any
    tags: Mapping[int, tuple[str, ...]]

    @property
    def has_children(self) -> bool:
        """Whether any of the jobs has a child."""
        return any(job["child_jobid"] for job in self.jobs)


@dataclass(frozen=True, slots=True)
class Planned:
    """Plan for a job; nothing is written if ``columns`` is empty and there is no version."""

    finding: Finding
    #: negative: provisional id of a new job, also used by its parents
    job_id: int = 0
    columns: Mapping[str, object] = field(default_factory=dict)
    #: current values of these columns
    before: Mapping[str, object] = field(default_factory=dict)
    #: a changed schedule, and its first instant (0 if the schedule is off)
    replan: tuple[Schedule, Millis] | None = None
    #: a new version of the source
    version: dict[str, Any] | None = None
    #: the tags before and after; None: unchanged
    tags: tuple[tuple[str, ...], tuple[str, ...]] | None = None


class _State:
    """State of the planning, and job lookup of the rules: stored jobs, and what is planned so far."""

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
        #: all ids in the file
        self.file_ids = frozenset(entry.file_id for entry in entries if entry.file_id)
        #: id in the file -> id of the stored or new job; 0: that job has an error
        self.ids: dict[int, int] = {}
        for entry in entries:
            matching = self.jobs.get(entry.key, [])
            if entry.file_id and len(matching) == 1 and entry.error is None:
                self.ids[entry.file_id] = matching[0].id
        #: provisional id of a new job -> its id in the file
        self.new: dict[int, int] = {}
        self.descendants, self.tags = dict(found.descendants), found.tags
        #: child id -> ids of its parents
        self.parents = defaultdict[int, set[int]](set)
        for job_id, (_group_id, children) in self.descendants.items():
            for child in children:
                self.parents[child].add(job_id)
        #: lowest provisional id; they have as many digits as the final ids will have
        self.lowest = -max(self.descendants, default=0)

    def has_group(self, group_id: int) -> bool:
        """Return whether the group was found."""
        return group_id in self.group_ids

    def groups_of(self, job_ids: Collection[int]) -> Mapping[int, int]:
        """Return job id -> group id; jobs that neither exist nor are planned are left out."""
        return {job_id: self.descendants[job_id][0] for job_id in job_ids if job_id in self.descendants}

    def leads_to(self, child_id: int, job_id: int) -> bool:
        """Return whether ``job_id`` is ``child_id`` or a descendant of it, as planned so far."""
        return leads_to(child_id, job_id, self._children_of, self._parents_of)

    def keep(self, job_id: int, columns: Mapping[str, Any]) -> None:
        """Store the planned group and children of a job, for the jobs after it."""
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
    """Return the plan for each job of the file, in the order of writing."""
    state = _State(found, entries, actor, now_ms)
    return [_plan(state, entry) for entry in children_first(entries)]


def children_first(entries: Sequence[Entry]) -> list[Entry]:
    """Return the jobs, each after its children; those of a cycle come last, in their order."""
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
        added = {entry.file_id for entry in ready if entry.file_id}
        affected = {parent.number: parent for child in added for parent in parents[child]}
        for number in affected:
            missing[number] -= added
        ready = [parent for number, parent in sorted(affected.items()) if not missing[number]]
    return ordered + [entry for entry in entries if missing[entry.number]]


def _plan(state: _State, entry: Entry) -> Planned:
    """Plan a job. An error becomes its finding; its parents get no error because of it."""
    try:
        if entry.error is not None:
            raise entry.error
        own = _matching(state, entry)
        return _add(state, entry) if own is None else _change(state, entry, own)
    except XxlJobError as exc:
        if entry.file_id:
            state.ids[entry.file_id] = 0
        name, problem = _describe(state, entry, exc)
        options = tuple(OPTIONS[name]) if name in OPTIONS else ()
        finding = Finding(entry.number, entry.app_name, entry.key[1], Kind.ERROR, field=name, problem=problem)
        others = exc.further_errors if isinstance(exc, InvalidInput) else ()
        more = tuple((each.field, each.message) for each in others)
        return Planned(replace(finding, options=options, more=more))


def _matching(state: _State, entry: Entry) -> Job | None:
    """Return the matching stored job, None for a new one; raises InvalidInput if it is ambiguous."""
    found = state.jobs.get(entry.key, [])
    if len(found) > 1:
        ids = ", ".join(str(job.id) for job in found)
        raise InvalidInput(
            "jobDesc",
            N_(
                "More than one job has this appname, jobDesc and executorHandler: %(ids)s."
                " Rename all but one",
                ids=ids,
            ),
        )
    groups = state.groups.get(entry.app_name, [])
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


def _add(state: _State, entry: Entry) -> Planned:
    draft = replace(DEFAULTS, job_group=state.groups[entry.app_name][0], **entry.given)
    draft = replace(draft, child_jobid=child_ids_text(_children(state, entry, None)))
    draft = replace(draft, glue_source=entry.source or "", glue_remark=entry.remark)
    columns = check_draft(state, draft, actor=state.actor)
    if draft.glue_type != GlueType.BEAN and draft.glue_source.strip():
        require_right(state.actor, draft.job_group, Right.GLUE, missing=jobs.MISSING)
    state.lowest -= 1
    state.keep(state.lowest, columns)
    if entry.file_id:
        state.ids[entry.file_id] = state.lowest
        state.new[state.lowest] = entry.file_id
    finding = Finding(entry.number, entry.app_name, draft.job_desc, Kind.NEW)
    return Planned(finding, state.lowest, columns, tags=((), draft.tags) if draft.tags else None)


def _change(state: _State, entry: Entry, own: Job) -> Planned:
    """Plan the change of a job; an unchanged job needs no right except to view it."""
    before = replace(draft_of(own), tags=state.tags.get(own.id, ()))
    draft = replace(before, **entry.given)
    if draft.glue_type != own.glue_type:
        raise InvalidInput("glueType", N_("The run mode of a job cannot be changed."))
    if entry.children is not None:
        draft = replace(draft, child_jobid=child_ids_text(_children(state, entry, own)))
    columns: dict[str, Any] = {}
    changes: list[Change] = []
    replan = None
    if draft != before:
        require_right(state.actor, own.job_group, Right.EDIT, missing=jobs.MISSING)
        columns |= check_draft(state, draft, actor=state.actor, job=own)
        replan = _replan(own, draft, columns, state.now_ms)
        changes += differences(before, replace(draft, **columns), state.new)
        state.keep(own.id, columns)
    version = _version(state, entry, own)
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
    """Return the changed schedule of a job and its first instant (0 if it is off); None if unchanged."""
    if all(getattr(own, name) == columns[name] for name in PLANNED_BY):
        return None
    schedule = schedule_of(replace(draft, **columns), zone_name())
    is_on = own.trigger_status == TriggerStatus.RUNNING
    return schedule, first_instant(schedule, 0, now_ms=now_ms) if is_on else 0


def _version(state: _State, entry: Entry, own: Job) -> dict[str, Any] | None:
    """Return the new version of a job's source; None if unchanged."""
    if entry.source is None or clean_source(own.glue_type, entry.source) == (own.glue_source or ""):
        return None
    remark = entry.remark if glue.REMARK_MIN <= len(entry.remark) <= glue.REMARK_MAX else REMARK
    return glue.version_row(own, entry.source, remark, actor=state.actor, now_ms=state.now_ms)


def _children(state: _State, entry: Entry, own: Job | None) -> list[int]:
    """Return the ids of the child jobs; one that is not in the file must be a child already."""
    found = []
    for child in entry.children or ():
        if child in state.ids:
            found.append(state.ids[child])
        elif child in state.file_ids:
            raise InvalidInput(
                CHILDREN,
                N_(
                    "Child job %(id)s leads back to this job; they would trigger each other forever", id=child
                ),
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


def _describe(state: _State, entry: Entry, error: XxlJobError) -> tuple[str, str]:
    """Return the field of an error, and its text."""
    if isinstance(error, InvalidInput):
        return error.field, error.message
    if not isinstance(error, PermissionDenied):
        return SOURCE if entry.source is not None else "jobDesc", error.args[0]
    group_ids = [job.job_group for job in state.jobs.get(entry.key, [])] or state.groups[entry.app_name]
    if not state.actor.may(group_ids[0], Right.EDIT):
        return "appname", N_("You have no permission to edit jobs of this executor group")
    if entry.source and not state.actor.may(group_ids[0], Right.GLUE):
        return SOURCE, N_("You have no permission to write code for this executor group")
    return CHILDREN, CHILD_DENIED
