"""Undo of an apply: restores what it changed, unless that was changed again since."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from app.clock import Clock, Millis
from app.domain.access.permissions import Actor, Right, require_right
from app.domain.code.change_sources import UNDO, source_text
from app.domain.code.document import app_of
from app.domain.code.drift import drift_of
from app.domain.code.plan import Action, Plan
from app.domain.jobs.members import CHILDREN
from app.domain.rounds.runs_after import RUNS_AFTER, named_jobs
from app.domain.text.texts import N_
from app.errors import Conflict, NotFound
from app.models.code import Apply
from app.services.auditing import audit
from app.services.code.apply import record
from app.services.code.deletions import check_runs
from app.services.code.plan import Plans
from app.services.code.state import State, find_state, with_jobs
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
from app.store.jobs import managed_objects
from app.store.jobs.managed_objects import CALENDAR, CHANNEL, GROUP, JOB, ManagedObject
from app.store.rounds.edges import read_edges

#: reasons that a refusal names
REASONS_MAX = 20
MISSING = N_("There is no apply with this id")


@dataclass(frozen=True, slots=True)
class PreparedUndo:
    """The undoing of an apply, planned."""

    request: UndoRequest
    apply: Apply
    #: what it changed, as it was recorded
    records: Sequence[Undoable]
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
    apply = managed_objects.find_apply(session, request.apply_id)
    if apply is None:
        raise NotFound(MISSING)
    records: Sequence[Undoable] = json.loads(apply.before)
    state = _read_state(session, records, request.actor, lock=lock)
    changes = _with_new_ids(with_present_names(records, state), state)
    _require_rights(changes, state, request.actor)
    if apply.undone_ms:
        raise Conflict(N_("Apply %(id)s was undone already", id=apply.id))
    reasons = list(_reasons(changes, state))
    if reasons and not request.forced:
        more = [f"… {len(reasons) - REASONS_MAX} more"] if len(reasons) > REASONS_MAX else []
        reason_list = "; ".join([*reasons[:REASONS_MAX], *more])
        raise Conflict(N_("Apply %(id)s cannot be undone: %(reasons)s", id=apply.id, reasons=reason_list))
    plans, remade = plan_undo(session, changes, state, request, now_ms=now_ms)
    check_runs(session, plans.deletions)
    return PreparedUndo(request, apply, records, changes, plans, plans.summary, remade)


def undo_apply(session: Session, preparation: PreparedUndo, *, clock: Clock) -> Plan:
    """Put back what an apply changed; return what that was.

    It is planned again if anything has changed meanwhile. Raises Conflict with reasons.
    """
    request = preparation.request
    locks.take_import_lock(session)
    locks.take_schedule_lock(session)
    if not _is_current(session, preparation):
        preparation = prepare_undo(session, request, now_ms=clock(), lock=True)
    apply, changes, plans = preparation.apply, preparation.changes, preparation.plans
    with audit.collecting(), changes_from(source_text(UNDO, apply.id)):
        ids = write_plans(session, plans, actor=request.actor, clock=clock)
    keys = [(change["kind"], change["key"]) for change in changes]
    managed_objects.replace_managed(
        session, keys, list(_owners(changes, plans.state, preparation.remade, ids))
    )
    now_ms, plan = clock(), preparation.plan
    managed_objects.set_undone(session, apply.id, now_ms=now_ms)
    record(session, "code.undo", plan.objects, apply.id, apply.source, actor=request.actor, now_ms=now_ms)
    return plan


def _is_current(session: Session, preparation: PreparedUndo) -> bool:
    """Whether everything that an undoing is based on is as it was; it stays so until the commit."""
    if managed_objects.lock_undone(session, preparation.apply.id):
        return False
    state = _read_state(session, preparation.records, preparation.request.actor, lock=True)
    return state.is_same_as(preparation.plans.state)


def _read_state(session: Session, changes: Sequence[Undoable], actor: Actor, *, lock: bool) -> State:
    """Return the state that an undoing is based on; ``lock`` keeps it unchanged until the commit."""
    state, jobs = find_state(session, actor), [change for change in changes if change["kind"] == JOB]
    owners = (state.managed_by_key.get((JOB, change["key"])) for change in jobs)
    job_ids = {change["id"] for change in jobs} | {owner.object_id for owner in owners if owner is not None}
    job_ids |= {child for change in jobs for child in change["before"].get(CHILDREN, ())}
    job_ids |= {job_id for change in jobs for job_id in named_jobs(change["before"].get(RUNS_AFTER))}
    deleted_ids = {change["id"] for change in jobs if change["action"] == Action.DELETE}
    leading = job_lists.find_parents(session, deleted_ids)
    leading |= {link.target for link in read_edges(session, deleted_ids)}
    return with_jobs(session, state, job_ids | leading, lock=lock)


def _with_new_ids(changes: Sequence[Undoable], state: State) -> Sequence[Undoable]:
    """Return the changes with the present ids of objects that were made again under their keys since.

    So applies can be undone one after the other, also those before a deletion that was undone.
    """
    new_ids: dict[str, dict[int, int]] = {GROUP: {}, JOB: {}, CHANNEL: {}, CALENDAR: {}}
    for change in changes:
        kind, owner = change["kind"], state.managed_object(change["kind"], change["key"])
        if change["action"] != Action.DELETE and owner and state.present(kind, change["id"]) is None:
            new_ids[kind][change["id"]] = owner.object_id
    if not any(new_ids.values()):
        return changes
    ids = Remade(new_ids[GROUP], new_ids[JOB])
    return [_with_present_ids(change, new_ids[change["kind"]], ids) for change in changes]


def _with_present_ids(change: Undoable, new_ids: Mapping[int, int], ids: Remade) -> Undoable:
    kind, owner = change["kind"], change["managed"]
    if owner is not None:
        object_id = new_ids.get(owner["object_id"], owner["object_id"])
        owner = {**owner, "object_id": object_id, "fields": ids.members(kind, owner["fields"])}
    return {
        **change,
        "id": new_ids.get(change["id"], change["id"]),
        "before": ids.members(kind, change["before"]),
        "after": ids.members(kind, change["after"]),
        "managed": owner,
    }


def _require_rights(changes: Sequence[Undoable], state: State, actor: Actor) -> None:
    """Raise NotFound for an apply with anything the actor may not see, PermissionDenied without a right."""
    visible = {group.app_name: group_id for group_id, group in state.groups.items()}
    for change in () if actor.is_admin else changes:
        if change["kind"] != JOB:
            raise NotFound(MISSING)
        owner = change["managed"] or {"object_id": 0, "fields": {}}
        job = state.jobs.get(change["id"] or owner["object_id"])  # a key that was only forgotten has no id
        former = visible.get(app_of(change["key"]), owner["fields"].get("group_id", 0))
        group_id = job.job_group if job is not None else former
        require_right(actor, group_id, Right.EDIT, missing=MISSING)


def _reasons(changes: Sequence[Undoable], state: State) -> Iterator[str]:
    """Yield why an apply cannot be undone: what was changed again since."""
    for change in changes:
        name, present = f"{change['kind']} {change['key']}", state.present(change["kind"], change["id"])
        if change["action"] == Action.DELETE:
            last_name = name_of(change, state)
            if change["before"] and state.id_named(change["kind"], last_name):
                yield f"{change['kind']} {last_name} exists again"
            elif (change["kind"], change["key"]) in state.managed_by_key:
                yield f"{name} exists again"
        elif present is None:
            if change["action"] != Action.CREATE:
                yield f"{name} was deleted since"
        elif edits := drift_of(change["after"], present):
            yield f"{name}: {', '.join(edits)} changed since"


def _owners(changes: Sequence[Undoable], state: State, remade: Remade, ids: Ids) -> Iterator[ManagedObject]:
    """Yield the managed objects as they were before the apply, and others that name what is made again."""
    keys = {(change["kind"], change["key"]) for change in changes}
    for owner in state.managed_by_key.values():
        fields = ids.final(owner.kind, remade.members(owner.kind, owner.fields))
        if (owner.kind, owner.key) not in keys and fields != owner.fields:
            yield replace(owner, fields=fields)
    for change in changes:
        if change["managed"] is None:
            continue
        owner = ManagedObject(**change["managed"])
        fields = ids.final(owner.kind, remade.members(owner.kind, owner.fields))
        yield replace(owner, object_id=_stored_id(change, owner, state, remade, ids), fields=fields)


def _stored_id(change: Undoable, owner: ManagedObject, state: State, remade: Remade, ids: Ids) -> int:
    """Return the stored id of an object that is put back."""
    if owner.kind == GROUP:
        return ids.group(remade.groups.get(owner.object_id, owner.object_id))
    if owner.kind == JOB:
        return ids.job(remade.jobs.get(owner.object_id, owner.object_id))
    if change["action"] == Action.DELETE and change["before"]:
        name = name_of(change, state)
        new_ids = ids.calendars if owner.kind == CALENDAR else ids.channels
        return new_ids.get(name) or state.id_named(owner.kind, name)
    return owner.object_id
