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
from app.models.managed import Apply
from app.services.alarms.targets import settings_of
from app.services.auditing import audit
from app.services.code.channel_plans import ChannelPlan
from app.services.code.plan import Plans, is_current, plan_document
from app.services.code.request import CodeRequest
from app.services.code.stored import Stored, is_secret, whole_code
from app.services.code.writing import Ids, write_plans
from app.services.jobs.versions import changes_from
from app.settings.sealing import sealer
from app.store.base import locks
from app.store.jobs import managed
from app.store.jobs.managed import CHANNEL, JOB, ManagedObject

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
    recorded: str
    #: what it takes to undo each change, with the ids of the plan
    undoable: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Applied:
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
    recorded = json.dumps(plan.as_json(), ensure_ascii=False)
    return PreparedApply(request, plan_hash, plans, plan, recorded, list(_before(plans)))


def apply_document(session: Session, prepared: PreparedApply, *, source: str, clock: Clock) -> Applied:
    """Make everything as the document says.

    It is planned again if anything has changed meanwhile. Raises Conflict if that is not what was shown.
    """
    prepared = hold_plan(session, prepared, clock=clock)
    if prepared.plan.is_empty:
        return Applied(0, prepared.plan)
    return Applied(_write(session, prepared, source=source, clock=clock), prepared.plan)


def hold_plan(session: Session, prepared: PreparedApply, *, clock: Clock) -> PreparedApply:
    """Take the locks of writing a plan; return it, or another one if anything has changed meanwhile.

    Raises Conflict if that is not what was shown. A plan without changes takes no locks.
    """
    if prepared.plan.is_empty:
        return prepared
    locks.take_import_lock(session)  # a missing job has no row to lock: two applies could both add it
    locks.take_schedule_lock(session)
    request = prepared.request
    if is_current(session, request, prepared.plans):
        return prepared
    return prepare_apply(session, request, plan_hash=prepared.plan_hash, now_ms=clock(), lock=True)


def _write(session: Session, prepared: PreparedApply, *, source: str, clock: Clock) -> int:
    """Write and record an apply; return its id."""
    request, plans = prepared.request, prepared.plans
    with audit.collecting(), changes_from(source_text(APPLY, source)[:SOURCE_MAX]):
        ids = write_plans(session, plans, actor=request.actor, clock=clock)
    now_ms, owned = clock(), list(_owned(plans, ids))
    made = {(kind, key): own_id for kind, key, own_id, _fields in owned}
    apply_id = managed.insert_apply(
        session,
        Apply(
            at_ms=now_ms,
            username=request.actor.username[:64],
            source=source[:SOURCE_MAX],
            plan=prepared.recorded,
            before=json.dumps([_with_ids(each, made, ids) for each in prepared.undoable], ensure_ascii=False),
        ),
    )
    objects = [
        ManagedObject(kind, key, own_id, ids.final(kind, fields), source[:SOURCE_MAX], apply_id, now_ms)
        for kind, key, own_id, fields in owned
    ]
    managed.replace_managed(session, [(each.kind, each.key) for each in plans.deletions], objects)
    changed = prepared.plan.objects
    record(session, "code.apply", changed, apply_id, source, actor=request.actor, now_ms=now_ms)
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
    for each in Action:
        named = [_named(plan) for plan in objects if plan.action is each]
        if named:
            more = [f"… {len(named) - NAMED_MAX} more"] if len(named) > NAMED_MAX else []
            changes[each.value] = [*named[:NAMED_MAX], *more]
    audit.record(session, action, actor=actor, now_ms=now_ms, changes=changes)


def _named(plan: ObjectPlan) -> str:
    fields = ", ".join(each.field for each in plan.fields)
    shown = f"{plan.kind} {plan.key}"
    return f"{shown}: {fields}" if fields and plan.action is not Action.CREATE else shown


def _owned(plans: Plans, ids: Ids) -> Iterator[tuple[str, str, int, Mapping[str, Any]]]:
    for plan in plans.named:
        if plan.shown is not None:
            yield plan.shown.kind, plan.shown.key, ids.of(plan), plan.applied


def _before(plans: Plans) -> Iterator[dict[str, Any]]:
    """Yield what it takes to undo each change, with the ids of the plan; to be read before it is written."""
    for plan in plans.named:
        if plan.shown is None:
            continue
        before = dict(plan.before)
        if isinstance(plan, ChannelPlan) and plan.channel_id:
            before = _with_sealed(plans.stored, plan.channel_id, before)
        names = plan.applied if plan.shown.action is Action.CREATE else before
        # a list that is not applied is emptied by another member
        after = {name: plan.applied.get(name, []) for name in names}
        yield _undoable(plan.shown, before, after, plans.stored)
    for deleted in (*plans.deletions, *_taken_over(plans)):
        yield _undoable(deleted, _whole(plans.stored, deleted), {}, plans.stored)


def _taken_over(plans: Plans) -> Iterator[ObjectPlan]:
    """Yield the plans of former keys of objects that get another one: they are only forgotten."""
    shown = plans.summary.objects
    named = {(each.kind, each.key) for each in shown}
    for each in shown:
        former = plans.stored.keys.get((each.kind, each.object_id), each.key)
        if (each.kind, former) not in named:
            yield ObjectPlan(each.kind, former, Action.DELETE)


def _undoable(
    plan: ObjectPlan, before: Mapping[str, Any], after: Mapping[str, Any], stored: Stored
) -> dict[str, Any]:
    owner = stored.managed.get((plan.kind, plan.key))
    # "id" right before "before": so the store searches the applies of a job
    return {
        "kind": plan.kind,
        "key": plan.key,
        "action": plan.action.value,
        "id": plan.object_id,
        "before": before,
        "after": after,
        "managed": asdict(owner) if owner is not None else None,
        "name": stored.name_of(plan.kind, plan.object_id),
    }


def _with_ids(undoable: Mapping[str, Any], made: Mapping[tuple[str, str], int], ids: Ids) -> dict[str, Any]:
    """Return what it takes to undo a change, with the ids of new objects."""
    kind, key = undoable["kind"], undoable["key"]
    own_id = undoable["id"] or made.get((kind, key), 0)
    return {**undoable, "id": own_id, "after": ids.final(kind, undoable["after"])}


def _whole(stored: Stored, plan: ObjectPlan) -> dict[str, Any]:
    """Return all members of an object that is deleted; nothing of one that is gone already."""
    values = stored.present(plan.kind, plan.object_id) or {}
    if plan.kind == JOB and CODE in values:
        values[CODE] = whole_code(stored.jobs[plan.object_id])
    if plan.kind == CHANNEL and values:
        return _with_sealed(stored, plan.object_id, values)
    return values


def _with_sealed(stored: Stored, channel_id: int, values: dict[str, Any]) -> dict[str, Any]:
    """Return members of a channel with its secrets sealed in place of their fingerprints."""
    channel = stored.channels[channel_id].channel
    settings = settings_of(channel)
    for name in values:
        setting = name.removeprefix("settings.")
        if setting != name and is_secret(channel.kind, setting):
            values[name] = {SEALED: sealer().seal(settings.get(setting, ""))}
    return values
