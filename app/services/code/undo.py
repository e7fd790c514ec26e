"""Undoing of an apply: what it changed is put back, unless it was changed again since."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.orm import Session

from app.clock import Clock, Millis
from app.config import Network
from app.domain.change_sources import UNDO, source_text
from app.domain.code_document import app_of
from app.domain.code_plan import Action, ObjectPlan, Plan
from app.domain.drift import drifted
from app.domain.job_members import CHILDREN
from app.domain.permissions import Actor, Right, require_right
from app.domain.texts import N_, folded
from app.errors import Conflict, NotFound
from app.models.job import Job
from app.models.managed import Apply
from app.sealing import sealer
from app.services import audit
from app.services.code.apply import SEALED, record
from app.services.code.channel_plans import ChannelPlanner
from app.services.code.deletions import check_runs
from app.services.code.group_plans import GroupPlanner
from app.services.code.job_plans import JobPlanner, Wish
from app.services.code.plan import Plans
from app.services.code.stored import Stored, find_known, with_jobs
from app.services.code.writing import Ids, write_plans
from app.services.jobs.versions import changes_from
from app.store import job_lists, locks, managed
from app.store.managed import CHANNEL, GROUP, JOB, ManagedObject

#: reasons that a refusal names
REASONS_MAX = 20
MISSING = N_("There is no apply with this id")
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
class PreparedUndo:
    """The undoing of an apply, planned."""

    request: UndoRequest
    apply: Apply
    #: what it changed, as it was recorded
    recorded: Sequence[Undoable]
    #: the same with present ids
    changes: Sequence[Undoable]
    plans: Plans
    plan: Plan
    remade: "_Remade"


def prepare_undo(
    session: Session, request: UndoRequest, *, now_ms: Millis, lock: bool = False
) -> PreparedUndo:
    """Plan an undoing, in a transaction of its own. Raises NotFound, and Conflict with reasons.

    ``lock`` keeps everything that it is based on unchanged until the commit.
    """
    apply = managed.find_apply(session, request.apply_id)
    if apply is None:
        raise NotFound(MISSING)
    recorded: Sequence[Undoable] = json.loads(apply.before)
    stored = _stored(session, recorded, request.actor, lock=lock)
    changes = _followed(recorded, stored)
    _require_rights(changes, stored, request.actor)
    if apply.undone_ms:
        raise Conflict(N_("Apply %(id)s was undone already", id=apply.id))
    reasons = list(_reasons(changes, stored))
    if reasons and not request.forced:
        more = [f"… {len(reasons) - REASONS_MAX} more"] if len(reasons) > REASONS_MAX else []
        listed = "; ".join([*reasons[:REASONS_MAX], *more])
        raise Conflict(N_("Apply %(id)s cannot be undone: %(reasons)s", id=apply.id, reasons=listed))
    plans, remade = _plans(changes, stored, request, now_ms=now_ms)
    check_runs(session, plans.deletions)
    return PreparedUndo(request, apply, recorded, changes, plans, plans.summary, remade)


def undo_apply(session: Session, prepared: PreparedUndo, *, clock: Clock) -> Plan:
    """Put back what an apply changed; return what that was.

    It is planned again if anything has changed meanwhile. Raises Conflict with reasons.
    """
    request = prepared.request
    locks.take_import_lock(session)
    locks.take_schedule_lock(session)
    if not _is_current(session, prepared):
        prepared = prepare_undo(session, request, now_ms=clock(), lock=True)
    apply, changes, plans = prepared.apply, prepared.changes, prepared.plans
    with audit.collecting(), changes_from(source_text(UNDO, apply.id)):
        ids = write_plans(session, plans, actor=request.actor, clock=clock)
    named = [(each["kind"], each["key"]) for each in changes]
    managed.replace_managed(session, named, list(_owners(changes, plans.stored, prepared.remade, ids)))
    now_ms, plan = clock(), prepared.plan
    managed.set_undone(session, apply.id, now_ms=now_ms)
    record(session, "code.undo", plan.objects, apply.id, apply.source, actor=request.actor, now_ms=now_ms)
    return plan


def _is_current(session: Session, prepared: PreparedUndo) -> bool:
    """Whether everything that an undoing is based on is as it was; it stays so until the commit."""
    if managed.lock_undone(session, prepared.apply.id):
        return False
    stored = _stored(session, prepared.recorded, prepared.request.actor, lock=True)
    return stored.is_same_as(prepared.plans.stored)


def _stored(session: Session, changes: Sequence[Undoable], actor: Actor, *, lock: bool) -> Stored:
    """Return the state that an undoing is based on; ``lock`` keeps it unchanged until the commit."""
    known, of_jobs = find_known(session, actor), [each for each in changes if each["kind"] == JOB]
    owners = (known.managed.get((JOB, each["key"])) for each in of_jobs)
    job_ids = {each["id"] for each in of_jobs} | {owner.object_id for owner in owners if owner is not None}
    job_ids |= {child for each in of_jobs for child in each["before"].get(CHILDREN, ())}
    gone = {each["id"] for each in of_jobs if each["action"] == Action.DELETE}
    return with_jobs(session, known, job_ids | job_lists.find_parents(session, gone), lock=lock)


def _followed(changes: Sequence[Undoable], stored: Stored) -> Sequence[Undoable]:
    """Return the changes with the present ids of objects that were made again under their keys since.

    So applies can be undone one after the other, also those before a deletion that was undone.
    """
    moved: dict[str, dict[int, int]] = {GROUP: {}, JOB: {}, CHANNEL: {}}
    for each in changes:
        kind, owner = each["kind"], stored.managed_object(each["kind"], each["key"])
        if each["action"] != Action.DELETE and owner and stored.present(kind, each["id"]) is None:
            moved[kind][each["id"]] = owner.object_id
    if not any(moved.values()):
        return changes
    ids = _Remade(moved[GROUP], moved[JOB])
    return [_with_present_ids(each, moved[each["kind"]], ids) for each in changes]


def _with_present_ids(change: Undoable, own: Mapping[int, int], ids: "_Remade") -> Undoable:
    kind, owner = change["kind"], change["managed"]
    if owner is not None:
        object_id = own.get(owner["object_id"], owner["object_id"])
        owner = {**owner, "object_id": object_id, "fields": ids.members(kind, owner["fields"])}
    return {
        **change,
        "id": own.get(change["id"], change["id"]),
        "before": ids.members(kind, change["before"]),
        "after": ids.members(kind, change["after"]),
        "managed": owner,
    }


def _require_rights(changes: Sequence[Undoable], stored: Stored, actor: Actor) -> None:
    """Raise NotFound for an apply with anything the actor may not see, PermissionDenied without a right."""
    visible = {group.app_name: group_id for group_id, group in stored.groups.items()}
    for each in () if actor.is_admin else changes:
        if each["kind"] != JOB:
            raise NotFound(MISSING)
        job = stored.jobs.get(each["id"])
        group_id = job.job_group if job is not None else visible.get(app_of(each["key"]), 0)
        require_right(actor, group_id, Right.EDIT, missing=MISSING)


def _reasons(changes: Sequence[Undoable], stored: Stored) -> Iterator[str]:
    """Yield why an apply cannot be undone: what was changed again since."""
    for each in changes:
        name, present = f"{each['kind']} {each['key']}", stored.present(each["kind"], each["id"])
        if each["action"] == Action.DELETE:
            if (each["kind"], each["key"]) in stored.managed:
                yield f"{name} exists again"
        elif present is None:
            if each["action"] != Action.CREATE:
                yield f"{name} was deleted since"
        elif changed := drifted(each["after"], present):
            yield f"{name}: {', '.join(changed)} changed since"


@dataclass(frozen=True, slots=True)
class _Remade:
    """Ids of objects that are made again: former -> provisional."""

    groups: dict[int, int]
    jobs: dict[int, int]

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


def _plans(
    changes: Sequence[Undoable], stored: Stored, request: UndoRequest, *, now_ms: Millis
) -> tuple[Plans, _Remade]:
    """Return the plans that put everything back; what is gone and not to be made again is left out."""
    of: dict[str, list[Undoable]] = {
        kind: [each for each in changes if each["kind"] == kind and _is_put_back(each, stored)]
        for kind in (GROUP, JOB, CHANNEL)
    }
    groups = GroupPlanner(stored, actor=request.actor, networks=request.networks)
    group_plans = [groups.plan(_name(each, stored), each["before"]) for each in of[GROUP]]
    gone = [each for each in of[JOB] if each["action"] == Action.DELETE]
    remade = _Remade(
        {each["id"]: groups.new[each["key"]] for each in of[GROUP] if each["key"] in groups.new},
        {each["id"]: stored.first_provisional - number for number, each in enumerate(gone)},
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
    added = [each["key"] for each in changes if each["action"] == Action.CREATE and each["kind"] == CHANNEL]
    channels.deleted = set(map(folded, added))
    channel_plans = [
        channels.plan(_name(each, stored), _channel(remade.members(CHANNEL, each["before"])))
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
        [
            ObjectPlan(each["kind"], each["key"], Action.DELETE, each["id"])
            for each in changes
            if each["action"] == Action.CREATE and stored.present(each["kind"], each["id"]) is not None
        ],
    )
    return plans, remade


def _is_put_back(change: Undoable, stored: Stored) -> bool:
    """Whether an object is changed back or made again."""
    if change["action"] == Action.DELETE:
        return bool(change["before"])
    return change["action"] != Action.CREATE and stored.present(change["kind"], change["id"]) is not None


def _name(change: Undoable, stored: Stored) -> str:
    """Return the present name of a group or channel, which may have been renamed; its key if it is gone."""
    return stored.name_of(change["kind"], change["id"]) or change["key"]


def _wish(change: Undoable, stored: Stored, remade: _Remade) -> Wish:
    members = remade.members(JOB, change["before"])
    if CHILDREN in members:
        members[CHILDREN] = _present(stored, members[CHILDREN])
    if change["action"] != Action.DELETE:
        job = stored.jobs[change["id"]]
        members.setdefault("group_id", job.job_group)
        if not remade.jobs.keys().isdisjoint(job.child_ids):
            members.setdefault(CHILDREN, _children(stored, job, remade))
    members.pop("run_mode", None)
    job_id: int = change["id"]
    return Wish(change["key"], remade.jobs.get(job_id, job_id), members)


def _parents(stored: Stored, remade: _Remade, others: Collection[int]) -> list[Wish]:
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


def _children(stored: Stored, job: Job, remade: _Remade) -> list[int]:
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


def _owners(
    changes: Sequence[Undoable], stored: Stored, remade: _Remade, ids: Ids
) -> Iterator[ManagedObject]:
    """Yield the managed objects as they were before the apply, and others that name what is made again."""
    named = {(each["kind"], each["key"]) for each in changes}
    for owner in stored.managed.values():
        fields = ids.final(owner.kind, remade.members(owner.kind, owner.fields))
        if (owner.kind, owner.key) not in named and fields != owner.fields:
            yield replace(owner, fields=fields)
    for each in changes:
        if each["managed"] is None:
            continue
        owner = ManagedObject(**each["managed"])
        if each["kind"] == CHANNEL:
            object_id = ids.channels.get(owner.key, owner.object_id)
        elif each["kind"] == GROUP:
            object_id = ids.group(remade.groups.get(owner.object_id, owner.object_id))
        else:
            object_id = ids.job(remade.jobs.get(owner.object_id, owner.object_id))
        fields = ids.final(owner.kind, remade.members(owner.kind, owner.fields))
        yield replace(owner, object_id=object_id, fields=fields)
