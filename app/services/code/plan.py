"""Plan of a document: what an apply would change. It reads with a constant number of statements."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.code.document import (
    ALARM_CHANNELS,
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
from app.domain.code.drift import drifted
from app.domain.code.plan import ObjectPlan, Plan
from app.domain.jobs.members import CHILDREN
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_, Text, folded
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
from app.services.code.stored import Stored, code_value
from app.services.code.timing import deleted_times, with_times
from app.store.jobs.managed import CHANNEL, JOB


@dataclass(frozen=True, slots=True)
class Plans:
    """Plans of all objects, and what it takes to write them."""

    stored: Stored
    groups: Sequence[GroupPlan] = ()
    jobs: Sequence[JobPlan] = ()
    channels: Sequence[ChannelPlan] = ()
    deletions: Sequence[ObjectPlan] = ()
    unlisted: tuple[str, ...] = field(default=())

    @property
    def named(self) -> "list[GroupPlan | JobPlan | ChannelPlan]":
        """The plans of the objects in the document, in the order of writing."""
        every: list[GroupPlan | JobPlan | ChannelPlan] = [*self.groups, *self.jobs, *self.channels]
        return [each for each in every if each.shown is not None or each.applied]

    @property
    def summary(self) -> Plan:
        """The plan as it is shown."""
        named = self.named
        shown = [each.shown for each in named if each.shown is not None]
        return Plan((*shown, *self.deletions), len(named) - len(shown), self.unlisted)


def plan_document(session: Session, request: CodeRequest, *, now_ms: Millis, lock: bool = False) -> Plans:
    """Return what applying a document would change; raises InvalidInput with the errors of all objects.

    ``lock`` keeps everything that it is based on unchanged until the commit.
    """
    document, errors = request.document, InputErrors()
    stored, candidates = find_for_document(session, request, lock=lock)
    prune = pruned_keys(request.prune, stored)
    check_references(document, prune, stored, errors)
    groups = GroupPlanner(stored, actor=request.actor, networks=request.networks)
    groups.is_import = request.is_import
    group_plans = _each(GROUPS, document.groups, groups.plan, errors)
    wishes = _wishes(document, stored, candidates, groups.id_of, errors)
    jobs = JobPlanner(stored, wishes, actor=request.actor, now_ms=now_ms)
    jobs.readable_by_java, jobs.is_import = request.readable_by_java, request.is_import
    jobs.app_names |= {group_id: app_name for app_name, group_id in groups.new.items()}
    job_plans = []
    for wish in wishes:
        with errors:
            job_plans.append(jobs.plan(wish))
    with errors:
        jobs.check_circles()
    planned = {wish.job_id: wish.key for wish in wishes}
    deletions = plan_deletions(document, prune, stored, errors, actor=request.actor)
    deletions = keep_jobs(deletions, planned)
    channel_plans = _plan_channels(document, deletions, groups, jobs, wishes, errors)
    with errors:
        check_groups(session, deletions, stored, planned, added=len(groups.new))
    errors.raise_all()
    check_runs(session, deletions)
    return Plans(
        stored,
        group_plans,
        with_times(session, job_plans, now_ms=now_ms),
        channel_plans,
        deleted_times(session, deletions),
        _unlisted(document, stored, prune, planned),
    )


def is_current(session: Session, request: CodeRequest, plans: Plans) -> bool:
    """Whether everything that plans are based on is as it was; it stays so until the commit."""
    stored, _candidates = find_for_document(session, request, lock=True)
    return stored.is_same_as(plans.stored)  # the candidates are among its jobs


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
    stored: Stored,
    candidates: Mapping[str, Sequence[int]],
    group_id_of: Callable[[str], int],
    errors: InputErrors,
) -> list[Wish]:
    """Return the jobs of the document with ids in place of keys; those with an error are left out."""
    channel_names = {
        folded(name): name
        for name in [*document.channels, *(each.channel.name for each in stored.channels.values())]
    }
    found: dict[str, tuple[int, bool]] = {}
    provisional, taken = count(stored.first_provisional, -1), set[int]()
    for key, members in document.jobs.items():
        with errors:
            job_id = _stored_id(key, members, stored, candidates, taken)
            found[key] = (job_id or next(provisional), job_id in taken)
    wishes = []
    for key, members in document.jobs.items():
        with errors:
            try:
                own = dict(members) | {"group_id": group_id_of(app_of(key))}
            except InvalidInput as exc:
                raise at_place(exc, JOBS, key) from exc
            if CHILDREN in members:
                own[CHILDREN] = list[int]()
                for child in members[CHILDREN]:
                    with errors:
                        own[CHILDREN].append(_child_id(key, child, found, document, stored))
            if ALARM_CHANNELS in members:
                own[ALARM_CHANNELS] = sorted(
                    {channel_names.get(folded(name), name) for name in members[ALARM_CHANNELS]}
                )
            if key in found:
                wishes.append(Wish(key, found[key][0], own, adopts=found[key][1]))
    return wishes


def _stored_id(
    key: str, members: Members, stored: Stored, candidates: Mapping[str, Sequence[int]], taken: set[int]
) -> int:
    """Return the id of the job with a key, else of the one to adopt (which is added to ``taken``), else 0."""
    managed = stored.managed_object(JOB, key)
    if managed is not None and not candidates.get(key):
        return managed.object_id
    free = [job_id for job_id in candidates.get(key, ()) if job_id in stored.jobs and job_id not in taken]
    if len(free) > 1:
        alike = [job_id for job_id in free if not _differs(members, stored, job_id)]
        has_description = "description" in members
        if not alike or (len(alike) > 1 and not has_description):
            problem = _several(", ".join(map(str, free)), has_description=has_description)
            raise InvalidInput(place(JOBS, key, "description"), problem)
        free = alike
    if not free:
        return 0
    if managed is None or managed.object_id != free[0]:
        taken.add(free[0])
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


def _differs(members: Members, stored: Stored, job_id: int) -> bool:
    wanted = {name: value for name, value in members.items() if name != CHILDREN}
    if CODE in wanted:
        wanted[CODE] = code_value(wanted[CODE]["language"], wanted[CODE].get("source"))
    return bool(drifted(wanted, stored.job_values(stored.jobs[job_id])))


def _child_id(
    key: str, child: str, found: Mapping[str, tuple[int, bool]], document: Document, stored: Stored
) -> int:
    own_key = stored.managed_key(child)
    if own_key in found:
        return found[own_key][0]
    managed = stored.managed_object(JOB, own_key)
    if managed is not None and own_key not in document.jobs:
        # a job that the actor may not see looks as if it did not exist, unless the parent leads to it already
        _group_id, linked = stored.links.get(found[key][0] if key in found else 0, (0, ()))
        if stored.jobs[managed.object_id].job_group in stored.groups or managed.object_id in linked:
            return managed.object_id
    raise InvalidInput(
        place(JOBS, key, CHILDREN),
        N_(
            "There is no job with the key %(key)s, neither in the files nor among the managed jobs", key=child
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
    stored, ids = jobs.stored, {wish.key: wish.job_id for wish in wishes}

    def job_id_of(key: str) -> int:
        own_key = stored.managed_key(key)
        managed = stored.managed_object(JOB, own_key)
        if own_key not in ids and managed is None:
            raise InvalidInput("jobs", N_("There is no job with the key %(key)s", key=key))
        return ids.get(own_key, managed.object_id if managed is not None else 0)

    names = {"groups": lambda group_id: jobs.app_names.get(group_id, f"#{group_id}"), "jobs": jobs.name_of}
    channels = ChannelPlanner(
        stored, actor=jobs.actor, group_id_of=groups.id_of, job_id_of=job_id_of, names=names
    )
    channels.deleted = deleted_channels(deletions, stored)
    plans = _each(CHANNELS, document.channels, channels.plan, errors)
    with errors:
        plans = channels.route(plans, {wish.job_id: wish.members for wish in wishes})
    for plan in plans:
        with errors:
            channels.check(plan)
    return plans


def _unlisted(
    document: Document, stored: Stored, pruned: Collection[str], planned: Collection[int]
) -> tuple[str, ...]:
    """Return what is managed, belongs to groups of the document, and is neither in it nor pruned.

    ``planned`` are the ids of its jobs, some of which had other keys. A job belongs to the group of its key
    and to the one it is in.
    """
    apps = {*document.groups, *(app_of(key) for key in document.jobs)}
    jobs = []
    for (kind, key), each in stored.managed.items():
        if kind == JOB and each.object_id not in planned and key not in document.jobs and key not in pruned:
            present = stored.present_key(key, stored.placed.get(each.object_id, 0))
            if not apps.isdisjoint((app_of(key), app_of(present))):
                jobs.append(key)
    names = names_in(document)
    named = [
        f"{CHANNEL}:{key}"
        for kind, key in stored.managed
        if kind == CHANNEL and document.channels and not is_kept(names, stored, kind, key)
    ]
    listed = {f"{CHANNEL}:{key}" for key in document.channels} | set(pruned)
    return (*jobs, *(each for each in named if each not in listed))
