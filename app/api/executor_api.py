"""Executor API: WSGI middleware in front of Flask for ``/api/…``, with or without a context path.

The context path is the configured one, or XXL-JOB's, as in the addresses that executors were given. Plain
WSGI, because callbacks are the most frequent requests and a Flask route costs twice as much. The API reads no
cookie, opens no session and sends no redirect; doubled slashes in paths are accepted.
"""

import logging
import re
from collections.abc import Callable, Iterable
from typing import Any

from flask import Flask
from sqlalchemy.exc import SQLAlchemyError

from app.api.actions import callback, log_tail, read_registration, registry, registry_check, registry_remove
from app.api.callback_batches import (
    CAPABILITIES_KEY,
    JSON_TYPE,
    NO_SNIFFING,
    OLD_TOKEN_KEY,
    TOKEN_KEY,
    BatchedCallbacks,
    contexts,
)
from app.api.refusal_audit import APP_NAME, note_not_stored, note_refusal
from app.api.tokens import TokenBook
from app.database.faults import AWAY, RETRY_AFTER_S, Fault, fault_log, fault_of
from app.errors import InvalidInput
from app.services.archive.tails import TailStore
from app.services.executors.registration_check import RegistrationChecks
from app.services.runs.callbacks import CallbackStore
from app.settings.config import Config
from app.settings.home import access_tokens
from executor_client.wire.capabilities import Capabilities
from executor_client.wire.lenient_json import dump_json
from executor_client.wire.log_tails import TAIL_ACTION
from executor_client.wire.protocol import (
    FAIL,
    HANDLERS_HEADER,
    MSG_BAD_TOKEN,
    MSG_METHOD,
    MSG_NO_TOKEN,
    MSG_URI_NOT_FOUND,
    SEND_AGAIN,
    Reply,
)
from executor_client.wire.registration_check import CHECK_ACTION
from executor_client.wire.run_reports import CONSOLE_HEADER, CONSOLE_WORDS

logger = logging.getLogger(__name__)
WSGIApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

#: longest request body, in bytes; Java executors send batches of any size
BODY_MAX = 16 * 1024 * 1024
_TOKEN_KEY = "HTTP_" + TOKEN_KEY
_OLD_TOKEN_KEY = "HTTP_" + OLD_TOKEN_KEY
#: replies to requests that can be sent again unchanged
_UNAVAILABLE = Reply(FAIL, f"the database is not available; {SEND_AGAIN}")
_BUSY = Reply(FAIL, f"the database is busy; {SEND_AGAIN}")
_FAILED = Reply(FAIL, "internal error, see the console log")
#: replies about failures of the console, which are no refusals
_FAILURES = (_UNAVAILABLE, _BUSY, _FAILED)
_CAPABILITIES_KEY = "HTTP_" + CAPABILITIES_KEY
#: key in the WSGI environment: value of CONSOLE_HEADER of the response
_CONSOLE_HEADER_KEY = "xxl_job.console_header"
_HANDLERS_KEY = "HTTP_" + HANDLERS_HEADER.upper().replace("-", "_")


class ExecutorApi:
    """WSGI middleware: handles ``/api/<action>`` and passes everything else on to Flask."""

    def __init__(self, inner: WSGIApp, config: Config) -> None:
        self._inner = inner
        self._networks = config.executor_networks
        self._path = re.compile(rf"(?:{'|'.join(map(re.escape, contexts(config)))})/api/([^/]+)/?")
        self._tokens = TokenBook(access_tokens(config))
        self.callbacks = CallbackStore()
        #: callbacks that a server may answer together
        self.batches = BatchedCallbacks(self._tokens, self.callbacks, config)
        self._tails = TailStore(config)
        self._checks = RegistrationChecks(config.executor_networks)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Handle one request."""
        path = re.sub(r"/{2,}", "/", environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", ""))
        match = self._path.fullmatch(path)
        if match is None:
            return self._inner(environ, start_response)
        reply = self._answer(match[1], environ)
        if reply not in _FAILURES:
            note_refusal(match[1], reply, environ)
        body = dump_json(reply.to_wire())
        headers = [JSON_TYPE, ("Content-Length", str(len(body))), NO_SNIFFING]
        if environ.get(_CAPABILITIES_KEY):  # an executor of ours: others may not expect the header
            headers.append((CONSOLE_HEADER, environ.get(_CONSOLE_HEADER_KEY, CONSOLE_WORDS)))
        if reply is _BUSY:
            start_response("503 Service Unavailable", [*headers, ("Retry-After", str(RETRY_AFTER_S))])
        else:
            start_response("200 OK", headers)
        # On a persistent connection a body would be read as the next answer.
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def _answer(self, action: str, environ: dict[str, Any]) -> Reply:
        """Return the reply; never raises. A busy database is an HTTP error too, so that clients retry."""
        if environ["REQUEST_METHOD"] != "POST":
            return Reply(FAIL, MSG_METHOD)
        try:
            return self._act(action, environ)
        except InvalidInput as exc:
            return Reply(FAIL, exc.message)
        except AWAY as exc:  # expected during an outage: no traceback
            fault_log.write(logger, f"executor request not stored action={action}", exc)
            return _BUSY if fault_of(exc) is Fault.BUSY else _UNAVAILABLE
        except (SQLAlchemyError, TimeoutError):
            logger.exception("executor request not stored action=%s", action)
            return _UNAVAILABLE
        except Exception:
            logger.exception("executor request failed action=%s", action)
            return _FAILED

    def _act(self, action: str, environ: dict[str, Any]) -> Reply:
        token = environ.get(_TOKEN_KEY) or environ.get(_OLD_TOKEN_KEY) or ""
        scope = self._tokens.find_scope(token)
        if scope is None:
            return Reply(FAIL, MSG_BAD_TOKEN if token else MSG_NO_TOKEN)
        if action == "callback":
            answer = callback(_body(environ), self.callbacks, scope)
            note_not_stored(environ, answer, scope)
            return answer.reply
        if action == TAIL_ACTION:
            return log_tail(_body(environ), self._tails, scope)
        if action not in ("registry", "registryRemove", CHECK_ACTION):
            return Reply(FAIL, MSG_URI_NOT_FOUND.format(action[:100]))
        request = read_registration(_body(environ))
        environ[APP_NAME] = request.registry_key
        if not self._tokens.accepts(token, request.registry_key):
            return Reply(FAIL, MSG_BAD_TOKEN)
        if action == "registryRemove":
            return registry_remove(request)
        if action == CHECK_ACTION:
            return registry_check(request, token, self._networks, self._checks)
        capabilities = Capabilities.from_header(environ.get(_CAPABILITIES_KEY), environ.get(_HANDLERS_KEY))
        reply, words = registry(request, capabilities, self._networks)
        environ[_CONSOLE_HEADER_KEY] = ",".join(words)
        return reply


def _body(environ: dict[str, Any]) -> bytes:
    """Return the raw body, regardless of its content type. Raises InvalidInput if it is too long."""
    length = int(environ.get("CONTENT_LENGTH") or 0)
    if length > BODY_MAX:
        raise InvalidInput("body", f"the body is longer than {BODY_MAX} bytes")
    body: bytes = environ["wsgi.input"].read(length) if length else b""
    return body


def register(app: Flask, config: Config) -> ExecutorApi:
    """Install the executor API in front of a Flask application."""
    api = ExecutorApi(app.wsgi_app, config)
    app.wsgi_app = api  # type: ignore[method-assign]
    return api
