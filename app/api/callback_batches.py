"""Callback batches: callbacks that arrive at the same time are stored in one transaction.

Most executors send each result in its own request. Only plain requests are answered here: those that may be
refused, or may have to wait, go through the executor API, one request per thread.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from app.api.actions import answer_to
from app.api.refusal_audit import note_not_stored
from app.api.tokens import TokenBook
from app.domain.runs.request_ids import HEADER, new_request_id
from app.runtime.logging import request_id
from app.services.runs.callbacks import Batch, CallbackStore, StoreResult
from app.settings.config import Config
from executor_client.httpd.batching import BatchAnswer, BatchedEndpoints, BatchRequest
from executor_client.wire.callbacks import CallbackBatch, parse_callbacks
from executor_client.wire.lenient_json import dump_json
from executor_client.wire.protocol import CAPABILITIES_HEADER, SUCCESS, TOKEN_HEADER, Reply
from executor_client.wire.run_reports import CONSOLE_HEADER, CONSOLE_WORDS

#: names of headers as in WSGI, without HTTP_
TOKEN_KEY = TOKEN_HEADER.upper().replace("-", "_")
#: the same header, as sent by 2.1 executors
OLD_TOKEN_KEY = "XXL_RPC_ACCESS_TOKEN"
CAPABILITIES_KEY = CAPABILITIES_HEADER.upper().replace("-", "_")
#: headers of every answer of the executor API
JSON_TYPE, NO_SNIFFING = ("Content-Type", "application/json"), ("X-Content-Type-Options", "nosniff")
#: context path of XXL-JOB up to 3.4.0, which executors may be configured with whatever ours is
_USUAL_CONTEXT = "/xxl-job-admin"
_PATH = "/api/callback"
_SUCCESS = Reply(SUCCESS)
_SUCCESS_BODY = dump_json(_SUCCESS.to_wire())


def contexts(config: Config) -> tuple[str, ...]:
    """Return the context paths at which executors may call."""
    return "", config.context_path, _USUAL_CONTEXT


class _PlainRequest(NamedTuple):
    """Request with results that can be stored in the batch."""

    position: int
    content: CallbackBatch
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
        """Store the results of requests in one transaction; None: the executor API handles the request."""
        answers: list[BatchAnswer | None] = [None] * len(requests)
        try:
            requests_read = [self._read(index, request) for index, request in enumerate(requests)]
        except SQLAlchemyError:  # tokens not readable, which the executor API answers and logs
            return answers
        plain_requests = [item for item in requests_read if item is not None]
        results = self._callbacks.store_together([item.batch for item in plain_requests])
        for item, result in zip(plain_requests, results, strict=True):
            if result is not None:
                answers[item.position] = _answer(requests[item.position], item, result)
        request_id.set("")
        return answers

    def _read(self, index: int, request: BatchRequest) -> _PlainRequest | None:
        """Return a request with a valid token whose elements all have a result, else None."""
        token = request.headers.get(TOKEN_KEY) or request.headers.get(OLD_TOKEN_KEY) or ""
        scope = self._tokens.find_scope(token)
        if scope is None:
            return None
        try:
            content = parse_callbacks(request.body)
        except ValueError:
            return None
        if content.rejections or content.missing or not content.items:
            return None
        return _PlainRequest(index, content, Batch(content.items, scope, new_request_id()))


def _answer(request: BatchRequest, item: _PlainRequest, result: StoreResult) -> BatchAnswer:
    answer = answer_to(item.content, result)
    request_id.set(item.batch.request)
    note_not_stored({"REMOTE_ADDR": request.peer, "PATH_INFO": request.path}, answer, item.batch.scope)
    reply = answer.reply
    body = _SUCCESS_BODY if reply == _SUCCESS else dump_json(reply.to_wire())
    console_header = ((CONSOLE_HEADER, CONSOLE_WORDS),) if request.headers.get(CAPABILITIES_KEY) else ()
    return BatchAnswer(200, (JSON_TYPE, NO_SNIFFING, *console_header, (HEADER, item.batch.request)), body)
