"""Actions of the executor API: callback, registry, registryRemove, and our extensions.

Source: docs/reference/protocol.md, section 2.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.blobs.blob_store import StoreFull
from app.clock import now_ms
from app.database.engine import transact
from app.domain.executors.token_scope import TokenScope
from app.errors import Conflict, InvalidInput, NotFound, PermissionDenied
from app.pipeline import registration
from app.services.archive.tails import TailStore
from app.services.executors.registration_check import RegistrationChecks
from app.services.runs.callbacks import CallbackStore, StoreResult
from app.settings.config import Network
from executor_client.wire.callbacks import CallbackBatch, MissingResult, parse_callbacks
from executor_client.wire.capabilities import Capabilities
from executor_client.wire.lenient_json import load_json
from executor_client.wire.log_tails import TAIL_MAX_BYTES, LogTail
from executor_client.wire.protocol import FAIL, MSG_ILLEGAL_ARGUMENT, SUCCESS, RegistryRequest, Reply
from executor_client.wire.run_reports import CONSOLE_WORDS, NO_GROUP, SEND_SCHEMAS

logger = logging.getLogger(__name__)

#: reply for the run of a group that requires another token
NOT_OF_TOKEN = "the access token is not that of the run's executor group"
#: number of refused elements that the log names per request
REFUSED_NAMED = 3


class CallbackAnswer(NamedTuple):
    """Reply to a callback, and the log ids of the runs in it that were not stored."""

    reply: Reply
    #: runs of groups that the token does not act for
    foreign: Sequence[int] = ()
    #: log ids that belong to other runs now, with AppName
    other_runs: Sequence[tuple[int, str]] = ()
    #: elements without a result
    missing: Sequence[MissingResult] = ()


def callback(body: bytes, store: CallbackStore, scope: TokenScope) -> CallbackAnswer:
    """Store results in any form that executors of 2.2 to 3.4 send; skip elements that cannot be used.

    Those are unreadable ones, those without a result, and runs of groups the token does not act for.
    """
    try:
        batch = parse_callbacks(body)
    except ValueError as exc:
        logger.warning("callback refused bytes=%s reason=%s", len(body), exc)
        return CallbackAnswer(Reply(FAIL, f"callback refused: {exc}"))
    result = store.store(batch.items, scope)
    reasons = [*batch.rejections, *(f"logId {item.log_id}: {item.reason}" for item in batch.missing)]
    if reasons:
        reasons_text = "; ".join(reasons[:REFUSED_NAMED])
        logger.warning("callback elements refused count=%s reasons=%s", len(reasons), reasons_text)
    return answer_to(batch, result)


def answer_to(batch: CallbackBatch, result: StoreResult) -> CallbackAnswer:
    """Return the answer to stored results: a refusal if one is foreign, or if none can be read.

    The others of a refused batch are stored. Results of other runs are accepted: a client would only send
    them again.
    """
    foreign, other_runs = result.foreign, result.other_runs
    unusable = [*batch.rejections, *(f"{NOT_OF_TOKEN}, logId {log_id}" for log_id in foreign)]
    if foreign or (unusable and not batch.items):
        more = len(unusable) - 1
        text = unusable[0] + (f" (and {more} more)" if more else "")
        return CallbackAnswer(Reply(FAIL, f"callback refused: {text}"), foreign, other_runs, batch.missing)
    return CallbackAnswer(Reply(SUCCESS), foreign, other_runs, batch.missing)


def read_registration(body: bytes) -> RegistryRequest:
    """Parse a registration; raises InvalidInput, for an empty body with XXL-JOB's message.

    The token is checked for the returned name, and the database finds rows by it. Therefore surrounding
    blanks, which MySQL's comparison ignores, are removed, and names with invisible characters are refused.
    """
    if not body.strip() or body.strip() == b"null":
        raise InvalidInput("registryKey", MSG_ILLEGAL_ARGUMENT)
    try:
        request = RegistryRequest.from_wire(load_json(body))
    except ValueError as exc:
        raise InvalidInput("registryKey", f"registration refused: {exc}") from exc
    app_name = request.registry_key.strip()
    if not app_name.isprintable():
        raise InvalidInput(
            "registryKey", "registration refused: registryKey contains invisible characters or other blanks"
        )
    return replace(request, registry_group=request.registry_group.strip(), registry_key=app_name)


class RegistryAnswer(NamedTuple):
    """Reply to a registration, and the words of CONSOLE_HEADER for an executor of this project."""

    reply: Reply
    words: tuple[str, ...] = (CONSOLE_WORDS,)


def registry(
    request: RegistryRequest, capabilities: Capabilities, networks: tuple[Network, ...]
) -> RegistryAnswer:
    """Register an instance or refresh its heartbeat; dispatch uses a new address from the commit on."""
    try:
        registration.check_registration(request, networks)
        words = transact(lambda session: _register(session, request, capabilities))
    except InvalidInput as exc:
        return RegistryAnswer(Reply(FAIL, exc.message))
    except Conflict as exc:
        return RegistryAnswer(Reply(FAIL, str(exc)))
    return RegistryAnswer(Reply(SUCCESS), words)


def _register(session: Session, request: RegistryRequest, capabilities: Capabilities) -> tuple[str, ...]:
    """Store a registration; return the words of CONSOLE_HEADER."""
    result = registration.register(session, request, capabilities, now_ms=now_ms())
    needs_schemas, lacks_group = result.needs_schemas, bool(capabilities.boot_id) and not result.has_group
    return CONSOLE_WORDS, *([SEND_SCHEMAS] if needs_schemas else []), *([NO_GROUP] if lacks_group else [])


def registry_check(
    request: RegistryRequest, token: str, networks: tuple[Network, ...], checks: RegistrationChecks
) -> Reply:
    """Report the outcome of a registration without storing it."""
    try:
        registration.check_registration(request, networks)
        return Reply(SUCCESS, None, checks.check(request, token).to_wire())
    except InvalidInput as exc:
        return Reply(FAIL, exc.message)
    except Conflict as exc:
        return Reply(FAIL, str(exc))


def registry_remove(request: RegistryRequest) -> Reply:
    """Deregister an instance; an unknown one is not an error."""
    if not (
        request.registry_group.strip() and request.registry_key.strip() and request.registry_value.strip()
    ):
        return Reply(FAIL, MSG_ILLEGAL_ARGUMENT)
    transact(lambda session: registration.deregister(session, request, now_ms=now_ms()))
    return Reply(SUCCESS)


def log_tail(body: bytes, tails: TailStore, scope: TokenScope) -> Reply:
    """Store last lines of a log; the content of the reply has the line that is wanted next, 0: none."""
    if len(body) > TAIL_MAX_BYTES:
        raise InvalidInput("lines", f"the body is longer than {TAIL_MAX_BYTES} bytes")
    try:
        tail = LogTail.from_wire(load_json(body))
    except ValueError as exc:
        raise InvalidInput("lines", f"log tail refused: {exc}") from exc
    try:
        return Reply(SUCCESS, None, {"fromLineNum": tails.store(tail, scope)})
    except NotFound as exc:
        return Reply(HTTPStatus.NOT_FOUND, str(exc))
    except PermissionDenied as exc:
        return Reply(HTTPStatus.FORBIDDEN, str(exc))
    except (Conflict, StoreFull) as exc:
        return Reply(FAIL, f"log tail not stored: {exc}")
