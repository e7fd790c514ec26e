"""Refused requests of executors: what the audit has about each."""

from typing import Any

from app.clock import now_ms
from app.domain.permissions import Actor
from app.services import refusals
from executor_client.protocol import FAIL, MSG_BAD_TOKEN, Reply


def note_refusal(action: str, reply: Reply, environ: dict[str, Any]) -> None:
    """Record a reply that refuses the token, or the reason why an instance is not registered."""
    if reply.code == FAIL and reply.msg == MSG_BAD_TOKEN:
        note("refused.token", environ)
    elif reply.code == FAIL and action == "registry":
        note("refused.registration", environ, reason=reply.msg)


def note(action: str, environ: dict[str, Any], **detail: Any) -> None:
    """Record that a request of an executor is refused."""
    actor = Actor(user_id=0, username="", is_admin=False, address=environ.get("REMOTE_ADDR", ""))
    path = environ.get("PATH_INFO", "")
    refusals.note(action, actor, now_ms=now_ms(), detail={"path": path, **detail})
