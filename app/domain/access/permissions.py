"""Permissions: rights of users on executor groups."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from app.domain.text.texts import N_, Text
from app.errors import NotVisible, PermissionDenied


class Right(StrEnum):
    """Right of a normal user on a group. Every right includes ``view``."""

    VIEW = "view"
    #: start, stop, trigger, kill, clear logs
    OPERATE = "operate"
    #: add, change, remove jobs
    EDIT = "edit"
    #: change code that runs on the executor
    GLUE = "glue"


#: rights of a user adopted from XXL-JOB on each group of the `permission` list
ALL_RIGHTS: frozenset[Right] = frozenset(Right)


@dataclass(frozen=True, slots=True)
class Actor:
    """Actor: the user or program that makes a request."""

    user_id: int
    username: str
    is_admin: bool
    #: group id -> rights; empty for admins, who need none
    rights: Mapping[int, frozenset[Right]] = field(default_factory=dict)
    #: address the request came from
    address: str = ""
    #: what the user acts through: ``token NAME``; empty: the console
    via: str = ""

    def may(self, group_id: int, right: Right) -> bool:
        """Whether this actor has ``right`` on the group."""
        return self.is_admin or right in self.rights.get(group_id, frozenset())

    def group_ids(self, right: Right) -> frozenset[int] | None:
        """Return the groups this actor has ``right`` on; None means all."""
        if self.is_admin:
            return None
        return frozenset(group_id for group_id, rights in self.rights.items() if right in rights)

    def has_anywhere(self, right: Right) -> bool:
        """Whether this actor has ``right`` on any group."""
        return self.is_admin or any(right in rights for rights in self.rights.values())


def system_actor(username: str) -> Actor:
    """Return the actor of a command line, which may do everything; no user has the id 0."""
    return Actor(user_id=0, username=username, is_admin=True, address="local")


def unknown_actor(address: str, username: str = "") -> Actor:
    """Return the actor of a request without a login, for the audit: it may do nothing."""
    return Actor(user_id=0, username=username, is_admin=False, address=address)


def parse_rights(text: str) -> frozenset[Right]:
    """Parse a text such as ``view,operate``; unknown words are left out, and any right includes ``view``."""
    right_by_name = {right.value: right for right in Right}
    rights = {right_by_name[word.strip()] for word in text.split(",") if word.strip() in right_by_name}
    return frozenset(rights | {Right.VIEW}) if rights else frozenset()


def rights_text(rights: Iterable[Right]) -> str:
    """Return rights as they are stored, in a fixed order."""
    full_rights = set(rights)
    if full_rights:
        full_rights.add(Right.VIEW)
    return ",".join(right.value for right in Right if right in full_rights)


def rights_by_group(
    group_ids: Iterable[int], stored_rights: Mapping[int, str]
) -> dict[int, frozenset[Right]]:
    """Combine the original's `permission` list with our own rows; a group without a row gives all rights."""
    all_rights = {
        group_id: parse_rights(stored_rights[group_id]) if group_id in stored_rights else ALL_RIGHTS
        for group_id in group_ids
    }
    return {group_id: rights for group_id, rights in all_rights.items() if rights}


def require_right(actor: Actor, group_id: int, right: Right, *, missing: Text) -> None:
    """Raise NotVisible(``missing``) for a group the actor may not see, PermissionDenied without ``right``."""
    if not actor.may(group_id, Right.VIEW):
        raise NotVisible(missing, target=("group", group_id))
    if not actor.may(group_id, right):
        raise PermissionDenied(N_("permission denied"))


def require_admin(actor: Actor) -> None:
    """Raise PermissionDenied unless the actor is an administrator."""
    if not actor.is_admin:
        raise PermissionDenied(N_("permission denied"))
