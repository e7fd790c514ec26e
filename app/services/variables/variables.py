"""Stored variables and secrets: list, add, change, delete, former values, and the jobs that use them.

Those of an executor group are changed by who has *edit* there, those of the installation by
administrators. A secret is set by a login that is confirmed, or by a token with *glue*; its value is
sealed, and no function of this module returns it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor, Right, require_admin, require_right
from app.domain.jobs.variables import (
    INSTALLATION,
    SECRETS_KEPT,
    VARIABLES_MAX,
    VERSIONS_KEPT,
    allowed_ids,
    allowed_text,
    check_allowed,
    check_name,
    check_secret,
    check_value,
    placeholder,
)
from app.domain.text.fingerprints import require_unchanged
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_
from app.errors import Conflict, ForeignValue, InvalidInput, NotFound, PermissionDenied
from app.models.variable import Variable, VariableVersion
from app.services.auditing import audit
from app.store.base.paging import Page
from app.store.executors import listing as group_lists
from app.store.variables import variables
from app.store.variables.variables import VariableFilter

MISSING = N_("There is no such variable or secret")
UNCONFIRMED = N_("A secret is set after a confirmation, or by a token with the right glue")
#: former values and jobs that a page lists
VERSIONS_LISTED, JOBS_LISTED = 20, 50


@dataclass(frozen=True, slots=True)
class VariableDraft:
    """A variable or secret as entered: either ``value`` or ``secret``; None keeps that of a changed one."""

    name: str = ""
    value: str | None = None
    secret: str | None = field(default=None, repr=False)
    #: groups that may use a secret of the installation; None: as before
    allowed: Sequence[int] | None = None
    #: fingerprint of the state that was edited; empty: not compared
    loaded: str = ""
    #: whether the login was confirmed for a secret, or the token has the right ``glue``
    is_confirmed: bool = False


@dataclass(frozen=True, slots=True)
class UsingJob:
    """A job whose parameter names a variable or secret."""

    id: int
    name: str
    group_id: int


def list_page(
    session: Session, criteria: VariableFilter, *, actor: Actor, start: int, length: int
) -> Page[Variable]:
    """Return a page of the variables and secrets that the actor may see, by name."""
    visible = actor.group_ids(Right.VIEW)
    return variables.list_page(session, criteria, visible, start=start, length=length)


def list_after(
    session: Session, criteria: VariableFilter, *, actor: Actor, after_id: int, limit: int
) -> list[Variable]:
    """Return the variables and secrets that the actor may see, by id."""
    visible = actor.group_ids(Right.VIEW)
    return variables.list_after(session, criteria, visible, after_id=after_id, limit=limit)


def get_variable(session: Session, variable_id: int, *, actor: Actor, right: Right = Right.VIEW) -> Variable:
    """Return a variable or secret on which the actor has a right; raises NotFound and PermissionDenied."""
    variable = variables.find_variable(session, variable_id)
    if variable is None:
        raise NotFound(MISSING)
    _require(variable, actor, right)
    return variable


def may_change(actor: Actor, group_id: int) -> bool:
    """Whether the actor changes the variables of a group, or of the installation."""
    return actor.is_admin if group_id == INSTALLATION else actor.may(group_id, Right.EDIT)


def visible_ids(variable: Variable, actor: Actor) -> list[int]:
    """Return those of the groups that may use a secret of the installation that the actor may see."""
    return sorted(group_id for group_id in allowed_ids(variable.allowed) if actor.may(group_id, Right.VIEW))


def state_of(variable: Variable) -> dict[str, object]:
    """Return the state that a form shows: each change has another version."""
    return {"id": variable.id, "version": variable.version}


def add_variable(
    session: Session, draft: VariableDraft, *, group_id: int, actor: Actor, now_ms: Millis
) -> int:
    """Store a new variable or secret; return its id. Raises InvalidInput with the errors of all fields."""
    _require_change(session, group_id, actor)
    if variables.count_of_group(session, group_id) >= VARIABLES_MAX:
        raise Conflict(N_("There are %(limit)s variables and secrets already", limit=VARIABLES_MAX))
    is_secret = draft.secret is not None
    errors, name, groups_allowed = InputErrors(), "", list[int]()
    with errors:
        name = check_name(draft.name)
    with errors:
        _check_text(draft)
    with errors:
        groups_allowed = _check_allowed(session, draft, is_secret=is_secret, group_id=group_id)
    errors.raise_all()
    _require_confirmed(draft, is_secret=is_secret)
    variable = Variable(
        name=name,
        group_id=group_id,
        value=draft.value,
        secret=draft.secret,
        allowed=allowed_text(groups_allowed),
        version=variables.last_version(session, group_id, name) + 1,
        updated_ms=now_ms,
        username=actor.username[:64],
    )
    session.add(variable)
    try:
        session.flush()
    except IntegrityError as exc:
        raise InvalidInput("name", N_("There is a variable or secret %(name)s already", name=name)) from exc
    changes = audit.difference({}, _audit_fields(variable)) | _secret_change(draft)
    _record(session, "variable.add", variable, actor=actor, now_ms=now_ms, changes=changes)
    return variable.id


def change_variable(
    session: Session, variable_id: int, draft: VariableDraft, *, actor: Actor, now_ms: Millis
) -> None:
    """Change value or groups of a variable or secret, whose name stays; the former value is kept.

    Raises NotFound, PermissionDenied, InvalidInput and ChangedMeanwhile.
    """
    variable = _lock(session, variable_id, actor)
    require_unchanged(draft.loaded, state_of(variable))
    is_secret = variable.is_secret
    value, other = (draft.secret, draft.value) if is_secret else (draft.value, draft.secret)
    errors, groups_allowed = InputErrors(), sorted(allowed_ids(variable.allowed))
    with errors:
        if other is not None:
            raise InvalidInput("value" if is_secret else "secret", _kind_stays(is_secret))
        _check_text(draft, is_optional=True)
    with errors:
        if draft.allowed is not None:
            groups_allowed = _check_allowed(session, draft, is_secret=is_secret, group_id=variable.group_id)
    errors.raise_all()
    before = _audit_fields(variable)
    group_text = allowed_text(groups_allowed)
    is_same = value is None if is_secret else value in (None, variable.value)
    if is_same and group_text == variable.allowed:
        return
    _require_confirmed(draft, is_secret=is_secret)
    variables.keep_version(session, variable_id, username=actor.username[:64], now_ms=now_ms)
    if value is not None and is_secret:
        variable.secret = value
    elif value is not None:
        variable.value = value
    variable.allowed, variable.version = group_text, variable.version + 1
    variable.updated_ms, variable.username = now_ms, actor.username[:64]
    session.flush()
    _delete_older(session, variable)
    changes = (
        _key_fields(variable) | audit.difference(before, _audit_fields(variable)) | _secret_change(draft)
    )
    _record(session, "variable.update", variable, actor=actor, now_ms=now_ms, changes=changes)


def remove_variable(
    session: Session, variable_id: int, *, actor: Actor, now_ms: Millis, loaded: str = ""
) -> None:
    """Delete a variable or secret; its value is kept as a former one. Raises NotFound, PermissionDenied."""
    variable = _lock(session, variable_id, actor)
    require_unchanged(loaded, state_of(variable))
    variables.keep_version(session, variable_id, username=actor.username[:64], now_ms=now_ms)
    _delete_older(session, variable)
    variables.delete_variable(session, variable_id)
    session.expunge(variable)
    changes = _key_fields(variable)
    _record(session, "variable.remove", variable, actor=actor, now_ms=now_ms, changes=changes)


def list_versions(session: Session, variable: Variable) -> list[VariableVersion]:
    """Return the former values of a variable the actor may see, the newest first; of a secret no value."""
    return variables.list_versions(session, variable.group_id, variable.name, limit=VERSIONS_LISTED)


def list_using_jobs(session: Session, variable: Variable, *, actor: Actor) -> list[UsingJob]:
    """Return the first visible jobs whose parameter names a variable or secret and gets this one."""
    visible, is_secret = actor.group_ids(Right.VIEW), variable.is_secret
    search = partial(
        variables.list_jobs_with, session, placeholder(variable.name, is_secret=is_secret), limit=JOBS_LISTED
    )
    if variable.group_id != INSTALLATION:
        rows = search([variable.group_id])
    else:
        if is_secret:
            groups_allowed = allowed_ids(variable.allowed)
            visible = groups_allowed if visible is None else groups_allowed & visible
        rows = search(visible, without=variables.groups_with(session, variable.name, is_secret=is_secret))
    return [UsingJob(*row) for row in rows]


def _lock(session: Session, variable_id: int, actor: Actor) -> Variable:
    variable = variables.lock_variable(session, variable_id)
    if variable is None:
        raise NotFound(MISSING)
    _require(variable, actor, Right.EDIT)
    return variable


def _delete_older(session: Session, variable: Variable) -> None:
    variables.delete_older(
        session, variable.group_id, variable.name, values=VERSIONS_KEPT, secrets=SECRETS_KEPT
    )


def _require(variable: Variable, actor: Actor, right: Right) -> None:
    """Raise NotFound or PermissionDenied without the right; those of the installation are administrators'."""
    if variable.group_id != INSTALLATION:
        require_right(actor, variable.group_id, right, missing=MISSING)
        return
    is_visible = actor.has_anywhere(Right.VIEW) and (not variable.is_secret or visible_ids(variable, actor))
    if not actor.is_admin and not is_visible:
        raise NotFound(MISSING)
    if right is not Right.VIEW:
        require_admin(actor)


