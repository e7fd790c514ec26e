"""Request to plan or apply a document, and the rights it needs on jobs."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.access.permissions import Actor, Right
from app.domain.code.document import JOBS, Document, place
from app.domain.text.texts import N_
from app.errors import InvalidInput, PermissionDenied
from app.settings.config import Network

_DENIED = {
    Right.VIEW: N_("You have no permission to see jobs of this executor group"),
    Right.EDIT: N_("You have no permission to edit jobs of this executor group"),
    Right.OPERATE: N_("You have no permission to start and stop jobs of this executor group"),
    Right.GLUE: N_("You have no permission to write code for this executor group"),
}


@dataclass(frozen=True, slots=True)
class CodeRequest:
    """What is to be planned or applied."""

    document: Document
    actor: Actor
    #: managed objects to delete: keys of jobs, ``group:<AppName>`` and ``channel:<name>``
    prune: Sequence[str] = ()
    #: networks the addresses of a manual group must lie in
    networks: tuple[Network, ...] = ()
    #: refuse jobs that a Java admin on the same database cannot read
    readable_by_java: bool = False
    #: an import of the console: it changes values, and code owns what it owned before
    is_import: bool = False


def require_on_job(actor: Actor, key: str, group_id: int, right: Right, *, is_import: bool) -> None:
    """Raise PermissionDenied without a right; for an import InvalidInput, so that the other errors follow."""
    if actor.may(group_id, right):
        return
    if is_import:
        raise InvalidInput("", _DENIED[right])
    raise PermissionDenied(f"{place(JOBS, key)}: {_DENIED[right]}")
