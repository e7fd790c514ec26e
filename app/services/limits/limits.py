"""Named limits: list, set, delete, and the jobs that share them.

Those of an executor group are changed by who has *edit* there, those for jobs of all groups by
administrators.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor, Right, require_admin, require_right
from app.domain.enums import LimitKind
from app.domain.limits.rules import WEIGHT_MAX
from app.domain.text.fingerprints import require_unchanged
from app.domain.text.input_errors import InputErrors
from app.domain.text.limits import required_text
from app.domain.text.texts import N_
from app.errors import Conflict, InvalidInput, NotFound
from app.models.limit import NAME_MAX, Limit
from app.services.auditing import audit
from app.store.executors import listing as group_lists
from app.store.limits import listing
from app.store.limits.listing import ListedLimit

MISSING = N_("There is no such limit")
NO_GROUP = N_("There is no such executor group")
#: named limits of an installation, and jobs that a page or an error lists
LIMITS_MAX, JOBS_LISTED, JOBS_NAMED = 1_000, 200, 5


@dataclass(frozen=True, slots=True)
class NamedLimit:
    """A named limit, and what it is used for."""

    id: int
    name: str
    #: None: jobs of all groups may use it
    group_id: int | None
    slots: int
    #: how many jobs share it
    users: int
    #: most slots that a run of a job takes; 0 without jobs
    max_weight: int
    #: slots in use now
    used: int = 0
    #: runs that wait for it
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class SharingJob:
    """A job that shares a limit."""

    id: int
    name: str
    group_id: int
    weight: int


@dataclass(frozen=True, slots=True)
class LimitDraft:
    """A named limit as entered."""

    slots: int
    #: the only group whose jobs may use it; None: all
    group_id: int | None = None
    #: the group of a limit that exists stays
    keeps_group: bool = False
    #: fingerprint of the state that was edited; empty: not compared
    loaded: str = ""


def list_limits(
    session: Session, *, actor: Actor, after: str = "", limit: int | None = None
) -> list[NamedLimit]:
    """Return the named limits that the actor may see, by name, with their slots in use."""
    if not actor.has_anywhere(Right.VIEW):
        return []
    rows = listing.list_named(session, actor.group_ids(Right.VIEW), after=after, limit=limit)
    return _with_use(session, rows)


def get_limit(session: Session, name: str, *, actor: Actor, right: Right = Right.VIEW) -> NamedLimit:
    """Return a named limit on which the actor has a right; raises NotFound and PermissionDenied."""
    row = listing.find_named(session, name.strip())
    if row is None:
        raise NotFound(MISSING)
    _require(row.group_id, actor, right)
    return _with_use(session, [row])[0]


def list_jobs(session: Session, limit: NamedLimit, *, actor: Actor) -> list[SharingJob]:
    """Return the first jobs that share a limit and that the actor may see."""
    jobs = [SharingJob(*row) for row in listing.list_users(session, limit.id, limit=JOBS_LISTED)]
    return [job for job in jobs if actor.may(job.group_id, Right.VIEW)]


def may_change(actor: Actor, group_id: int | None) -> bool:
    """Whether the actor changes the limits of a group, or those of all groups."""
    return actor.is_admin if group_id is None else actor.may(group_id, Right.EDIT)


def state_of(limit: NamedLimit | ListedLimit) -> dict[str, object]:
    """Return what the form of a limit shows."""
    return {"name": limit.name, "slots": limit.slots, "group_id": limit.group_id}


def set_limit(session: Session, name: str, draft: LimitDraft, *, actor: Actor, now_ms: Millis) -> NamedLimit:
    """Make a named limit, or change its slots and group; return it as it is stored.

    Raises InvalidInput with the errors of all fields, NotFound, PermissionDenied and ChangedMeanwhile.
    """
    errors = InputErrors()
    with errors:
        name = check_name(name)
    with errors:
        _check_slots(draft.slots)
    errors.raise_all()
    limit = next(iter(listing.lock_named(session, [name])), None)
    if limit is None:
        return _add(session, name, draft, actor=actor, now_ms=now_ms)
    present = listing.find_named(session, name)
    assert present is not None  # its row is locked
    if not _may_see(present.group_id, actor):  # answered as if it was to be made
        _require_group(session, draft.group_id, actor)
        raise InvalidInput("name", N_("There is another limit of this name; choose another one"))
    _require(present.group_id, actor, Right.EDIT)
    require_unchanged(draft.loaded, state_of(present))
    group_id = present.group_id if draft.keeps_group else draft.group_id
    if group_id != present.group_id:
        _require_group(session, group_id, actor)
        _check_group(session, present, group_id)
    if draft.slots < present.max_weight:
        problem = N_(
            "A run takes %(weight)s slots of this limit: give it at least %(weight)s, or lower the weight of"
            " the job first",
            weight=present.max_weight,
        )
        raise InvalidInput("slots", problem)
    changes = audit.difference(_audit_fields(limit), {"slots": draft.slots, "job_group": group_id})
    limit.slots, limit.group_id = draft.slots, group_id
    session.flush()
    if changes:
        _record(session, "limit.set", limit, actor=actor, now_ms=now_ms, changes={"name": name, **changes})
    return get_limit(session, name, actor=actor)


def remove_limit(session: Session, name: str, *, actor: Actor, now_ms: Millis, loaded: str = "") -> None:
    """Delete a named limit; raises NotFound, PermissionDenied, and Conflict while jobs use it."""
    limit = next(iter(listing.lock_named(session, [name.strip()])), None)
    if limit is None:
        raise NotFound(MISSING)
    _require(limit.group_id, actor, Right.EDIT)
    present = listing.find_named(session, limit.name)
    assert present is not None  # its row is locked
    require_unchanged(loaded, state_of(present))
    if present.jobs:
        raise Conflict(N_("Jobs use this limit: %(jobs)s", jobs=_names(session, present)))
    changes = {"name": limit.name} | _audit_fields(limit)
    _record(session, "limit.remove", limit, actor=actor, now_ms=now_ms, changes=changes)
    listing.delete_limits(session, [limit.id])
    session.expunge(limit)


def check_name(text: str) -> str:
    """Return the name of a limit, trimmed; raises InvalidInput."""
    name = required_text("name", text, NAME_MAX, N_("Enter a name"))
    if not name.isprintable() or "/" in name or not name.strip("."):
        problem = N_("A name can have letters, digits, blanks and signs, but no / and no control characters")
        raise InvalidInput("name", problem)
    return name


def _add(session: Session, name: str, draft: LimitDraft, *, actor: Actor, now_ms: Millis) -> NamedLimit:
    _require_group(session, draft.group_id, actor)
    if listing.count_named(session) >= LIMITS_MAX:
        raise Conflict(N_("There are %(limit)s limits already; delete one first", limit=LIMITS_MAX))
    limit = Limit(kind=LimitKind.NAMED.value, name=name, group_id=draft.group_id, slots=draft.slots)
    session.add(limit)
    try:
        session.flush()
    except IntegrityError as exc:
        raise Conflict(N_("Another user has just made this limit")) from exc
    changes = {"name": name, **audit.difference({}, _audit_fields(limit))}
    _record(session, "limit.set", limit, actor=actor, now_ms=now_ms, changes=changes)
    return NamedLimit(limit.id, name, draft.group_id, draft.slots, 0, 0)


def _with_use(session: Session, rows: Sequence[ListedLimit]) -> list[NamedLimit]:
    ids = [row.id for row in rows]
    used, waiting = listing.count_used(session, ids), listing.count_waiting(session, ids)
    return [NamedLimit(*row, used.get(row.id, 0), waiting.get(row.id, 0)) for row in rows]


def _may_see(group_id: int | None, actor: Actor) -> bool:
    return actor.has_anywhere(Right.VIEW) if group_id is None else actor.may(group_id, Right.VIEW)


def require_visible(actor: Actor, group_id: int | None) -> None:
    """Raise NotFound unless the actor may see the limits of a group, or those of all groups."""
    _require(group_id, actor, Right.VIEW)


def _require(group_id: int | None, actor: Actor, right: Right) -> None:
    """Raise NotFound or PermissionDenied without the right; limits of all groups are administrators'."""
    if group_id is not None:
        require_right(actor, group_id, right, missing=MISSING)
        return
    if not _may_see(group_id, actor):
        raise NotFound(MISSING)
    if right is not Right.VIEW:
        require_admin(actor)


