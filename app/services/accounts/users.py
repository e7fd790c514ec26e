"""Users and their rights. Stricter than XXL-JOB on passwords and on changes of one's own account.

Source: XXL-JOB 2.4.1 (docs/reference/console.md, section 13).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.passwords import check_new_password
from app.domain.access.permissions import (
    ALL_RIGHTS,
    Actor,
    Right,
    parse_rights,
    require_admin,
    rights_by_group,
    rights_text,
)
from app.domain.enums import Role, WeakPassword
from app.domain.text.fingerprints import require_unchanged
from app.domain.text.input_errors import InputErrors
from app.domain.text.limits import required_text
from app.domain.text.texts import N_
from app.errors import Conflict, InvalidInput, NotFound
from app.models.user import User
from app.services.accounts import login_throttle, passwords
from app.services.accounts.password_list import common_passwords
from app.services.auditing import audit
from app.store.accounts import api_tokens, rights, saved_views, sessions, users
from app.store.accounts.users import UserFilter
from app.store.base.paging import Page
from app.store.executors import listing as group_lists
from app.store.jobs import favourites

MISSING = N_("User id is invalid")
TAKEN = N_("The user name is taken")
MANAGED = N_("The identity provider manages the password of this user")
NAME_MIN, NAME_MAX = 4, 20
PERMISSION_MAX = 255
#: rights granted by default; GLUE, which runs code on executors, must be granted explicitly
NEW_RIGHTS = frozenset({Right.VIEW, Right.OPERATE, Right.EDIT})


@dataclass(frozen=True, slots=True)
class UserDraft:
    """A user as entered in the form."""

    username: str = ""
    #: empty: unchanged, for an existing user
    password: str = ""
    role: int = int(Role.NORMAL)
    #: groups visible to a normal user
    group_ids: tuple[int, ...] = ()
    #: whether an existing user keeps role or groups, whatever the draft has
    keeps_role: bool = False
    keeps_groups: bool = False
    #: rights per group; a group without an entry keeps its rights, a new one gets NEW_RIGHTS
    rights: Mapping[int, frozenset[Right]] = field(default_factory=dict)
    #: None: unchanged
    disabled: bool | None = False
    #: the password must be changed at the next login
    must_change: bool = False
    #: fingerprint of the ``state_of`` that the form was filled from; empty: not compared
    loaded: str = ""


def list_users(
    session: Session, user_filter: UserFilter, *, actor: Actor, start: int = 0, length: int = 10
) -> Page[User]:
    """Return a page of users; administrators only."""
    require_admin(actor)
    return users.list_users(session, user_filter, start=start, length=length)


def list_after(
    session: Session, user_filter: UserFilter, after: tuple[str, int], *, actor: Actor, limit: int
) -> list[User]:
    """Return the users behind ``after`` (name and id; ``("", 0)``: all) by name. Administrators only."""
    require_admin(actor)
    return users.list_after(session, user_filter, after, limit=limit)


def granted_rights(session: Session, rows: Sequence[User]) -> dict[int, dict[int, frozenset[Right]]]:
    """Return the rights of users: user id -> group id -> rights; an administrator needs none."""
    rights_by_user = rights.rights_of_users(session, [user.id for user in rows])
    return {
        user.id: {} if user.is_admin else rights_by_group(user.group_ids, rights_by_user.get(user.id, {}))
        for user in rows
    }


def get_user(session: Session, user_id: int, *, actor: Actor) -> User:
    """Return a user. Other users for administrators only."""
    if user_id != actor.user_id:
        require_admin(actor)
    user = users.find_user(session, user_id)
    if user is None:
        raise NotFound(MISSING)
    return user


def stored_rights(session: Session, user_id: int, *, actor: Actor) -> dict[int, str]:
    """Return the stored rights of a user: group id -> ``view,operate``."""
    get_user(session, user_id, actor=actor)
    return rights.rights_of(session, user_id)


def add_user(session: Session, draft: UserDraft, *, actor: Actor, now_ms: Millis) -> int:
    """Store a new user; return the id. Administrators only."""
    require_admin(actor)
    username, new_hash, errors = draft.username.strip(), "", InputErrors()
    with errors:
        _check_name(username)
    with errors:
        check_new_password(draft.password, username=username, common=common_passwords())
    if not errors.errors:
        # The hash is computed before the first statement, because it takes long.
        new_hash = passwords.hash_password(draft.password, must_change=draft.must_change)
    with errors:
        if users.is_name_taken(session, username):
            raise InvalidInput("username", TAKEN)
    draft, changes = _with_all_rights(draft, {}), dict[str, object](username=username)
    user = User(
        username=username, password=new_hash, disabled=int(bool(draft.disabled)), language="", time_zone=""
    )
    with errors:
        changes |= _apply_rights(session, user, draft)
    errors.raise_all()
    if not users.insert_user(session, user):
        raise InvalidInput("username", TAKEN)
    rights.replace_rights(session, user.id, _rows(draft))
    audit.record(session, "user.add", actor=actor, now_ms=now_ms, target=("user", user.id), changes=changes)
    return user.id


def update_user(session: Session, user_id: int, draft: UserDraft, *, actor: Actor, now_ms: Millis) -> None:
    """Change another user; a new password, role or state ends the logins. Administrators only."""
    require_admin(actor)
    _refuse_own(user_id, actor)
    new_hash = None
    if draft.password.strip():
        check_new_password(draft.password, username=draft.username, common=common_passwords())
        new_hash = passwords.hash_password(draft.password, must_change=draft.must_change)
    demote = not draft.keeps_role and draft.role != Role.ADMIN
    user = _lock_other(session, user_id, demote=demote or bool(draft.disabled))
    # in XXL-JOB any role but 1 is a normal user
    role = int(user.is_admin) if draft.keeps_role else draft.role
    group_ids = tuple(user.group_ids) if draft.keeps_groups else draft.group_ids
    draft = replace(draft, role=role, group_ids=group_ids)
    if new_hash is not None and user.identity:
        raise InvalidInput("password", MANAGED)
    before = state_of(session, user)
    require_unchanged(draft.loaded, before)
    draft = _with_all_rights(_without_removed_groups(session, user, draft), _current_rights(session, user))
    _apply_rights(session, user, draft)
    user.disabled = user.disabled if draft.disabled is None else int(draft.disabled)
    rights.replace_rights(session, user.id, _rows(draft))
    if new_hash is not None:
        user.password, user.weak_password = new_hash, WeakPassword.NO
        login_throttle.forget_failures(session, user.username)
    session.flush()
    changes = audit.difference(before, state_of(session, user))
    if new_hash is not None or changes.keys() & {"role", "disabled"}:
        sessions.delete_of_user(session, user.id)
    if new_hash is not None:
        changes["password"] = ["changed", "changed"]
    audit.record(
        session, "user.update", actor=actor, now_ms=now_ms, target=("user", user.id), changes=changes
    )


def remove_user(session: Session, user_id: int, *, actor: Actor, now_ms: Millis) -> None:
    """Delete another user with rights and logins. Administrators only."""
    require_admin(actor)
    _refuse_own(user_id, actor)
    user = _lock_other(session, user_id, demote=True)
    _forget(session, user)
    changes = {"username": user.username}
    users.delete_user(session, user.id)
    session.expunge(user)
    audit.record(
        session, "user.remove", actor=actor, now_ms=now_ms, target=("user", user_id), changes=changes
    )


def change_preferences(session: Session, *, language: str, time_zone: str, actor: Actor) -> None:
    """Store the actor's language and time zone; empty: the configured ones."""
    user = users.find_user(session, actor.user_id)
    if user is None:
        raise NotFound(MISSING)
    user.language, user.time_zone = language, time_zone


