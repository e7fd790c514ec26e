"""Actions of the executor API: callback, registry and registryRemove.

Source: docs/reference/protocol.md, section 2.
"""

import logging

from app.clock import now_ms
from app.config import Network
from app.db import transact
from app.errors import Conflict, InvalidInput
from app.pipeline import registration
from app.services.runs.callbacks import CallbackStore
from executor_client.callback_protocol import CallbackBatch, parse_callbacks
from executor_client.lenient_json import load_json
from executor_client.protocol import (
    FAIL,
    MSG_ILLEGAL_ARGUMENT,
    SUCCESS,
    Capabilities,
    RegistryRequest,
    Reply,
)

logger = logging.getLogger(__name__)


def callback(body: bytes, store: CallbackStore) -> Reply:
    """Store results in any form that executors of 2.2 to 3.4 send; skip unreadable elements."""
    try:
        batch = parse_callbacks(body)
    except ValueError as exc:
        return Reply(FAIL, f"callback refused: {exc}")
    store.store(batch.items)
    for reason in batch.rejected:
        logger.warning("callback element refused reason=%s", reason)
    if batch.rejected and not batch.items:
        return Reply(FAIL, f"callback refused: {_first_reason(batch)}")
    return Reply(SUCCESS)


def _first_reason(batch: CallbackBatch) -> str:
    more = len(batch.rejected) - 1
    return batch.rejected[0] + (f" (and {more} more)" if more else "")


def read_registration(body: bytes) -> RegistryRequest:
    """Parse a registration; raises InvalidInput, for an empty body with XXL-JOB's message."""
    if not body.strip() or body.strip() == b"null":
        raise InvalidInput("registryKey", MSG_ILLEGAL_ARGUMENT)
    try:
        return RegistryRequest.from_wire(load_json(body))
    except ValueError as exc:
        raise InvalidInput("registryKey", f"registration refused: {exc}") from exc


def registry(request: RegistryRequest, capabilities: Capabilities, networks: tuple[Network, ...]) -> Reply:
    """Register an instance or refresh its heartbeat; dispatch uses a new address from the commit on."""
    try:
        registration.check_registration(request, networks)
        transact(lambda session: registration.register(session, request, capabilities, now_ms=now_ms()))
    except InvalidInput as exc:
        return Reply(FAIL, exc.message)
    except Conflict as exc:
        return Reply(FAIL, str(exc))
    return Reply(SUCCESS)


def registry_remove(request: RegistryRequest) -> Reply:
    """Deregister an instance; an unknown one is not an error."""
    if not (
        request.registry_group.strip() and request.registry_key.strip() and request.registry_value.strip()
    ):
        return Reply(FAIL, MSG_ILLEGAL_ARGUMENT)
    transact(lambda session: registration.deregister(session, request, now_ms=now_ms()))
    return Reply(SUCCESS)
