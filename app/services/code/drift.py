"""Drift: owned values that were changed elsewhere since they were applied."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor
from app.domain.code.drift import drift_of
from app.domain.code.plan import BLANKED, FieldChange
from app.domain.jobs.members import CHILDREN
from app.domain.rounds.runs_after import RUNS_AFTER, named_jobs, with_named
from app.services.code.state import State, find_state, is_secret, with_jobs
from app.store.jobs.managed_objects import CALENDAR, CHANNEL, GROUP, JOB, ManagedObject

#: kind -> field that the key names
_NAMES = {GROUP: "app_name", CHANNEL: "name", CALENDAR: "name"}


@dataclass(frozen=True, slots=True)
class DriftedObject:
    """Managed object that is not as its code says."""

    kind: str
    key: str
    object_id: int
    is_gone: bool
    #: the apply that made it last
    source: str
    applied_ms: Millis
    #: old: in the code; new: now
    fields: tuple[FieldChange, ...] = ()


def find_drift(session: Session, *, actor: Actor) -> list[DriftedObject]:
    """Return the managed objects the actor may see that differ from their code or are gone."""
    state = find_state(session, actor)
    ids = {owner.object_id for owner in state.managed_by_key.values() if owner.kind == JOB}
    state = with_jobs(session, state, ids)
    return [drift for owner in state.managed_by_key.values() for drift in _drift(state, owner, actor)]


def _drift(state: State, owner: ManagedObject, actor: Actor) -> Iterator[DriftedObject]:
    if not _is_visible(state, owner, actor):
        return
    present = state.present(owner.kind, owner.object_id)
    fields = () if present is None else tuple(_fields(state, owner, present, actor))
    if present is None or fields:
        yield DriftedObject(
            owner.kind, owner.key, owner.object_id, present is None, owner.source, owner.applied_ms, fields
        )


def _is_visible(state: State, owner: ManagedObject, actor: Actor) -> bool:
    if actor.is_admin or owner.kind == CALENDAR:
        return True
    if owner.kind == JOB:
        job = state.jobs.get(owner.object_id)
        return (owner.fields.get("group_id") if job is None else job.job_group) in state.groups
    return owner.kind == GROUP and owner.object_id in state.groups


def _fields(
    state: State, owner: ManagedObject, present: Mapping[str, Any], actor: Actor
) -> Iterator[FieldChange]:
    if name_now := state.renamed_to(owner.kind, owner.key):
        yield FieldChange(_NAMES[owner.kind], owner.key, name_now, was_edited=True)
    for name, values in drift_of(owner.fields, present).items():
        in_code, now = (_display_value(state, owner, name, value, actor) for value in values)
        yield FieldChange("group" if name == "group_id" else name, in_code, now, was_edited=True)


def _display_value(state: State, owner: ManagedObject, name: str, value: Any, actor: Actor) -> Any:
    """Return a value with keys in place of ids, and without secrets."""
    setting = name.removeprefix("settings.")
    if setting != name:
        kind = state.channels[owner.object_id].channel.kind
        return BLANKED if value and is_secret(kind, setting) else value
    if name == CHILDREN or (name == "jobs" and owner.kind == CHANNEL):
        return [_job_name(state, job_id, actor) for job_id in value or ()]
    if name == RUNS_AFTER:
        return with_named(value, (_job_name(state, job_id, actor) for job_id in named_jobs(value)))
    if name == "group_id":
        return _app_name(state, value)
    if name == "groups" and owner.kind == CHANNEL:
        return [_app_name(state, group_id) for group_id in value or ()]
    return value


def _job_name(state: State, job_id: int, actor: Actor) -> str:
    """Return the key of a job; its id if it has none, or one that the actor may not see."""
    key = state.keys.get((JOB, job_id))
    is_shown = key is not None and _is_visible(state, state.managed_by_key[JOB, key], actor)
    return key if key is not None and is_shown else f"#{job_id}"


def _app_name(state: State, group_id: int) -> str:
    return state.groups[group_id].app_name if group_id in state.groups else f"#{group_id}"