def set_password(session: Session, draft: UserDraft, *, actor: Actor, now_ms: Millis) -> None:
    """Set a user's password, enable the user and end the logins; for the command line. Administrators only.

    Reads name, password and ``must_change`` of the draft.
    """
    require_admin(actor)
    username = draft.username
    check_new_password(draft.password, username=username, common=common_passwords())
    new_hash = passwords.hash_password(draft.password, must_change=draft.must_change)
    user = users.lock_by_name(session, username)
    if user is None:
        raise NotFound(N_("There is no user %(name)s", name=username))
    if user.identity:
        raise Conflict(MANAGED)
    user.password, user.disabled, user.weak_password = new_hash, 0, WeakPassword.NO
    sessions.delete_of_user(session, user.id)
    login_throttle.forget_failures(session, username)
    audit.record(session, "user.password", actor=actor, now_ms=now_ms, target=("user", user.id))


def _check_name(name: str) -> None:
    required_text("username", name, NAME_MAX, N_("Enter a user name"))
    if len(name) < NAME_MIN:
        raise InvalidInput(
            "username",
            N_("The user name must have %(low)s to %(high)s characters", low=NAME_MIN, high=NAME_MAX),
        )
    if not is_valid_name(name):
        raise InvalidInput("username", N_("The user name is invalid"))


