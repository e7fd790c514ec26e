"""The three things executors ask: register, deregister, hand over results. spec/protocol.md, section 2."""

import logging
from collections.abc import Sequence

from app.clock import now_ms
from app.config import Network
from app.db import transact
from app.domain.enums import HandleCode
from app.errors import Conflict, InvalidInput
from app.group_commit import GroupCommit
from app.pipeline import complete, registration
from app.services.runs.kills import kills
from executor_client.callback_protocol import CallbackBatch, CallbackItem, parse_callbacks
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


class CallbackStore:
    """Stores results before they are answered; those of many requests in one transaction."""

    def __init__(self) -> None:
        self._writer = GroupCommit[tuple[CallbackItem, ...], int]("callbacks", _store)

    def store(self, items: tuple[CallbackItem, ...]) -> int:
        """Store results and return how many of them ended a run; returns after the commit."""
        kills.wait([item.log_id for item in items if item.handle_code == HandleCode.SUCCESS])
        return self._writer.submit(items) if items else 0

    def close(self) -> None:
        """Store what waits, then end."""
        self._writer.close()


def _store(batches: Sequence[tuple[CallbackItem, ...]]) -> list[int]:
    at_ms = now_ms()
    items = [item for batch in batches for item in batch if item.handle_code != HandleCode.NONE]
    results = [
        complete.callback_result(item.log_id, item.handle_code, item.handle_msg)
        for item in items
        if 0 < item.log_id < 2**63
    ]
    done = transact(lambda session: complete.complete(session, results, now_ms=at_ms))
    for item in items:
        if item.log_id in done.late:
            logger.info(
                "callback ignored log_id=%s code=%s has_code=%s",
                item.log_id,
                item.handle_code,
                done.late[item.log_id],
            )
    won = set(done.won)
    return [sum(item.log_id in won for item in batch) for batch in batches]


def callback(body: bytes, store: CallbackStore) -> Reply:
    """Take results in any form an executor from 2.2 to 3.5 sends them; one bad element hurts no other."""
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
    """Return the registration a body holds; raises InvalidInput with the wire's own text where fields are missing."""
    if not body.strip() or body.strip() == b"null":
        raise InvalidInput("registryKey", MSG_ILLEGAL_ARGUMENT)
    try:
        return RegistryRequest.from_wire(load_json(body))
    except ValueError as exc:
        raise InvalidInput("registryKey", f"registration refused: {exc}") from exc


def registry(request: RegistryRequest, capabilities: Capabilities, networks: tuple[Network, ...]) -> Reply:
    """Note a heartbeat. A new address is routed to from its commit on, which comes before the answer."""
    try:
        registration.check_registration(request, networks)
        transact(lambda session: registration.register(session, request, capabilities, now_ms=now_ms()))
    except InvalidInput as exc:
        return Reply(FAIL, exc.message)
    except Conflict as exc:
        return Reply(FAIL, str(exc))
    return Reply(SUCCESS)


def registry_remove(request: RegistryRequest) -> Reply:
    """Forget an address; an unknown one is fine."""
    if not (
        request.registry_group.strip() and request.registry_key.strip() and request.registry_value.strip()
    ):
        return Reply(FAIL, MSG_ILLEGAL_ARGUMENT)
    transact(lambda session: registration.deregister(session, request, now_ms=now_ms()))
    return Reply(SUCCESS)
