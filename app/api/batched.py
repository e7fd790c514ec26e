"""Batched callbacks: results that arrive at the same time in requests of their own share a transaction.

Most executors send each result by itself. Only plain requests are answered here: whatever may be refused, or
may have to wait, goes through the executor API, one request a thread.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from app.api.actions import answer_to
from app.api.refused import note_not_stored
from app.api.tokens import TokenBook
from app.domain.runs.request_ids import HEADER, new_request_id
from app.runtime.logging import request_id
from app.services.runs.callbacks import Batch, CallbackStore, StoreResult
from app.settings.config import Config
from executor_client.httpd.batching import BatchAnswer, BatchedEndpoints, BatchRequest
from executor_client.wire.callbacks import CallbackBatch, parse_callbacks
from executor_client.wire.lenient_json import dump_json
from executor_client.wire.protocol import CAPABILITIES_HEADER, SUCCESS, TOKEN_HEADER, Reply
from executor_client.wire.run_reports import CONSOLE_HEADER, RUN_STATE

#: names of headers as in WSGI, without HTTP_
TOKEN_KEY = TOKEN_HEADER.upper().replace("-", "_")
#: the same header, as sent by 2.1 executors
OLD_TOKEN_KEY = "XXL_RPC_ACCESS_TOKEN"
CAPABILITIES_KEY = CAPABILITIES_HEADER.upper().replace("-", "_")
#: of every answer of the executor API
JSON_TYPE, NO_SNIFFING = ("Content-Type", "application/json"), ("X-Content-Type-Options", "nosniff")
#: context path of XXL-JOB up to 3.4.0, which addresses of executors may have whatever ours is
_USUAL_CONTEXT = "/xxl-job-admin"
_PATH = "/api/callback"
_SUCCESS = Reply(SUCCESS)
_SUCCESS_BODY = dump_json(_SUCCESS.to_wire())


def contexts(config: Config) -> tuple[str, ...]:
    """Return the context paths at which executors may call."""
    return "", config.context_path, _USUAL_CONTEXT


class _Plain(NamedTuple):
    """Results of a request that may be stored."""

    place: int
    sent: CallbackBatch
    batch: Batch


class BatchedCallbacks:
    """Answers the callbacks that wait at the same time."""

    def __init__(self, tokens: TokenBook, callbacks: CallbackStore, config: Config) -> None:
        self._tokens, self._callbacks = tokens, callbacks
        self._paths = frozenset(context + _PATH for context in contexts(config))

    def endpoints(self) -> BatchedEndpoints:
        """Return the endpoints for the server."""
        return BatchedEndpoints("callbacks", lambda path: path in self._paths, self.answer)

    def answer(self, requests: Sequence[BatchRequest]) -> list[BatchAnswer | None]:
        """Store the results of requests in one transaction; None: the request goes the ordinary way."""
        answers: list[BatchAnswer | None] = [None] * len(requests)
        try:
            read = [self._read(place, request) for place, request in enumerate(requests)]
        except SQLAlchemyError:  # of the tokens: answered and logged there
            return answers
        plain = [found for found in read if found is not None]
        stored = self._callbacks.store_together([found.batch for found in plain])
        for found, result in zip(plain, stored, strict=True):
            if result is not None:
                answers[found.place] = _answer(requests[found.place], found, result)
        request_id.set("")
        return answers

    def _read(self, place: int, request: BatchRequest) -> _Plain | None:
        """Return the results of a request whose token is known and whose elements can all be read."""
        token = request.headers.get(TOKEN_KEY) or request.headers.get(OLD_TOKEN_KEY) or ""
        scope = self._tokens.find_scope(token)
        if scope is None:
            return None
        try:
            sent = parse_callbacks(request.body)
        except ValueError:
            return None
        if sent.rejected or not sent.items:
            return None
        return _Plain(place, sent, Batch(sent.items, scope, new_request_id()))


def _answer(request: BatchRequest, found: _Plain, stored: StoreResult) -> BatchAnswer:
    answer = answer_to(found.sent, stored)
    request_id.set(found.batch.request)
    note_not_stored({"REMOTE_ADDR": request.peer, "PATH_INFO": request.path}, answer)
    reply = answer.reply
    body = _SUCCESS_BODY if reply == _SUCCESS else dump_json(reply.to_wire())
    said = ((CONSOLE_HEADER, RUN_STATE),) if request.headers.get(CAPABILITIES_KEY) else ()
    return BatchAnswer(200, (JSON_TYPE, NO_SNIFFING, *said, (HEADER, found.batch.request)), body)
