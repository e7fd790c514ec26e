"""Rights on the jobs of a document, by the group of each job."""

from app.domain.access.permissions import Actor, Right
from app.domain.code.document import JOBS, place
from app.domain.text.texts import N_
from app.errors import InvalidInput, PermissionDenied

#: what a job needs of the actor, in words
_NEEDED = {
    Right.VIEW: "see jobs of this executor group",
    Right.EDIT: "edit jobs of this executor group",
    Right.OPERATE: "start and stop jobs of this executor group",
    Right.GLUE: "write code for this executor group",
}
#: the same as errors of an import
_DENIED = {
    Right.VIEW: N_("You have no permission to see jobs of this executor group"),
    Right.EDIT: N_("You have no permission to edit jobs of this executor group"),
    Right.OPERATE: N_("You have no permission to start and stop jobs of this executor group"),
    Right.GLUE: N_("You have no permission to write code for this executor group"),
}


def require_on_job(actor: Actor, key: str, group_id: int, right: Right, *, is_import: bool) -> None:
    """Raise PermissionDenied without a right; for an import InvalidInput, so that the other errors follow."""
    if actor.may(group_id, right):
        return
    if is_import:
        raise InvalidInput("", _DENIED[right])
    raise PermissionDenied(f"{place(JOBS, key)}: no permission to {_NEEDED[right]}")
