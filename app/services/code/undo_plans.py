"""Plans of an undo: objects as they were before an apply, with new ids for those that are created again."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor
from app.domain.code.document import ALARM_CHANNELS
from app.domain.code.plan import Action, ObjectPlan
from app.domain.jobs.members import CHILDREN, MEMBER_OF
from app.domain.rounds.runs_after import RUNS_AFTER, named_jobs, predecessors_of, with_named
from app.domain.text.texts import fold
from app.models.job import Job
from app.services.code.apply import SEALED
from app.services.code.channel_plans import ChannelPlanner
from app.services.code.deletions import deleted_channels
from app.services.code.group_plans import GroupPlan, GroupPlanner
from app.services.code.job_plans import JobPlanner, Wish
from app.services.code.plan import Plans
from app.services.code.state import State, new_calendars, plan_calendar
from app.settings.config import Network
from app.settings.sealing import sealer
from app.store.jobs.managed_objects import CALENDAR, CHANNEL, GROUP, JOB

#: change of an apply as it was recorded
Undoable = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class UndoRequest:
    """Which apply to undo."""

    apply_id: int
    actor: Actor
    #: also where fields were changed again since
    forced: bool = False
    networks: tuple[Network, ...] = ()


@dataclass(frozen=True, slots=True)
class Remade:
    """Ids of objects that are made again: former -> provisional, or that of a group that has the AppName."""

    groups: dict[int, int]
    jobs: dict[int, int]
    #: folded names of channels that are made again
    channels: Collection[str] = ()

    def members(self, kind: str, members: Mapping[str, Any]) -> dict[str, Any]:
        """Return members of an object with these ids in place of former ones."""
        new_members = dict(members)
        if "group_id" in new_members:
            new_members["group_id"] = self.groups.get(new_members["group_id"], new_members["group_id"])
        lists = {CHILDREN: self.jobs} if kind == JOB else {"groups": self.groups, "jobs": self.jobs}
        for name, remade in lists.items():
            if name in new_members:
                new_members[name] = [remade.get(object_id, object_id) for object_id in new_members[name]]
        if RUNS_AFTER in new_members:
            ids = [self.jobs.get(job_id, job_id) for job_id in named_jobs(new_members[RUNS_AFTER])]
            new_members[RUNS_AFTER] = with_named(new_members[RUNS_AFTER], ids)
        return new_members


def with_present_names(changes: Sequence[Undoable], state: State) -> Sequence[Undoable]:
    """Return the changes with the present names of the alarm channels that jobs had."""

    def with_names(members: Mapping[str, Any]) -> Mapping[str, Any]:
        if ALARM_CHANNELS not in members:
            return members
        names = {state.present_name(CHANNEL, name) for name in members[ALARM_CHANNELS]}
        return {**members, ALARM_CHANNELS: sorted(names)}

    pairs = [(change, with_names(change["before"]), with_names(change["after"])) for change in changes]
    return [{**change, "before": before, "after": after} for change, before, after in pairs]


def plan_undo(
    session: Session, changes: Sequence[Undoable], state: State, request: UndoRequest, *, now_ms: Millis
) -> tuple[Plans, Remade]:
    """Return the plans that put everything back; what is gone and not to be made again is left out."""
    by_kind: dict[str, list[Undoable]] = {
        kind: [change for change in changes if change["kind"] == kind and _is_put_back(change, state)]
        for kind in (GROUP, JOB, CHANNEL, CALENDAR)
    }
    groups = GroupPlanner(state, actor=request.actor, networks=request.networks)
    group_plans = [_group_plan(groups, change) for change in by_kind[GROUP]]
    deleted_jobs = [change for change in by_kind[JOB] if change["action"] == Action.DELETE]
    remade = Remade(
        {change["id"]: plan.group_id for change, plan in zip(by_kind[GROUP], group_plans, strict=True)},
        {change["id"]: state.first_provisional - number for number, change in enumerate(deleted_jobs)},
        {fold(name_of(change, state)) for change in by_kind[CHANNEL] if change["action"] == Action.DELETE},
    )
    wishes = [_wish(change, state, remade) for change in by_kind[JOB]]
    wishes += _leading(state, remade, {wish.job_id for wish in wishes})
    jobs = JobPlanner(session, state, wishes, actor=request.actor, now_ms=now_ms)
    calendar_plans = [
        plan_calendar(state, name_of(change, state), change["before"], actor=request.actor)
        for change in by_kind[CALENDAR]
    ]
    jobs.calendars.new = new_calendars(calendar_plans)
    jobs.restores, jobs.has_channel = True, lambda _name: True
    jobs.app_names |= {group_id: app_name for app_name, group_id in groups.new.items()}
    channels = ChannelPlanner(
        state,
        actor=request.actor,
        group_id_of=int,
        job_id_of=int,
        names={"groups": lambda group_id: jobs.app_names.get(group_id, ""), "jobs": jobs.name_of},
    )
    deletions = _deletions(changes, state)
    channels.deleted = deleted_channels(deletions, state)
    channel_plans = [
        channels.plan(name_of(change, state), _channel(remade.members(CHANNEL, change["before"])))
        for change in by_kind[CHANNEL]
    ]
    job_plans = list(map(jobs.plan, wishes))
    channel_plans = channels.route(channel_plans, {wish.job_id: wish.members for wish in wishes})
    plans = Plans(
        state,
        _without_ownership(group_plans),
        _without_ownership(job_plans),
        _without_ownership(channel_plans),
        _without_ownership(calendar_plans),
        deletions,
    )
    return plans, remade


def _group_plan(groups: GroupPlanner, change: Undoable) -> GroupPlan:
    name, is_gone = name_of(change, groups.state), change["action"] == Action.DELETE
    return groups.plan(name, change["before"], group_id=0 if is_gone else change["id"])


def _deletions(changes: Sequence[Undoable], state: State) -> list[ObjectPlan]:
    """Return the plans that delete what was added and still exists."""
    return [
        ObjectPlan(change["kind"], change["key"], Action.DELETE, change["id"])
        for change in changes
        if change["action"] == Action.CREATE and state.present(change["kind"], change["id"]) is not None
    ]


def _is_put_back(change: Undoable, state: State) -> bool:
    """Whether an object is changed back or made again."""
    if change["action"] == Action.DELETE:
        return bool(change["before"])
    return change["action"] != Action.CREATE and state.present(change["kind"], change["id"]) is not None


def name_of(change: Undoable, state: State) -> str:
    """Return the name of a group or channel, which may have been renamed: its last one if it was deleted.

    Without a name it is the key, as that of a job is.
    """
    is_gone = change["action"] == Action.DELETE  # its id may be that of another one now
    name = change.get("name") if is_gone else state.name_of(change["kind"], change["id"])
    return str(name or change["key"])


def _wish(change: Undoable, state: State, remade: Remade) -> Wish:
    members = remade.members(JOB, change["before"])
    if CHILDREN in members:
        members[CHILDREN] = _present(state, members[CHILDREN])
    if RUNS_AFTER in members:
        predecessors = _present(state, named_jobs(members[RUNS_AFTER]))
        members[RUNS_AFTER] = with_named(members[RUNS_AFTER], predecessors)
    if ALARM_CHANNELS in members:
        members[ALARM_CHANNELS] = [
            name
            for name in members[ALARM_CHANNELS]
            if fold(name) in remade.channels or state.id_named(CHANNEL, name)
        ]
    if change["action"] != Action.DELETE:
        job = state.jobs[change["id"]]
        members.setdefault("group_id", job.job_group)
        if not remade.jobs.keys().isdisjoint(job.child_ids):
            members.setdefault(CHILDREN, _children(state, job, remade))
        if not remade.jobs.keys().isdisjoint(predecessors_of(job.runs_after)):
            members.setdefault(RUNS_AFTER, _runs_after(state, job, remade))
    members.pop("run_mode", None)
    job_id: int = change["id"]
    return Wish(change["key"], remade.jobs.get(job_id, job_id), members)


def _leading(state: State, remade: Remade, wish_ids: Collection[int]) -> list[Wish]:
    """Return the wishes of further jobs that had one that is made again as a child or predecessor."""
    wishes = []
    for job_id, job in state.jobs.items():
        members: dict[str, Any] = {}
        if not remade.jobs.keys().isdisjoint(job.child_ids):
            members[CHILDREN] = _children(state, job, remade)
        if not remade.jobs.keys().isdisjoint(predecessors_of(job.runs_after)):
            members[RUNS_AFTER] = _runs_after(state, job, remade)
        if members and job_id not in wish_ids:
            key = state.keys.get((JOB, job_id), f"#{job_id}")
            wishes.append(Wish(key, job_id, {"group_id": job.job_group, **members}))
    return wishes


def _runs_after(state: State, job: Job, remade: Remade) -> Any:
    """Return what a job runs after, of the jobs that exist or are made again."""
    value = MEMBER_OF[RUNS_AFTER].read(job.runs_after)
    return with_named(
        value, _present(state, [remade.jobs.get(job_id, job_id) for job_id in named_jobs(value)])
    )


def _children(state: State, job: Job, remade: Remade) -> list[int]:
    """Return the children of a job that exist or are made again."""
    return _present(state, [remade.jobs.get(child_id, child_id) for child_id in job.child_ids])


def _present(state: State, job_ids: Collection[int]) -> list[int]:
    """Return the jobs that exist or are made again."""
    return [job_id for job_id in job_ids if job_id < 0 or job_id in state.links]


def _channel(before: Mapping[str, Any]) -> dict[str, Any]:
    """Return members of a channel as a document has them, with the secrets unsealed."""
    members = {name: value for name, value in before.items() if not name.startswith("settings.")}
    settings = {
        name.removeprefix("settings."): sealer().unseal(value[SEALED]) if isinstance(value, dict) else value
        for name, value in before.items()
        if name.startswith("settings.")
    }
    return members | ({"settings": settings} if settings else {})


def _without_ownership(plans: Sequence[Any]) -> list[Any]:
    """Return plans of objects that change no ownership."""
    return [
        plan
        if plan.object_plan is None
        else replace(plan, object_plan=replace(plan.object_plan, owned_names=(), released_names=()))
        for plan in plans
    ]