def is_valid_name(name: str) -> bool:
    """Whether a user name has allowed characters only."""
    return not any(
        character.isspace() or not character.isprintable() or character in "<>\"'&" for character in name
    )


def grant(session: Session, user: User, draft: UserDraft) -> None:
    """Set role, groups and rights of a user to those of a draft, which names the rights of each group."""
    _apply_rights(session, user, draft)
    rights.replace_rights(session, user.id, _rows(draft))


def state_of(session: Session, user: User) -> dict[str, object]:
    """Return the fields of a user that administrators change, as they are audited."""
    return {
        "role": user.role,
        "permission": user.permission or "",
        "rights": rights.rights_of(session, user.id),
        "disabled": bool(user.disabled),
    }


def _refuse_own(user_id: int, actor: Actor) -> None:
    if user_id == actor.user_id:
        raise Conflict(N_("The account you are logged in with cannot be changed here"))


def _lock_other(session: Session, user_id: int, *, demote: bool) -> User:
    """Return the user, locked; raises Conflict for the last enabled administrator, if ``demote``."""
    admins = {user.id for user in users.lock_enabled_admins(session)} if demote else set()
    user = users.lock_user(session, user_id)
    if user is None:
        raise NotFound(MISSING)
    if admins == {user.id}:
        raise Conflict(N_("The last administrator cannot be changed or removed"))
    return user


def _apply_rights(session: Session, user: User, draft: UserDraft) -> dict[str, object]:
    if draft.role not in list(Role):
        raise InvalidInput("role", N_("The role is invalid"))
    group_ids = list(dict.fromkeys(draft.group_ids)) if draft.role == Role.NORMAL else []
    unknown = set(group_ids) - group_lists.existing_ids(session, group_ids)
    if unknown:
        raise InvalidInput("permission", N_("There is no executor group with id %(id)s", id=min(unknown)))
    # For XXL-JOB a group in the list is one with all rights.
    permission = ",".join(str(group_id) for group_id in group_ids if draft.rights[group_id])
    if len(permission) > PERMISSION_MAX:
        raise InvalidInput(
            "permission",
            N_(
                "Too many executor groups for one user: their ids exceed %(limit)s characters",
                limit=PERMISSION_MAX,
            ),
        )
    user.role, user.permission = draft.role, permission
    return {"role": draft.role, "permission": permission, "rights": _rows(draft)}


def _without_removed_groups(session: Session, user: User, draft: UserDraft) -> UserDraft:
    """Return the draft without ids of deleted groups, which a Java admin leaves behind."""
    old_ids = set(draft.group_ids) & set(user.group_ids)
    removed_ids = old_ids - group_lists.existing_ids(session, old_ids)
    return replace(draft, group_ids=tuple(own_id for own_id in draft.group_ids if own_id not in removed_ids))


def _with_all_rights(draft: UserDraft, current: Mapping[int, frozenset[Right]]) -> UserDraft:
    """Return the draft with rights for all its groups; by default the current rights, or NEW_RIGHTS."""
    defaults = {group_id: current.get(group_id, NEW_RIGHTS) for group_id in draft.group_ids}
    return replace(draft, rights={**defaults, **draft.rights})


def _current_rights(session: Session, user: User) -> dict[int, frozenset[Right]]:
    """Return the rights of a normal user by group; no stored row means all rights, an empty one none."""
    texts = {} if user.is_admin else rights.rights_of(session, user.id)
    group_ids = [] if user.is_admin else user.group_ids
    return {
        group_id: parse_rights(texts[group_id]) if group_id in texts else ALL_RIGHTS for group_id in group_ids
    }


def _rows(draft: UserDraft) -> dict[int, str]:
    """Return the rights to store, of the groups with some but not all rights."""
    if draft.role != Role.NORMAL:
        return {}
    entries = {group_id: draft.rights[group_id] for group_id in draft.group_ids if group_id in draft.rights}
    return {
        group_id: rights_text(group_rights)
        for group_id, group_rights in entries.items()
        if group_rights and len(group_rights | {Right.VIEW}) < len(Right)
    }


def _forget(session: Session, user: User) -> None:
    sessions.delete_of_user(session, user.id)
    rights.replace_rights(session, user.id, {})
    favourites.delete_of_user(session, user.id)
    saved_views.delete_of_user(session, user.id)
    api_tokens.delete_of_user(session, user.id)
    login_throttle.forget_failures(session, user.username)
