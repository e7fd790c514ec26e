"""Plan of a document: what an apply would change. It reads with a constant number of statements."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Right
from app.domain.code.calendar_plans import CalendarPlan
from app.domain.code.document import (
    ALARM_CHANNELS,
    CALENDARS,
    CHANNELS,
    CODE,
    GROUPS,
    JOBS,
    Document,
    Members,
    app_of,
    at_place,
    place,
)
from app.domain.code.drift import drift_of
from app.domain.code.plan import ObjectPlan, Plan
from app.domain.jobs.members import CHILDREN
from app.domain.rounds.runs_after import RUNS_AFTER, named_jobs, with_named
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_, Text, fold
from app.errors import InvalidInput
from app.services.code.channel_plans import ChannelPlan, ChannelPlanner
from app.services.code.deletions import (
    check_groups,
    check_references,
    check_runs,
    deleted_channels,
    is_kept,
    keep_jobs,
    names_in,
    plan_deletions,
    pruned_keys,
)
from app.services.code.group_plans import GroupPlan, GroupPlanner
from app.services.code.job_plans import JobPlan, JobPlanner, Wish
from app.services.code.matching import find_for_document
from app.services.code.request import CodeRequest
from app.services.code.state import State, code_value, new_calendars, plan_calendar
from app.services.code.timing import deleted_times, with_times
from app.store.alarms.channels import has_channel
from app.store.jobs.managed_objects import CALENDAR, CHANNEL, JOB

PlannedObject = GroupPlan | CalendarPlan | JobPlan | ChannelPlan


@dataclass(frozen=True, slots=True)
class Plans:
    """Plans of all objects, and what it takes to write them."""

    state: State
    groups: Sequence[GroupPlan] = ()
    jobs: Sequence[JobPlan] = ()
    channels: Sequence[ChannelPlan] = ()
    calendars: Sequence[CalendarPlan] = ()
    deletions: Sequence[ObjectPlan] = ()
    unlisted_keys: tuple[str, ...] = field(default=())

    @property
    def object_plans(self) -> list[PlannedObject]:
        """The plans of the objects in the document, in the order of writing."""
        every: list[PlannedObject] = [*self.groups, *self.calendars, *self.jobs, *self.channels]
        return [plan for plan in every if plan.object_plan is not None or plan.members]

    @property
    def summary(self) -> Plan:
        """The plan as it is shown."""
        plans = self.object_plans
        shown_plans = [plan.object_plan for plan in plans if plan.object_plan is not None]
        return Plan((*shown_plans, *self.deletions), len(plans) - len(shown_plans), self.unlisted_keys)


def plan_document(session: Session, request: CodeRequest, *, now_ms: Millis, lock: bool = False) -> Plans:
    """Return what applying a document would change; raises InvalidInput with the errors of all objects.

    ``lock`` keeps everything that it is based on unchanged until the commit.
    """
    document, errors = request.document, InputErrors()
    state, candidates = find_for_document(session, request, lock=lock)
    prune = pruned_keys(request.prune, state)
    check_references(document, prune, state, errors)
    groups = GroupPlanner(state, actor=request.actor, networks=request.networks)
    groups.readable_by_java, groups.is_import = request.readable_by_java, request.is_import
    visible = request.actor.group_ids(Right.VIEW)
    groups.has_channel = lambda name: name in document.channels or has_channel(session, name, visible)
    group_plans = _each(GROUPS, document.groups, groups.plan, errors)
    calendars = _calendar_planner(state, request)
    calendar_plans = _each(CALENDARS, document.calendars, calendars, errors)
    wishes = _wishes(document, state, candidates, groups.id_of, errors)
    jobs = JobPlanner(session, state, wishes, actor=request.actor, now_ms=now_ms)
    jobs.calendars.new = new_calendars(calendar_plans)
    jobs.readable_by_java, jobs.is_import = request.readable_by_java, request.is_import
    jobs.app_names |= {group_id: app_name for app_name, group_id in groups.new.items()}
    jobs.has_channel = groups.has_channel
    job_plans = []
    for wish in wishes:
        with errors:
            job_plans.append(jobs.plan(wish))
    with errors:
        jobs.check_circles()
    keys_by_job = {wish.job_id: wish.key for wish in wishes}
    deletions = keep_jobs(plan_deletions(document, prune, state, errors, actor=request.actor), keys_by_job)
    channel_plans = _plan_channels(document, deletions, groups, jobs, wishes, errors)
    with errors:
        check_groups(session, deletions, state, keys_by_job, new_groups=len(groups.new))
    errors.raise_all()
    check_runs(session, deletions)
    return Plans(
        state,
        group_plans,
        with_times(session, job_plans, now_ms=now_ms),
        channel_plans,
        calendar_plans,
        deleted_times(session, deletions),
        _find_unlisted(document, state, prune, keys_by_job),
    )


def _calendar_planner(state: State, request: CodeRequest) -> Callable[[str, Any], CalendarPlan]:
    return partial(
        plan_calendar,
        state,
        actor=request.actor,
        is_import=request.is_import,
        readable_by_java=request.readable_by_java,
    )


def is_current(session: Session, request: CodeRequest, plans: Plans) -> bool:
    """Whether everything that plans are based on is as it was; it stays so until the commit."""
    state, _candidates = find_for_document(session, request, lock=True)
    return state.is_same_as(plans.state)  # the candidates are among its jobs


def _each(
    section: str, objects: Mapping[str, Members], plan: Callable[[str, Members], Any], errors: InputErrors
) -> list[Any]:
    plans = []
    for key, members in objects.items():
        with errors:
            try:
                plans.append(plan(key, members))
            except InvalidInput as exc:
                raise at_place(exc, section, key) from exc
    return plans


def _wishes(
    document: Document,
    state: State,
    candidates: Mapping[str, Sequence[int]],
    group_id_of: Callable[[str], int],
    errors: InputErrors,
) -> list[Wish]:
    """Return the jobs of the document with ids in place of keys; those with an error are left out."""
    channel_names = {
        fold(name): name
        for name in [*document.channels, *(channel.channel.name for channel in state.channels.values())]
    }
    id_by_key: dict[str, tuple[int, bool]] = {}
    provisional, in_use = count(state.first_provisional, -1), set[int]()
    for key, members in document.jobs.items():
        with errors:
            job_id = _job_id(key, members, state, candidates, in_use)
            id_by_key[key] = (job_id or next(provisional), job_id in in_use)
    wishes = []
    for key, members in document.jobs.items():
        with errors:
            try:
                members_by_id = dict(members) | {"group_id": group_id_of(app_of(key))}
            except InvalidInput as exc:
                raise at_place(exc, JOBS, key) from exc
            if CHILDREN in members:
                members_by_id[CHILDREN] = list[int]()
                for child in members[CHILDREN]:
                    with errors:
                        child_id = _job_id_of(key, CHILDREN, child, id_by_key, document, state)
                        members_by_id[CHILDREN].append(child_id)
            if members.get(RUNS_AFTER):
                ids = list[int]()
                for other in named_jobs(members[RUNS_AFTER]):
                    with errors:
                        ids.append(_job_id_of(key, RUNS_AFTER, other, id_by_key, document, state))
                members_by_id[RUNS_AFTER] = with_named(members[RUNS_AFTER], ids)
            if ALARM_CHANNELS in members:
                members_by_id[ALARM_CHANNELS] = sorted(
                    {channel_names.get(fold(name), name) for name in members[ALARM_CHANNELS]}
                )
            if key in id_by_key:
                wishes.append(Wish(key, id_by_key[key][0], members_by_id, adopts=id_by_key[key][1]))
    return wishes


def _job_id(
    key: str, members: Members, state: State, candidates: Mapping[str, Sequence[int]], in_use: set[int]
) -> int:
    """Return the id of the job with a key, else of the one to adopt (added to ``in_use``), else 0."""
    owner = state.managed_object(JOB, key)
    if owner is not None and not candidates.get(key):
        return owner.object_id
    free = [job_id for job_id in candidates.get(key, ()) if job_id in state.jobs and job_id not in in_use]
    if len(free) > 1:
        alike = [job_id for job_id in free if not _differs(members, state, job_id)]
        has_description = "description" in members
        if not alike or (len(alike) > 1 and not has_description):
            problem = _several(", ".join(map(str, free)), has_description=has_description)
            raise InvalidInput(place(JOBS, key, "description"), problem)
        free = alike
    if not free:
        return 0
    if owner is None or owner.object_id != free[0]:
        in_use.add(free[0])
    return free[0]


def _several(ids: str, *, has_description: bool) -> Text:
    if has_description:
        return N_(
            "More than one job has this AppName, description and handler: %(ids)s. Rename all but one",
            ids=ids,
        )
    return N_(
        "More than one job has this AppName and handler: %(ids)s. Name the description of one of them,"
        " or that of a new job",
        ids=ids,
    )


def _differs(members: Members, state: State, job_id: int) -> bool:
    comparable = {name: value for name, value in members.items() if name not in (CHILDREN, RUNS_AFTER)}
    if CODE in comparable:
        comparable[CODE] = code_value(comparable[CODE]["language"], comparable[CODE].get("source"))
    return bool(drift_of(comparable, state.job_values(state.jobs[job_id])))


def _job_id_of(
    key: str,
    member: str,
    other_key: str,
    id_by_key: Mapping[str, tuple[int, bool]],
    document: Document,
    state: State,
) -> int:
    """Return the id of a child or predecessor that a job names."""
    own_key = state.managed_key(other_key)
    if own_key in id_by_key:
        return id_by_key[own_key][0]
    owner = state.managed_object(JOB, own_key)
    if owner is not None and own_key not in document.jobs:
        # a job that the actor may not see looks as if it did not exist, unless the parent leads to it already
        job_id = id_by_key[key][0] if key in id_by_key else 0
        _group_id, present_ids = state.links.get(job_id, (0, ()))
        if member == RUNS_AFTER:
            present_ids = state.predecessors_of(job_id)
        if state.jobs[owner.object_id].job_group in state.groups or owner.object_id in present_ids:
            return owner.object_id
    raise InvalidInput(
        place(JOBS, key, member),
        N_(
            "There is no job with the key %(key)s, neither in the files nor among the managed jobs",
            key=other_key,
        ),
    )


def _plan_channels(
    document: Document,
    deletions: Sequence[ObjectPlan],
    groups: GroupPlanner,
    jobs: JobPlanner,
    wishes: Sequence[Wish],
    errors: InputErrors,
) -> list[ChannelPlan]:
    state, ids = jobs.state, {wish.key: wish.job_id for wish in wishes}

    def job_id_of(key: str) -> int:
        own_key = state.managed_key(key)
        owner = state.managed_object(JOB, own_key)
        if own_key not in ids and owner is None:
            raise InvalidInput("jobs", N_("There is no job with the key %(key)s", key=key))
        return ids.get(own_key, owner.object_id if owner is not None else 0)

    names = {"groups": lambda group_id: jobs.app_names.get(group_id, f"#{group_id}"), "jobs": jobs.name_of}
    channels = ChannelPlanner(
        state, actor=jobs.actor, group_id_of=groups.id_of, job_id_of=job_id_of, names=names
    )
    channels.deleted = deleted_channels(deletions, state)
    plans = _each(CHANNELS, document.channels, channels.plan, errors)
    with errors:
        plans = channels.route(plans, {wish.job_id: wish.members for wish in wishes})
    for plan in plans:
        with errors:
            channels.check(plan)
    return plans


def _find_unlisted(
    document: Document, state: State, prune: Collection[str], job_ids: Collection[int]
) -> tuple[str, ...]:
    """Return what is managed, belongs to groups of the document, and is neither in it nor pruned.

    ``job_ids`` are its jobs, some of which had other keys. A job belongs to the group of its key
    and to the one it is in.
    """
    apps = {*document.groups, *(app_of(key) for key in document.jobs)}
    jobs = []
    for (kind, key), owner in state.managed_by_key.items():
        if kind == JOB and owner.object_id not in job_ids and key not in document.jobs and key not in prune:
            present = state.present_key(key, state.group_id_by_job.get(owner.object_id, 0))
            if not apps.isdisjoint((app_of(key), app_of(present))):
                jobs.append(key)
    names = names_in(document)
    sections = {CHANNEL: document.channels, CALENDAR: document.calendars}
    other_keys = [
        f"{kind}:{key}"
        for kind, key in state.managed_by_key
        if sections.get(kind) and not is_kept(names, state, kind, key)
    ]
    listed_keys = {f"{kind}:{key}" for kind, section in sections.items() for key in section} | set(prune)
    return (*jobs, *(key for key in other_keys if key not in listed_keys))
