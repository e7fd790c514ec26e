"""Refused requests of the console: details of their audit entries."""

from flask import request

from app.clock import now_ms
from app.console.web.current import current_user, remote_address
from app.domain.access.permissions import Actor, unknown_actor
from app.errors import XxlJobError
from app.services.auditing import refusals

#: parameters that name an object; their whole numbers are audited, no other value
OBJECT_PARAMETERS = ("id", "jobId", "logId", "jobGroup", "job_group")


def note(action: str) -> None:
    """Record that the current request is refused."""
    refusals.note(action, _actor(), now_ms=now_ms(), detail=_detail())


def note_origin() -> None:
    """Record a request of another site; its user is not read, since that would keep the login alive."""
    detail = _detail() | {"origin": request.headers.get("Origin", "")}
    refusals.note("refused.origin", unknown_actor(remote_address()), now_ms=now_ms(), detail=detail)


def note_error(error: XxlJobError, *, for_admins: bool = False) -> None:
    """Record an error if it is a refusal; ``for_admins``: the endpoint is for administrators only."""
    refusals.note_error(error, _actor(), now_ms=now_ms(), detail=_detail(), for_admins=for_admins)


def _actor() -> Actor:
    user = current_user()
    return user.actor if user is not None else unknown_actor(remote_address())


def _detail() -> dict[str, str]:
    return {"method": request.method, "path": request.script_root + request.path} | _objects()


def _objects() -> dict[str, str]:
    """Return the ids in the parameters; a form only if it has been read, since a refused one is not."""
    form = request.form if "form" in vars(request) else {}
    values = {name: request.args.get(name) or form.get(name) or "" for name in OBJECT_PARAMETERS}
    return {name: text for name, text in values.items() if text.isdecimal() and len(text) < 20}
