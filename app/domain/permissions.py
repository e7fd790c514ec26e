"""Who may do what with the jobs of which executor group."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from app.domain.texts import N_, Text
from app.errors import NotFound, PermissionDenied


class Right(StrEnum):
    """What a normal user may do with one group. Every other right includes ``view``."""

    VIEW = "view"
    #: start, stop, trigger, kill, clear logs
    OPERATE = "operate"
    #: add, change, remove jobs
    EDIT = "edit"
    #: change code that runs on the executor
    GLUE = "glue"


#: what an adopted user has on each of the groups of the `permission` list
ALL_RIGHTS: frozenset[Right] = frozenset(Right)


@dataclass(frozen=True, slots=True)
class Actor:
    """The person, or the program, that asks for something."""

    user_id: int
    username: str
    is_admin: bool
    #: group id -> rights; empty for admins, who need none
    rights: Mapping[int, frozenset[Right]] = field(default_factory=dict)
    #: where the request came from
    address: str = ""

    def may(self, group_id: int, right: Right) -> bool:
        """Whether this actor has ``right`` on the group."""
        return self.is_admin or right in self.rights.get(group_id, frozenset())

    def group_ids(self, right: Right) -> frozenset[int] | None:
        """Return the groups this actor has ``right`` on; None means all."""
        if self.is_admin:
            return None
        return frozenset(group_id for group_id, rights in self.rights.items() if right in rights)

    def has_anywhere(self, right: Right) -> bool:
        """Whether this actor has ``right`` on any group at all."""
        return self.is_admin or any(right in rights for rights in self.rights.values())


def system_actor(username: str) -> Actor:
    """Return the actor of a command line, which may do everything; user id 0 is nobody's."""
    return Actor(user_id=0, username=username, is_admin=True, address="local")


def parse_rights(text: str) -> frozenset[Right]:
    """Read ``view,operate``; unknown words are left out, anything at all includes ``view``."""
    known = {right.value: right for right in Right}
    rights = {known[word.strip()] for word in text.split(",") if word.strip() in known}
    return frozenset(rights | {Right.VIEW}) if rights else frozenset()


def rights_text(rights: Iterable[Right]) -> str:
    """Write rights as they are stored, in a fixed order."""
    wanted = set(rights)
    if wanted:
        wanted.add(Right.VIEW)
    return ",".join(right.value for right in Right if right in wanted)


def rights_by_group(permitted: Iterable[int], stored: Mapping[int, str]) -> dict[int, frozenset[Right]]:
    """Combine the original's `permission` list with the finer rows; a group without a row has all rights."""
    found = {
        group_id: parse_rights(stored[group_id]) if group_id in stored else ALL_RIGHTS
        for group_id in permitted
    }
    return {group_id: rights for group_id, rights in found.items() if rights}


def require_right(actor: Actor, group_id: int, right: Right, *, missing: Text) -> None:
    """Raise NotFound with ``missing`` where the group is invisible to the actor, PermissionDenied where only ``right`` lacks."""
    if not actor.may(group_id, Right.VIEW):
        raise NotFound(missing)
    if not actor.may(group_id, right):
        raise PermissionDenied(N_("permission denied"))


def require_admin(actor: Actor) -> None:
    """Raise PermissionDenied unless the actor is an administrator."""
    if not actor.is_admin:
        raise PermissionDenied(N_("permission denied"))
