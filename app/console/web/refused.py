"""Refused requests of the console: what the audit has about each."""

from collections.abc import Mapping
from typing import Any

from flask import request

from app.clock import now_ms
from app.console.web.current import current_user, remote_address
from app.domain.permissions import Actor, unknown_actor
from app.errors import ForeignValue, InvalidInput, NotVisible, PermissionDenied, XxlJobError
from app.services import refusals

#: parameters that name an object; their whole numbers are audited, no other value
OBJECT_PARAMETERS = ("id", "jobId", "logId", "jobGroup", "job_group")


def note(action: str, *, target: tuple[str, int] = ("", 0), detail: Mapping[str, Any] | None = None) -> None:
    """Record that the current request is refused."""
    user = current_user()
    _note(action, user.actor if user is not None else unknown_actor(remote_address()), target, detail or {})


def note_origin() -> None:
    """Record a request of another site; its user is not read, since that would keep the login alive."""
    _note(
        "refused.origin",
        unknown_actor(remote_address()),
        ("", 0),
        {"origin": request.headers.get("Origin", "")},
    )


def _note(action: str, actor: Actor, target: tuple[str, int], detail: Mapping[str, Any]) -> None:
    shown = {"method": request.method, "path": request.script_root + request.path}
    shown |= _objects()
    refusals.note(action, actor, now_ms=now_ms(), target=target, detail={**shown, **detail})


def note_error(error: XxlJobError, *, for_admins: bool = False) -> None:
    """Record an error that is a refusal; ``for_admins``: the endpoint is for administrators only."""
    if isinstance(error, NotVisible):
        note("refused.object", target=error.target)
    elif isinstance(error, PermissionDenied):
        note("refused.admin" if for_admins else "refused.right")
    elif isinstance(error, InvalidInput):
        for each in error.each:
            if isinstance(each, ForeignValue):
                note("refused.value", detail={"field": each.field, "reason": str(each.message)})


def _objects() -> dict[str, str]:
    """Return the ids in the parameters; a form only if it has been read, since a refused one is not."""
    form = request.form if "form" in vars(request) else {}
    named = {name: request.args.get(name) or form.get(name) or "" for name in OBJECT_PARAMETERS}
    return {name: text for name, text in named.items() if text.isdecimal() and len(text) < 20}
