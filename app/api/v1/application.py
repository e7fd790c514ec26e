"""Flask application of API v1, separate from the console's: without its gate, cookies and forms.

A request passes access, query, body and conditions in that order; then its view runs in one transaction,
which is rolled back for ``dry_run=true``. Slow work is prepared before the transaction.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from flask import Flask, Response, g, request
from pydantic import BaseModel
from sqlalchemy.orm import Session
from werkzeug.exceptions import UnsupportedMediaType

from app.api.v1 import idempotency, problems
from app.api.v1.access import BURST, RATE, check_access, find_caller
from app.api.v1.bodies import REPEATED, read_body
from app.api.v1.cursors import mark_cursor, unmark_cursor
from app.api.v1.endpoint import PUBLIC, Call, Made, Operation, Resource
from app.api.v1.etags import check_if_match, etag_of
from app.api.v1.resources import all_resources
from app.api.v1.schemas.base import ID_MAX, Listed, ListQuery, Query, Schema
from app.clock import SECOND_MS, Millis, now_ms
from app.database.engine import read_scope, session_scope, transact
from app.domain.access.call_rate import CallRate
from app.domain.access.permissions import unknown_actor
from app.domain.text.input_errors import InputErrors
from app.errors import InvalidInput, NotFound, XxlJobError
from app.runtime.logging import USER
from app.services.accounts.api_tokens import ApiCaller
from app.services.executors.callers import Caller
from app.settings.config import Config

BODY_MAX = 16 * 1024 * 1024
JSON_TYPE = "application/json"
DRY_RUN = "dry_run"


class _DryRunEnd(Exception):
    """Rolls back the transaction of a dry run; carries its answer."""

    def __init__(self, answer: Response) -> None:
        super().__init__()
        self.answer = answer


def create_api(config: Config, executors: Caller, resources: Sequence[Resource]) -> Flask:
    """Create the application of some resources; ``executors`` calls executors. The engine has to be bound."""
    app = Flask("app.api.v1", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = BODY_MAX
    app.after_request(_protect)
    problems.init_app(app)
    operations = _operations(resources)
    readers = {
        operation.path: operation for operation in operations if operation.etag and operation.method == "GET"
    }
    rate = CallRate(RATE, SECOND_MS, burst=BURST)
    for operation in operations:
        endpoint = Endpoint(operation, readers.get(operation.path), config, executors, rate)
        app.add_url_rule(operation.path, operation.name, endpoint, methods=[operation.method])
    app.add_url_rule("/openapi.json", "openapi", Document(operations))
    return app


def _protect(answer: Response) -> Response:
    answer.headers["X-Content-Type-Options"] = "nosniff"
    answer.headers["Cache-Control"] = "no-store"
    return answer


def document_json() -> str:
    """Return the OpenAPI document of all resources as JSON."""
    return Document(_operations(all_resources())).text


def _operations(resources: Sequence[Resource]) -> list[Operation]:
    return [operation for resource in resources for operation in resource.operations]


class Document:
    """View of the OpenAPI document, which is built at the first request."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self._operations = operations

    def __call__(self) -> Response:
        """Return the document."""
        return Response(self.text, content_type=JSON_TYPE)

    @cached_property
    def text(self) -> str:
        """The document as JSON."""
        from app.api.v1.document import openapi_json  # imported here, because its library costs 4 MB

        return openapi_json(self._operations)


