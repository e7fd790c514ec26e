"""Refused requests of executors: what the audit has about each."""

import logging
from collections.abc import Sequence
from typing import Any

from app.api.actions import REFUSED_NAMED
from app.clock import now_ms
from app.domain.permissions import unknown_actor
from app.services import refusals
from executor_client.protocol import FAIL, MSG_BAD_TOKEN, Reply

logger = logging.getLogger(__name__)


def note_refusal(action: str, reply: Reply, environ: dict[str, Any]) -> None:
    """Record a reply that refuses the token, or the reason why an instance is not registered."""
    if reply.code == FAIL and reply.msg == MSG_BAD_TOKEN:
        note("refused.token", environ)
    elif reply.code == FAIL and action == "registry":
        note("refused.registration", environ, reason=reply.msg)


def note_foreign_runs(environ: dict[str, Any], log_ids: Sequence[int]) -> None:
    """Record that a request reported runs of groups its token does not act for; they were not stored."""
    named = ", ".join(str(log_id) for log_id in log_ids[:REFUSED_NAMED])
    note("refused.token", environ, runs=len(log_ids), log_ids=named)
    logger.warning(
        "callbacks refused, the runs belong to other groups count=%s log_ids=%s", len(log_ids), named
    )


def note(action: str, environ: dict[str, Any], **detail: Any) -> None:
    """Record that a request of an executor is refused."""
    actor = unknown_actor(environ.get("REMOTE_ADDR", ""))
    path = environ.get("PATH_INFO", "")
    refusals.note(action, actor, now_ms=now_ms(), detail={"path": path, **detail})
