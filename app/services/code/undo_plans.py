"""Plans of an undoing: objects as they were before an apply, with new ids for those that are made again."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.clock import Millis
from app.domain.access.permissions import Actor
from app.domain.code.document import ALARM_CHANNELS
from app.domain.code.plan import Action, ObjectPlan
from app.domain.jobs.members import CHILDREN
from app.domain.text.texts import folded
from app.models.job import Job
from app.services.code.apply import SEALED
from app.services.code.channel_plans import ChannelPlanner
from app.services.code.deletions import deleted_channels
from app.services.code.group_plans import GroupPlan, GroupPlanner
from app.services.code.job_plans import JobPlanner, Wish
from app.services.code.plan import Plans
from app.services.code.stored import Stored
from app.settings.config import Network
from app.settings.sealing import sealer
from app.store.jobs.managed import CHANNEL, GROUP, JOB

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
        found = dict(members)
        if "group_id" in found:
            found["group_id"] = self.groups.get(found["group_id"], found["group_id"])
        lists = {CHILDREN: self.jobs} if kind == JOB else {"groups": self.groups, "jobs": self.jobs}
        for name, remade in lists.items():
            if name in found:
                found[name] = [remade.get(each, each) for each in found[name]]
        return found


def with_present_names(changes: Sequence[Undoable], stored: Stored) -> Sequence[Undoable]:
    """Return the changes with the present names of the alarm channels that jobs had."""

    def renamed(members: Mapping[str, Any]) -> Mapping[str, Any]:
        if ALARM_CHANNELS not in members:
            return members
        names = {stored.present_name(CHANNEL, name) for name in members[ALARM_CHANNELS]}
        return {**members, ALARM_CHANNELS: sorted(names)}

    return [{**each, "before": renamed(each["before"]), "after": renamed(each["after"])} for each in changes]


def plan_undo(
    changes: Sequence[Undoable], stored: Stored, request: UndoRequest, *, now_ms: Millis
) -> tuple[Plans, Remade]:
    """Return the plans that put everything back; what is gone and not to be made again is left out."""
    of: dict[str, list[Undoable]] = {
        kind: [each for each in changes if each["kind"] == kind and _is_put_back(each, stored)]
        for kind in (GROUP, JOB, CHANNEL)
    }
    groups = GroupPlanner(stored, actor=request.actor, networks=request.networks)
    group_plans = [_group_plan(groups, each) for each in of[GROUP]]
    gone = [each for each in of[JOB] if each["action"] == Action.DELETE]
    remade = Remade(
        {each["id"]: plan.group_id for each, plan in zip(of[GROUP], group_plans, strict=True)},
        {each["id"]: stored.first_provisional - number for number, each in enumerate(gone)},
        {folded(name_of(each, stored)) for each in of[CHANNEL] if each["action"] == Action.DELETE},
    )
    wishes = [_wish(each, stored, remade) for each in of[JOB]]
    wishes += _parents(stored, remade, {wish.job_id for wish in wishes})
    jobs = JobPlanner(stored, wishes, actor=request.actor, now_ms=now_ms)
    jobs.restores = True
    jobs.app_names |= {group_id: app_name for app_name, group_id in groups.new.items()}
    channels = ChannelPlanner(
        stored,
        actor=request.actor,
        group_id_of=int,
        job_id_of=int,
        names={"groups": lambda group_id: jobs.app_names.get(group_id, ""), "jobs": jobs.name_of},
    )
    deletions = _deletions(changes, stored)
    channels.deleted = deleted_channels(deletions, stored)
    channel_plans = [
        channels.plan(name_of(each, stored), _channel(remade.members(CHANNEL, each["before"])))
        for each in of[CHANNEL]
    ]
    plans = Plans(
        stored,
        [replace(plan, shown=_unowned(plan.shown)) for plan in group_plans],
        [replace(plan, shown=_unowned(plan.shown)) for plan in map(jobs.plan, wishes)],
        [
            replace(plan, shown=_unowned(plan.shown))
            for plan in channels.route(channel_plans, {wish.job_id: wish.members for wish in wishes})
        ],
        deletions,
    )
    return plans, remade


def _group_plan(groups: GroupPlanner, change: Undoable) -> GroupPlan:
    name, is_gone = name_of(change, groups.stored), change["action"] == Action.DELETE
    return groups.plan(name, change["before"], group_id=0 if is_gone else change["id"])


def _deletions(changes: Sequence[Undoable], stored: Stored) -> list[ObjectPlan]:
    """Return the plans that delete what was added and still exists."""
    return [
        ObjectPlan(each["kind"], each["key"], Action.DELETE, each["id"])
        for each in changes
        if each["action"] == Action.CREATE and stored.present(each["kind"], each["id"]) is not None
    ]


def _is_put_back(change: Undoable, stored: Stored) -> bool:
    """Whether an object is changed back or made again."""
    if change["action"] == Action.DELETE:
        return bool(change["before"])
    return change["action"] != Action.CREATE and stored.present(change["kind"], change["id"]) is not None


def name_of(change: Undoable, stored: Stored) -> str:
    """Return the name of a group or channel, which may have been renamed: its last one if it was deleted.

    Without a name it is the key, as that of a job is.
    """
    is_gone = change["action"] == Action.DELETE  # its id may be that of another one now
    name = change.get("name") if is_gone else stored.name_of(change["kind"], change["id"])
    return str(name or change["key"])


def _wish(change: Undoable, stored: Stored, remade: Remade) -> Wish:
    members = remade.members(JOB, change["before"])
    if CHILDREN in members:
        members[CHILDREN] = _present(stored, members[CHILDREN])
    if ALARM_CHANNELS in members:
        members[ALARM_CHANNELS] = [
            name
            for name in members[ALARM_CHANNELS]
            if folded(name) in remade.channels or stored.id_named(CHANNEL, name)
        ]
    if change["action"] != Action.DELETE:
        job = stored.jobs[change["id"]]
        members.setdefault("group_id", job.job_group)
        if not remade.jobs.keys().isdisjoint(job.child_ids):
            members.setdefault(CHILDREN, _children(stored, job, remade))
    members.pop("run_mode", None)
    job_id: int = change["id"]
    return Wish(change["key"], remade.jobs.get(job_id, job_id), members)


def _parents(stored: Stored, remade: Remade, others: Collection[int]) -> list[Wish]:
    """Return the wishes of further jobs that had one as a child that is made again."""
    return [
        Wish(
            stored.keys.get((JOB, job_id), f"#{job_id}"),
            job_id,
            {"group_id": job.job_group, CHILDREN: _children(stored, job, remade)},
        )
        for job_id, job in stored.jobs.items()
        if job_id not in others and not remade.jobs.keys().isdisjoint(job.child_ids)
    ]


def _children(stored: Stored, job: Job, remade: Remade) -> list[int]:
    """Return the children of a job that exist or are made again."""
    return _present(stored, [remade.jobs.get(each, each) for each in job.child_ids])


def _present(stored: Stored, job_ids: Collection[int]) -> list[int]:
    """Return the jobs that exist or are made again."""
    return [each for each in job_ids if each < 0 or each in stored.links]


def _channel(before: Mapping[str, Any]) -> dict[str, Any]:
    """Return members of a channel as a document has them, with the secrets unsealed."""
    members = {name: value for name, value in before.items() if not name.startswith("settings.")}
    settings = {
        name.removeprefix("settings."): sealer().unseal(value[SEALED]) if isinstance(value, dict) else value
        for name, value in before.items()
        if name.startswith("settings.")
    }
    return members | ({"settings": settings} if settings else {})


def _unowned(shown: ObjectPlan | None) -> ObjectPlan | None:
    return replace(shown, owned=(), released=()) if shown is not None else None