def _require_change(session: Session, group_id: int, actor: Actor) -> None:
    if group_id == INSTALLATION:
        require_admin(actor)
        return
    missing = N_("There is no such executor group")
    require_right(actor, group_id, Right.EDIT, missing=missing)
    if group_lists.hold_group(session, group_id) is None:
        raise NotFound(missing)


def _require_confirmed(draft: VariableDraft, *, is_secret: bool) -> None:
    if is_secret and not draft.is_confirmed:
        raise PermissionDenied(UNCONFIRMED)


def _check_text(draft: VariableDraft, *, is_optional: bool = False) -> None:
    if draft.value is not None and draft.secret is not None:
        raise InvalidInput("value", N_("Give either a value or a secret"))
    if draft.secret is not None:
        check_secret(draft.secret)
    elif draft.value is not None:
        check_value(draft.value)
    elif not is_optional:
        raise InvalidInput("value", N_("Give a value or a secret"))


def _check_allowed(session: Session, draft: VariableDraft, *, is_secret: bool, group_id: int) -> list[int]:
    ids = check_allowed(draft.allowed or (), is_secret=is_secret, group_id=group_id)
    existing = group_lists.existing_ids(session, ids)
    missing = [str(group_id) for group_id in ids if group_id not in existing]
    if missing:
        raise ForeignValue("allowed", N_("Not found: id %(ids)s", ids=", ".join(missing)))
    return ids


def _kind_stays(is_secret: bool) -> str:
    if is_secret:
        return N_("A secret cannot become a variable; delete it first")
    return N_("A variable cannot become a secret; delete it first")


def _key_fields(variable: Variable) -> dict[str, object]:
    group = {} if variable.group_id == INSTALLATION else {"job_group": variable.group_id}
    return {"name": variable.name, **group}


def _audit_fields(variable: Variable) -> dict[str, object]:
    value = {} if variable.is_secret else {"value": variable.value}
    return _key_fields(variable) | value | {"groups": sorted(allowed_ids(variable.allowed))}


def _secret_change(draft: VariableDraft) -> dict[str, object]:
    return {} if draft.secret is None else {"secret": audit.BLANKED}


def _record(
    session: Session,
    action: str,
    variable: Variable,
    *,
    actor: Actor,
    now_ms: Millis,
    changes: dict[str, object],
) -> None:
    target = ("variable", variable.id)
    audit.record(session, action, actor=actor, now_ms=now_ms, target=target, changes=changes)