class Endpoint:
    """Answers the requests of one operation."""

    def __init__(
        self,
        operation: Operation,
        reader: Operation | None,
        config: Config,
        executors: Caller,
        rate: CallRate,
    ) -> None:
        self._operation, self._reader = operation, reader
        self._config, self._executors, self._rate = config, executors, rate

    def __call__(self, **path: Any) -> Response:
        """Return the answer to the current request; errors are raised."""
        operation, at_ms = self._operation, now_ms()
        g.member_names = operation.resource.member_names
        caller = _caller(operation, self._rate, at_ms)
        query, dry_run = _read_query(operation)
        body = _read_body(operation)
        if any(isinstance(value, int) and value > ID_MAX for value in path.values()):
            raise NotFound("there is no such object")
        make_call = partial(
            Call,
            caller=caller,
            now_ms=at_ms,
            config=self._config,
            executors=self._executors,
            query=query,
            dry_run=dry_run,
        )
        arguments = {**path} if body is None else {**path, "body": body}
        key = None if operation.is_safe else idempotency.read_key(request, operation, caller.token_id)
        if dry_run:
            key = None  # a dry run checks the key, but does not use it up
        if not operation.transaction:
            return self._run_outside(make_call, arguments, path, key)
        work = partial(self._run_inside, make_call=make_call, arguments=arguments, path=path, key=key)
        if operation.is_safe:
            with read_scope() as session:
                return work(session)
        if operation.prepare is not None:
            replay = self._prepare(make_call(), arguments, key)
            if replay is not None:
                return replay
        try:
            return transact(work)
        except _DryRunEnd as end:
            return end.answer

    def _prepare(self, call: Call, arguments: dict[str, Any], key: idempotency.Key | None) -> Response | None:
        """Add ``preparation`` to the arguments of the view; if that is refused, return any stored answer.

        A repeated request cannot be prepared again: an undo would be refused because it is already done.
        """
        assert self._operation.prepare is not None
        try:
            arguments["preparation"] = self._operation.prepare(call, **arguments)
        except XxlJobError:
            if key is None:
                raise
            with session_scope() as session:
                replay = idempotency.reserve(session, key, self._operation, now_ms=call.now_ms)
                if replay is None:
                    raise  # this rolls back the reservation of the key
            return replay
        return None

    def _run_inside(
        self,
        session: Session,
        *,
        make_call: Callable[..., Call],
        arguments: dict[str, Any],
        path: dict[str, Any],
        key: idempotency.Key | None,
    ) -> Response:
        call = make_call(open_session=session)
        if key is not None:
            replay = idempotency.reserve(session, key, self._operation, now_ms=call.now_ms)
            if replay is not None:
                return replay
        if not self._operation.is_safe:
            check_if_match(request, self._operation, self._reader, call, path)
        answer = self._answer(self._operation.view(call, **arguments))
        if call.dry_run:
            answer.headers["X-Dry-Run"] = "true"
            raise _DryRunEnd(answer)
        if key is not None:
            idempotency.keep(session, key, answer)
        return answer

    def _run_outside(
        self,
        make_call: Callable[..., Call],
        arguments: dict[str, Any],
        path: dict[str, Any],
        key: idempotency.Key | None,
    ) -> Response:
        call = make_call()
        if key is not None:
            with session_scope() as session:
                replay = idempotency.reserve(session, key, self._operation, now_ms=call.now_ms)
            if replay is not None:
                return replay
        try:
            if not self._operation.is_safe:
                with read_scope() as session:
                    reading = replace(call, open_session=session)
                    check_if_match(request, self._operation, self._reader, reading, path)
            answer = self._answer(self._operation.view(call, **arguments))
        except BaseException:
            if key is not None:
                with session_scope() as session:
                    idempotency.release(session, key)
            raise
        if key is not None:
            with session_scope() as session:
                idempotency.keep(session, key, answer)
        if call.dry_run:
            answer.headers["X-Dry-Run"] = "true"
        return answer

    def _answer(self, result: object) -> Response:
        """Return the response for what a view returned: a schema, Made, None or a whole Response."""
        if isinstance(result, Response):
            return result
        path = result.path if isinstance(result, Made) else ""
        result = result.answer if isinstance(result, Made) else result
        if not isinstance(result, Schema):
            assert result is None, f"{self._operation.name} returned {type(result)}"
            return Response(status=self._operation.status, content_type=None)
        if isinstance(result, Listed) and result.next_cursor:
            result = result.model_copy(update={"next_cursor": mark_cursor(result.next_cursor, request.path)})
        answer = Response(result.model_dump_json(), self._operation.status, content_type=JSON_TYPE)
        if path:
            answer.headers["Location"] = request.root_path + path
        if self._operation.etag:
            answer.set_etag(etag_of(result))
            if self._operation.is_safe and not result.VOLATILE:
                answer.make_conditional(request)
        return answer


def _caller(operation: Operation, rate: CallRate, at_ms: Millis) -> ApiCaller:
    """Return the caller of the current request; raises if it may not call."""
    if operation.right == PUBLIC:
        return ApiCaller(0, "", unknown_actor(request.remote_addr or ""), 0, 0)
    caller = find_caller(request, now_ms=at_ms)
    g.caller, request.environ[USER] = caller, caller.actor.username
    check_access(operation, caller, rate)
    return caller


def _read_query(operation: Operation) -> tuple[Query | None, bool]:
    """Return the checked parameters, and whether this is a dry run. Raises InvalidInput, ValidationError."""
    errors = InputErrors()
    for name, values in request.args.lists():
        with errors:
            if len(values) > 1:
                raise InvalidInput(name, REPEATED)
    errors.raise_all()
    parameters: dict[str, Any] = request.args.to_dict()
    dry_run = False
    if not operation.is_safe and DRY_RUN in parameters:
        word = parameters.pop(DRY_RUN)
        if word not in ("true", "false"):
            raise InvalidInput(DRY_RUN, "must be true or false")
        dry_run = word == "true"
    query = (operation.query or Query).model_validate(parameters)
    if isinstance(query, ListQuery) and query.cursor:
        query = query.model_copy(update={"cursor": unmark_cursor(query.cursor, request.path)})
    return query, dry_run


def _read_body(operation: Operation) -> BaseModel | None:
    """Return the checked body; None for an operation without one. Raises ValidationError, InvalidInput."""
    if operation.body is None:
        if request.get_data():
            raise InvalidInput("body", "this operation takes no body")
        return None
    data = request.get_data()
    if not data:
        return operation.body.model_validate_json(b"{}")
    if request.mimetype != JSON_TYPE:
        raise UnsupportedMediaType("the body has to be application/json")
    return read_body(operation.body, data)
