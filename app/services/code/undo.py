"""Undoing of an apply: what it changed is put back, unless it was changed again since."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from app.clock import Clock, Millis
from app.domain.access.permissions import Actor, Right, require_right
from app.domain.code.change_sources import UNDO, source_text
from app.domain.code.document import app_of
from app.domain.code.drift import drifted
from app.domain.code.plan import Action, Plan
from app.domain.jobs.members import CHILDREN
from app.domain.text.texts import N_
from app.errors import Conflict, NotFound
from app.models.managed import Apply
from app.services.auditing import audit
from app.services.code.apply import record
from app.services.code.deletions import check_runs
from app.services.code.plan import Plans
from app.services.code.stored import Stored, find_known, with_jobs
from app.services.code.undo_plans import (
    Remade,
    Undoable,
    UndoRequest,
    name_of,
    plan_undo,
    with_present_names,
)
from app.services.code.writing import Ids, write_plans
from app.services.jobs.versions import changes_from
from app.store.base import locks
from app.store.jobs import listing as job_lists
from app.store.jobs import managed
from app.store.jobs.managed import CHANNEL, GROUP, JOB, ManagedObject

#: reasons that a refusal names
REASONS_MAX = 20
MISSING = N_("There is no apply with this id")


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
    remade: Remade


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
    changes = _followed(with_present_names(recorded, stored), stored)
    _require_rights(changes, stored, request.actor)
    if apply.undone_ms:
        raise Conflict(N_("Apply %(id)s was undone already", id=apply.id))
    reasons = list(_reasons(changes, stored))
    if reasons and not request.forced:
        more = [f"… {len(reasons) - REASONS_MAX} more"] if len(reasons) > REASONS_MAX else []
        listed = "; ".join([*reasons[:REASONS_MAX], *more])
        raise Conflict(N_("Apply %(id)s cannot be undone: %(reasons)s", id=apply.id, reasons=listed))
    plans, remade = plan_undo(changes, stored, request, now_ms=now_ms)
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
    ids = Remade(moved[GROUP], moved[JOB])
    return [_with_present_ids(each, moved[each["kind"]], ids) for each in changes]


def _with_present_ids(change: Undoable, own: Mapping[int, int], ids: Remade) -> Undoable:
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
        owner = each["managed"] or {"object_id": 0, "fields": {}}
        job = stored.jobs.get(each["id"] or owner["object_id"])  # a key that was only forgotten has no id
        former = visible.get(app_of(each["key"]), owner["fields"].get("group_id", 0))
        group_id = job.job_group if job is not None else former
        require_right(actor, group_id, Right.EDIT, missing=MISSING)


def _reasons(changes: Sequence[Undoable], stored: Stored) -> Iterator[str]:
    """Yield why an apply cannot be undone: what was changed again since."""
    for each in changes:
        name, present = f"{each['kind']} {each['key']}", stored.present(each["kind"], each["id"])
        if each["action"] == Action.DELETE:
            last_name = name_of(each, stored)
            if each["before"] and stored.id_named(each["kind"], last_name):
                yield f"{each['kind']} {last_name} exists again"
            elif (each["kind"], each["key"]) in stored.managed:
                yield f"{name} exists again"
        elif present is None:
            if each["action"] != Action.CREATE:
                yield f"{name} was deleted since"
        elif changed := drifted(each["after"], present):
            yield f"{name}: {', '.join(changed)} changed since"


def _owners(changes: Sequence[Undoable], stored: Stored, remade: Remade, ids: Ids) -> Iterator[ManagedObject]:
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
        fields = ids.final(owner.kind, remade.members(owner.kind, owner.fields))
        yield replace(owner, object_id=_owned_id(each, owner, stored, remade, ids), fields=fields)


def _owned_id(change: Undoable, owner: ManagedObject, stored: Stored, remade: Remade, ids: Ids) -> int:
    """Return the stored id of an object that is put back."""
    if owner.kind == GROUP:
        return ids.group(remade.groups.get(owner.object_id, owner.object_id))
    if owner.kind == JOB:
        return ids.job(remade.jobs.get(owner.object_id, owner.object_id))
    if change["action"] == Action.DELETE and change["before"]:
        name = name_of(change, stored)
        return ids.channels.get(name) or stored.id_named(CHANNEL, name)
    return owner.object_id