def _require_group(session: Session, group_id: int | None, actor: Actor) -> None:
    """Raise an error unless the actor may make limits of a group, which is held against deletion."""
    if group_id is None:
        require_admin(actor)
        return
    if not actor.may(group_id, Right.VIEW):
        raise InvalidInput("group_id", NO_GROUP)
    require_right(actor, group_id, Right.EDIT, missing=NO_GROUP)
    if group_lists.hold_group(session, group_id) is None:
        raise InvalidInput("group_id", NO_GROUP)


def _check_slots(slots: int) -> None:
    if not 1 <= slots <= WEIGHT_MAX:
        raise InvalidInput(
            "slots",
            N_("%(field)s must lie between %(low)s and %(high)s", field="slots", low=1, high=WEIGHT_MAX),
        )


def _check_group(session: Session, limit: ListedLimit, group_id: int | None) -> None:
    """Raise InvalidInput if a limit would become that of a group although jobs of others use it."""
    if group_id is None:
        return
    rows = listing.list_users(session, limit.id, limit=JOBS_NAMED, without_group=group_id)
    if rows:
        names = ", ".join(name for _, name, _, _ in rows)
        problem = N_("Jobs of other executors use this limit: %(jobs)s", jobs=names)
        raise InvalidInput("group_id", problem)


def _names(session: Session, limit: ListedLimit) -> str:
    rows = listing.list_users(session, limit.id, limit=JOBS_NAMED)
    names = [f"{name} ({job_id})" for job_id, name, _, _ in rows]
    return ", ".join(names) + (" …" if limit.jobs > len(names) else "")


def _audit_fields(limit: Limit) -> dict[str, object]:
    return {"slots": limit.slots, "job_group": limit.group_id}


def _record(
    session: Session,
    action: str,
    limit: Limit,
    *,
    actor: Actor,
    now_ms: Millis,
    changes: Mapping[str, object],
) -> None:
    target = ("limit", limit.id)
    audit.record(session, action, actor=actor, now_ms=now_ms, target=target, changes=changes)
