"""Audit of refused executor requests."""

import logging
from collections.abc import Sequence
from typing import Any

from app.api.actions import REFUSED_NAMED, CallbackAnswer
from app.clock import now_ms
from app.domain.access.permissions import unknown_actor
from app.domain.executors.token_scope import TokenScope
from app.services.auditing import refusals
from app.services.runs.callbacks import app_names_of
from executor_client.wire.callbacks import MissingResult
from executor_client.wire.lenient_json import load_json
from executor_client.wire.protocol import (
    APPNAME_HEADER,
    FAIL,
    MSG_BAD_TOKEN,
    MSG_NO_TOKEN,
    RegistryRequest,
    Reply,
)

logger = logging.getLogger(__name__)

#: refusal message -> audit action, for a missing and a wrong token
TOKEN_ACTIONS = {MSG_NO_TOKEN: "refused.no_token", MSG_BAD_TOKEN: "refused.token"}
#: key in the WSGI environment: app name of a registration whose body was read
APP_NAME = "xxl_job.app_name"
_APP_NAME_KEY = "HTTP_" + APPNAME_HEADER.upper().replace("-", "_")
#: longest body, in bytes, that is searched for the app name of a registration without a valid token
UNCHECKED_BODY_MAX = 4_096
APP_NAME_MAX = 64


def note_refusal(action: str, reply: Reply, environ: dict[str, Any]) -> None:
    """Record a reply that refuses the token, or the reason why an instance is not registered."""
    if reply.code != FAIL:
        return
    app_name = _claimed_name(environ) if action == "registry" else ""
    claim = {"app_name": app_name[:APP_NAME_MAX]} if app_name else {}
    if reply.msg in TOKEN_ACTIONS:
        note(TOKEN_ACTIONS[reply.msg], environ, **claim)
    elif action == "registry":
        note("refused.registration", environ, reason=reply.msg, **claim)


def _claimed_name(environ: dict[str, Any]) -> str:
    """Return the app name of a refused registration: from its body, or the header of some clients."""
    if APP_NAME in environ:
        return str(environ[APP_NAME])
    length = environ.get("CONTENT_LENGTH") or "0"
    if length.isdecimal() and 0 < int(length) <= UNCHECKED_BODY_MAX:
        try:
            return RegistryRequest.from_wire(load_json(environ["wsgi.input"].read(int(length)))).registry_key
        except (ValueError, OSError):
            pass
    return str(environ.get(_APP_NAME_KEY) or "").encode("latin-1", "replace").decode("utf-8", "replace")


def note_foreign_runs(environ: dict[str, Any], log_ids: Sequence[int]) -> None:
    """Record that a request reported runs of groups its token does not act for; they were not stored."""
    log_id_text = ", ".join(str(log_id) for log_id in log_ids[:REFUSED_NAMED])
    note("refused.token", environ, runs=len(log_ids), log_ids=log_id_text)
    logger.warning(
        "callbacks refused, the runs belong to other groups count=%s log_ids=%s", len(log_ids), log_id_text
    )


def note_missing(environ: dict[str, Any], items: Sequence[MissingResult], scope: TokenScope) -> None:
    """Record that a request reported runs without a result, per AppName of their groups."""
    names = app_names_of({item.log_id for item in items}, scope)
    for app_name in dict.fromkeys(names.values()):
        named_items = [item for item in items if names.get(item.log_id) == app_name]
        log_id_text = ", ".join(str(item.log_id) for item in named_items[:REFUSED_NAMED])
        detail = {"reason": named_items[0].reason, "runs": len(named_items), "log_ids": log_id_text}
        note("refused.no_result", environ, app_name=app_name, **detail)


def note_not_stored(environ: dict[str, Any], answer: CallbackAnswer, scope: TokenScope) -> None:
    """Record the runs that a request reported and that were not stored."""
    if answer.foreign:
        note_foreign_runs(environ, answer.foreign)
    for app_name in {name: None for _, name in answer.other_runs}:
        log_ids = [log_id for log_id, name in answer.other_runs if name == app_name]
        log_id_text = ", ".join(str(log_id) for log_id in log_ids[:REFUSED_NAMED])
        note("refused.other_run", environ, app_name=app_name, runs=len(log_ids), log_ids=log_id_text)
    if answer.missing:
        note_missing(environ, answer.missing, scope)


def note(action: str, environ: dict[str, Any], **detail: Any) -> None:
    """Record that a request of an executor is refused."""
    actor = unknown_actor(environ.get("REMOTE_ADDR", ""))
    path = environ.get("PATH_INFO", "")
    refusals.note(action, actor, now_ms=now_ms(), detail={"path": path, **detail})
