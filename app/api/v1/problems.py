"""Problem documents: every error of the API as ``application/problem+json`` (RFC 9457)."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus

from flask import Flask, Response, g, request
from pydantic import ValidationError
from sqlalchemy.exc import DBAPIError
from werkzeug.exceptions import HTTPException

from app.api.v1.schemas.base import FieldError, Problem
from app.clock import now_ms
from app.database.faults import RETRY_AFTER_S, Fault, fault_log, fault_of
from app.domain.enums import PromiseKind
from app.domain.text.texts import with_field_name
from app.errors import (
    Conflict,
    ExecutorUnreachable,
    InvalidInput,
    NotFound,
    PermissionDenied,
    RetryLater,
    TooManyCalls,
    Unauthorized,
    XxlJobError,
)
from app.runtime.logging import request_id
from app.services.auditing import refusals

logger = logging.getLogger(__name__)
CONTENT_TYPE = "application/problem+json"
STATUSES: dict[type[XxlJobError], int] = {
    Unauthorized: 401,
    PermissionDenied: 403,
    NotFound: 404,
    Conflict: 409,
    InvalidInput: 422,
    RetryLater: 429,
    TooManyCalls: 503,
    ExecutorUnreachable: 502,
}
#: most wrong values of a body that are named, and longest name: a body may consist of unknown members
ERRORS_MAX, NAME_MAX = 10_000, 300
KINDS = frozenset(PromiseKind)
FAULTS = {
    Fault.BUSY: "the database is busy; send the request again",
    Fault.FULL: "the disk of the database is full",
    Fault.READ_ONLY: "the database is read-only, so nothing can be changed",
    Fault.UNAVAILABLE: "the database is unavailable; send the request again later",
}


def init_app(app: Flask) -> None:
    """Register the error handlers."""
    app.register_error_handler(XxlJobError, _on_own_error)
    app.register_error_handler(ValidationError, _on_invalid)
    app.register_error_handler(HTTPException, _on_http_error)
    app.register_error_handler(DBAPIError, _on_database_error)
    app.register_error_handler(Exception, _on_failure)
    app.after_request(_note_entry_errors)


def problem(status: int, detail: str, errors: Iterable[FieldError] = ()) -> Response:
    """Return an error answer; ``errors`` name the invalid values."""
    body = _body(status, detail, errors)
    return Response(body.model_dump_json(), status=status, content_type=CONTENT_TYPE)


def entry_problem(error: XxlJobError, entry: str, member: str) -> Problem:
    """Return the error of an entry of a batch, such as ``runs.3``.

    ``member`` of the entry names the object, for errors that name no field.
    """
    errors = _field_errors(error) or [FieldError(field=member, reason=str(error))]
    errors = [FieldError(field=f"{entry}.{item.field}", reason=item.reason) for item in errors]
    return _body(_status_of(error), _detail_of(errors), errors)


def _body(status: int, detail: str, errors: Iterable[FieldError]) -> Problem:
    return Problem(
        type="about:blank",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        errors=list(errors),
        request_id=request_id.get() or "",
    )


def _status_of(error: XxlJobError) -> int:
    return next(STATUSES[kind] for kind in (*type(error).__mro__, Conflict) if kind in STATUSES)


def _detail_of(errors: Iterable[FieldError]) -> str:
    return "; ".join(f"{error.field}: {error.reason}" for error in errors)


def _note_refusal(error: XxlJobError) -> None:
    what = {"method": request.method, "path": request.root_path + request.path}
    refusals.note_error(error, g.caller.actor, now_ms=now_ms(), detail=what)


def _note_entry_errors(answer: Response) -> Response:
    """Record the refusals among the entries of a batch, whose transaction has ended by now."""
    for error in g.pop("entry_errors", ()):
        _note_refusal(error)
    return answer


def _on_own_error(error: XxlJobError) -> Response:
    errors = _field_errors(error)
    answer = problem(_status_of(error), _detail_of(errors) or str(error), errors)
    if "caller" in g:
        _note_refusal(error)
    if isinstance(error, Unauthorized):
        answer.headers["WWW-Authenticate"] = 'Bearer realm="api"'
    if isinstance(error, RetryLater):
        answer.headers["Retry-After"] = str(error.retry_after_s)
    return answer


def _field_errors(error: XxlJobError) -> list[FieldError]:
    if not isinstance(error, InvalidInput):
        return []
    names: Mapping[str, str] = g.get("member_names", {})
    return [
        FieldError(field=names.get(item.field, item.field), reason=with_field_name(item.message, names))
        for item in error.errors
    ]


def _on_invalid(error: ValidationError) -> Response:
    if error.error_count() > ERRORS_MAX:
        many = FieldError(
            field="body", reason=f"has {error.error_count()} errors, which are too many to name"
        )
        return problem(422, _detail_of([many]), [many])
    details = error.errors(include_url=False, include_context=False, include_input=False)
    if [detail["type"] for detail in details] == ["json_invalid"]:
        return problem(400, f"the body is not JSON: {details[0]['msg'].removeprefix('Invalid JSON: ')}")
    errors = [
        FieldError(
            field=".".join(_place(detail["loc"]))[:NAME_MAX] or "body",
            reason=detail["msg"].removeprefix("Value error, "),
        )
        for detail in details
    ]
    return problem(422, _detail_of(errors), errors)


def _place(location: Sequence[int | str]) -> Iterator[str]:
    """Yield the parts of a place; pydantic also names the kind by which it reads a promise."""
    for number, part in enumerate(location):
        if not (part in KINDS and number and isinstance(location[number - 1], int)):
            yield str(part)


def _on_http_error(error: HTTPException) -> Response:
    answer = problem(error.code or 500, error.description or error.name)
    for name, value in error.get_headers():
        if name in {"Allow", "Retry-After"}:
            answer.headers[name] = value
    return answer


def _on_database_error(error: DBAPIError) -> Response:
    fault = fault_of(error)
    if fault is None:
        return _on_failure(error)
    fault_log.write(logger, f"API request failed method={request.method} path={request.path}", error)
    answer = problem(503, FAULTS[fault])
    answer.headers["Retry-After"] = str(RETRY_AFTER_S)
    return answer


def _on_failure(error: Exception) -> Response:
    logger.error("API request failed method=%s path=%s", request.method, request.path, exc_info=error)
    return problem(500, "internal error; the log of the console has it under the request id")
