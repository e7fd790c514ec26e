"""Apply of a document: one transaction, one entry in the audit, and a record of what it takes to undo it.

It is planned outside that transaction, which holds up all schedules, and on SQLite all other writers.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy.orm import Session

from app.clock import Clock, Millis
from app.domain.access.permissions import Actor
from app.domain.code.change_sources import APPLY, source_text
from app.domain.code.document import CODE
from app.domain.code.plan import Action, ObjectPlan, Plan
from app.domain.text.texts import N_
from app.errors import Conflict
from app.models.code import Apply
from app.services.alarms.targets import settings_of
from app.services.auditing import audit
from app.services.code.channel_plans import ChannelPlan
from app.services.code.plan import Plans, is_current, plan_document
from app.services.code.request import CodeRequest
from app.services.code.state import State, is_secret, whole_code
from app.services.code.writing import Ids, write_plans
from app.services.jobs.versions import changes_from
from app.settings.sealing import sealer
from app.store.base import locks
from app.store.jobs import managed_objects
from app.store.jobs.managed_objects import CHANNEL, JOB, ManagedObject

#: longest name of a source, and most objects that an audit entry names
SOURCE_MAX = 200
NAMED_MAX = 200
SEALED = "sealed"


@dataclass(frozen=True, slots=True)
class PreparedApply:
    """An apply that is planned, and what is recorded of it."""

    request: CodeRequest
    #: the plan that was shown; None: none was
    plan_hash: str | None
    plans: Plans
    plan: Plan
    #: JSON of the plan
    plan_json: str
    #: what it takes to undo each change, with the ids of the plan
    undoable: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """Result of an apply; id 0: there was nothing to do, and nothing was recorded."""

    apply_id: int
    plan: Plan


def prepare_apply(
    session: Session, request: CodeRequest, *, plan_hash: str | None, now_ms: Millis, lock: bool = False
) -> PreparedApply:
    """Plan an apply, in a transaction of its own. Raises Conflict if ``plan_hash`` is that of another plan.

    ``lock`` keeps everything that it is based on unchanged until the commit.
    """
    plans = plan_document(session, request, now_ms=now_ms, lock=lock)
    plan = plans.summary
    if plan_hash and plan_hash != plan.digest:
        raise Conflict(N_("What would be changed is no longer what the plan showed: plan again"))
    plan_json = json.dumps(plan.as_json(), ensure_ascii=False)
    return PreparedApply(request, plan_hash, plans, plan, plan_json, list(_before(plans)))


def apply_document(session: Session, preparation: PreparedApply, *, source: str, clock: Clock) -> ApplyResult:
    """Make everything as the document says.

    It is planned again if anything has changed meanwhile. Raises Conflict if that is not what was shown.
    """
    preparation = hold_plan(session, preparation, clock=clock)
    if preparation.plan.is_empty:
        return ApplyResult(0, preparation.plan)
    return ApplyResult(_write(session, preparation, source=source, clock=clock), preparation.plan)


def hold_plan(session: Session, preparation: PreparedApply, *, clock: Clock) -> PreparedApply:
    """Take the locks of writing a plan; return it, or another one if anything has changed meanwhile.

    Raises Conflict if that is not what was shown. A plan without changes takes no locks.
    """
    if preparation.plan.is_empty:
        return preparation
    locks.take_import_lock(session)  # a missing job has no row to lock: two applies could both add it
    locks.take_schedule_lock(session)
    request = preparation.request
    if is_current(session, request, preparation.plans):
        return preparation
    return prepare_apply(session, request, plan_hash=preparation.plan_hash, now_ms=clock(), lock=True)


def _write(session: Session, preparation: PreparedApply, *, source: str, clock: Clock) -> int:
    """Write and record an apply; return its id."""
    request, plans = preparation.request, preparation.plans
    with audit.collecting(), changes_from(source_text(APPLY, source)[:SOURCE_MAX]):
        ids = write_plans(session, plans, actor=request.actor, clock=clock)
    now_ms, rows = clock(), list(_managed_rows(plans, ids))
    new_ids = {(kind, key): own_id for kind, key, own_id, _fields in rows}
    changes = [_with_ids(change, new_ids, ids) for change in preparation.undoable]
    apply_id = managed_objects.insert_apply(
        session,
        Apply(
            at_ms=now_ms,
            username=request.actor.username[:64],
            source=source[:SOURCE_MAX],
            plan=preparation.plan_json,
            before=json.dumps(changes, ensure_ascii=False),
        ),
    )
    objects = [
        ManagedObject(kind, key, own_id, ids.final(kind, fields), source[:SOURCE_MAX], apply_id, now_ms)
        for kind, key, own_id, fields in rows
    ]
    managed_objects.replace_managed(session, [(plan.kind, plan.key) for plan in plans.deletions], objects)
    objects_changed = preparation.plan.objects
    record(session, "code.apply", objects_changed, apply_id, source, actor=request.actor, now_ms=now_ms)
    return apply_id


def record(
    session: Session,
    action: str,
    objects: Sequence[ObjectPlan],
    apply_id: int,
    source: str,
    *,
    actor: Actor,
    now_ms: Millis,
) -> None:
    """Write the one audit entry of an apply or its undoing."""
    changes: dict[str, Any] = {"apply": apply_id, "source": source}
    for action_kind in Action:
        lines = [_audit_line(plan) for plan in objects if plan.action is action_kind]
        if lines:
            more = [f"… {len(lines) - NAMED_MAX} more"] if len(lines) > NAMED_MAX else []
            changes[action_kind.value] = [*lines[:NAMED_MAX], *more]
    audit.record(session, action, actor=actor, now_ms=now_ms, changes=changes)


def _audit_line(plan: ObjectPlan) -> str:
    fields = ", ".join(change.field for change in plan.fields)
    title = f"{plan.kind} {plan.key}"
    return f"{title}: {fields}" if fields and plan.action is not Action.CREATE else title


def _managed_rows(plans: Plans, ids: Ids) -> Iterator[tuple[str, str, int, Mapping[str, Any]]]:
    for plan in plans.object_plans:
        if plan.object_plan is not None:
            yield plan.object_plan.kind, plan.object_plan.key, ids.of(plan), plan.members


def _before(plans: Plans) -> Iterator[dict[str, Any]]:
    """Yield what it takes to undo each change, with the ids of the plan; to be read before it is written."""
    for plan in plans.object_plans:
        if plan.object_plan is None:
            continue
        before = dict(plan.before)
        if isinstance(plan, ChannelPlan) and plan.channel_id:
            before = _with_sealed(plans.state, plan.channel_id, before)
        names = plan.members if plan.object_plan.action is Action.CREATE else before
        # a list that is not applied is emptied by another member
        after = {name: plan.members.get(name, []) for name in names}
        yield _undoable(plan.object_plan, before, after, plans.state)
    for deletion in (*plans.deletions, *_taken_over(plans)):
        yield _undoable(deletion, _all_members(plans.state, deletion), {}, plans.state)


def _taken_over(plans: Plans) -> Iterator[ObjectPlan]:
    """Yield the plans of former keys of objects that get another one: they are only forgotten."""
    object_plans = plans.summary.objects
    keys = {(object_plan.kind, object_plan.key) for object_plan in object_plans}
    for object_plan in object_plans:
        former = plans.state.keys.get((object_plan.kind, object_plan.object_id), object_plan.key)
        if (object_plan.kind, former) not in keys:
            yield ObjectPlan(object_plan.kind, former, Action.DELETE)


def _undoable(
    plan: ObjectPlan, before: Mapping[str, Any], after: Mapping[str, Any], state: State
) -> dict[str, Any]:
    owner = state.managed_by_key.get((plan.kind, plan.key))
    # "id" right before "before": so the store searches the applies of a job
    return {
        "kind": plan.kind,
        "key": plan.key,
        "action": plan.action.value,
        "id": plan.object_id,
        "before": before,
        "after": after,
        "managed": asdict(owner) if owner is not None else None,
        "name": state.name_of(plan.kind, plan.object_id),
    }


def _with_ids(change: Mapping[str, Any], new_ids: Mapping[tuple[str, str], int], ids: Ids) -> dict[str, Any]:
    """Return what it takes to undo a change, with the ids of new objects."""
    kind, key = change["kind"], change["key"]
    own_id = change["id"] or new_ids.get((kind, key), 0)
    return {**change, "id": own_id, "after": ids.final(kind, change["after"])}


def _all_members(state: State, plan: ObjectPlan) -> dict[str, Any]:
    """Return all members of an object that is deleted; nothing of one that is gone already."""
    values = state.present(plan.kind, plan.object_id) or {}
    if plan.kind == JOB and CODE in values:
        values[CODE] = whole_code(state.jobs[plan.object_id])
    if plan.kind == CHANNEL and values:
        return _with_sealed(state, plan.object_id, values)
    return values


def _with_sealed(state: State, channel_id: int, values: dict[str, Any]) -> dict[str, Any]:
    """Return members of a channel with its secrets sealed in place of their fingerprints."""
    channel = state.channels[channel_id].channel
    settings = settings_of(channel)
    for name in values:
        setting = name.removeprefix("settings.")
        if setting != name and is_secret(channel.kind, setting):
            values[name] = {SEALED: sealer().seal(settings.get(setting, ""))}
    return values
