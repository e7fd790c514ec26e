"""Error responses: pages for browsers, the original's JSON for scripts. Internals are never disclosed.

XxlJobError -> HTTP: NotFound 404, InvalidInput 400, Conflict 409, PermissionDenied 403, TooManyAttempts 429,
TooManyCalls 503, ExecutorUnreachable 502; the console's own scripts get the text as JSON. The JSON endpoints
answer HTTP 200 with code 500 and the text; only too many login attempts give HTTP 429. A database that is
busy, full, read-only or away -> 503, and one line in the log.
"""

import logging
import secrets

from flask import Flask, Response, render_template, request
from markupsafe import escape
from sqlalchemy.exc import DBAPIError
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as BaseResponse

from app.clock import now_ms
from app.console.web import refusals
from app.console.web.current import OUTSIDE, is_scripting, translate, translate_error
from app.console.web.envelope import FAIL, envelope, status_answer
from app.console.web.guards import is_for_admins, may_enter, to_login
from app.database.faults import RETRY_AFTER_S, Fault, fault_log, fault_of
from app.domain.text.texts import N_
from app.errors import (
    Conflict,
    ExecutorUnreachable,
    InvalidInput,
    NotFound,
    PermissionDenied,
    RetryLater,
    TooManyAttempts,
    TooManyCalls,
    XxlJobError,
)

logger = logging.getLogger(__name__)
STATUSES: dict[type[XxlJobError], int] = {
    NotFound: 404,
    InvalidInput: 400,
    Conflict: 409,
    PermissionDenied: 403,
    TooManyAttempts: 429,
    TooManyCalls: 503,
    ExecutorUnreachable: 502,
}
#: message for each database fault
FAULTS = {
    Fault.BUSY: N_("The database is busy. Try again in a moment."),
    Fault.FULL: N_("The database's disk is full. Free some space, then try again."),
    Fault.READ_ONLY: N_("The database is read-only, so nothing can be changed."),
    Fault.UNAVAILABLE: N_("The database is unavailable. Try again later."),
}
#: statuses with their own page; others show the page of their class
PAGES = frozenset({400, 403, 404, 409, 500, 502, 503})
HTML_TYPE = "text/html; charset=utf-8"


def init_app(app: Flask) -> None:
    """Register the error handlers."""
    app.register_error_handler(XxlJobError, _on_own_error)
    app.register_error_handler(HTTPException, _on_http_error)
    app.register_error_handler(DBAPIError, _on_database_error)
    app.register_error_handler(Exception, _on_failure)


def _on_own_error(error: XxlJobError) -> Response:
    refusals.note_error(error, for_admins=is_for_admins())
    text = translate_error(error)
    if is_scripting():
        response = envelope(code=FAIL, msg=text)
        if isinstance(error, TooManyAttempts):
            response.status_code = 429
    else:
        response = _answer(_status_of(error), text)
    if isinstance(error, RetryLater):
        response.headers["Retry-After"] = str(error.retry_after_s)
    return response


def _status_of(error: XxlJobError) -> int:
    return next((STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES), 500)


def _on_http_error(error: HTTPException) -> BaseResponse:
    if isinstance(error.response, BaseResponse):
        return error.response
    status = error.code or 500
    if status == 404 and OUTSIDE not in request.environ and not may_enter():
        return to_login()
    if 300 <= status < 400:
        return BaseResponse(status=status, headers=error.get_headers())
    response = (
        _answer(status, translate(error.description or ""))
        if "text/html" in request.headers.get("Accept", "") or _wants_text()
        else status_answer(status, error.name, timestamp_ms=now_ms())
    )
    for name, value in error.get_headers():
        if name in {"Allow", "Retry-After"}:
            response.headers[name] = value
    return response


def _on_database_error(error: DBAPIError) -> Response:
    fault = fault_of(error)
    if fault is None:
        return _on_failure(error)
    fault_log.write(logger, f"request failed method={request.method} path={request.path}", error)
    text = translate(FAULTS[fault])
    if is_scripting():
        return envelope(code=FAIL, msg=text)
    response = _answer(503, text)
    response.headers["Retry-After"] = str(RETRY_AFTER_S)
    return response


def _on_failure(error: Exception) -> Response:
    number = secrets.token_hex(6)
    logger.error(
        "request failed number=%s method=%s path=%s", number, request.method, request.path, exc_info=error
    )
    text = translate(N_("Internal error. It is logged under number %(number)s.", number=number))
    return envelope(code=FAIL, msg=text) if is_scripting() else _answer(500, text)


def _wants_text() -> bool:
    """Whether a script of the console asks, which shows the text; JSON endpoints answer as the original."""
    is_ours = request.endpoint is not None and not is_scripting()
    return is_ours and request.accept_mimetypes.best == "application/json"


def _answer(status: int, message: str) -> Response:
    """Return an error as JSON for a script of the console, otherwise as a page."""
    if not _wants_text():
        return _page(status, message)
    response = envelope(code=FAIL, msg=message)
    response.status_code = status
    return response


def _page(status: int, message: str) -> Response:
    """Return the error page, or a plain one if rendering fails, as it does without a database."""
    page_status = status if status in PAGES else (500 if status >= 500 else 400)
    try:
        return Response(
            render_template(f"errors/{page_status}.html", code=status, message=message),
            status=status,
            content_type=HTML_TYPE,
        )
    except Exception as exc:
        if isinstance(exc, DBAPIError):  # the page meets the same fault
            fault_log.write(logger, f"error page not rendered status={status}", exc)
        else:
            logger.exception("error page not rendered status=%s", status)
        text = f"<!doctype html><title>{status}</title><h1>{status}</h1><p>{escape(message)}</p>"
        return Response(text, status=status, content_type=HTML_TYPE)
