"""WSGI mount: the executor's endpoints in a WSGI application, or as a Flask blueprint."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import werkzeug

from executor_client.service.answers import METRICS_PATH, TOO_LARGE, Answer, Service
from executor_client.service.endpoints import BODY_MAX_BYTES, PATHS, Request
from executor_client.wire.protocol import TOKEN_HEADER

if TYPE_CHECKING:
    from flask import Blueprint

WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
#: headers of proxies, and of browsers, in which any page can send requests to this host: without a token,
#: only direct requests of programs on this host are accepted
FORWARD_HEADERS = (
    "Forwarded",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Real-IP",
    "Via",
    "Origin",
    "Sec-Fetch-Site",
)
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE")


class WsgiMount:
    """WSGI application: answers the executor's paths below a prefix, passes other requests on."""

    def __init__(self, service: Service, fallback: WsgiApp | None, prefix: str = "") -> None:
        """Without ``fallback`` every request is answered as XXL-JOB's executors do."""
        self._service = service
        self._fallback = fallback
        self._prefix = prefix

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Handle one request."""
        path = below(self._prefix, environ.get("PATH_INFO", ""))
        if self._fallback is not None and (path is None or not self._service.is_path(path)):
            return self._fallback(environ, start_response)
        request = werkzeug.Request(environ)
        target = request.path if path is None or self._fallback is None else path
        return respond(self._service, request, with_query(target, request))(environ, start_response)


def normal_prefix(prefix: str) -> str:
    """Return a prefix of paths as ``/jobs``, or ""."""
    return f"/{prefix.strip('/')}" if prefix.strip("/") else ""


def below(prefix: str, path: str) -> str | None:
    """Return a path without the prefix; None if it is not below the prefix."""
    return path[len(prefix) :] if path.startswith(f"{prefix}/") else None


def respond(service: Service, request: werkzeug.Request, target: str) -> werkzeug.Response:
    """Answer a request to one of the executor's paths; ``target`` is that path, with the query."""
    if (request.content_length or 0) > BODY_MAX_BYTES:
        return _response(TOO_LARGE)
    body = request.stream.read(BODY_MAX_BYTES + 1)
    token = request.headers.get(TOKEN_HEADER, "")
    is_forwarded = any(name in request.headers for name in FORWARD_HEADERS)
    peer = "" if is_forwarded else request.remote_addr or ""
    return _response(service.answer(Request(request.method, target, token, peer, body)))


def _response(answer: Answer) -> werkzeug.Response:
    return werkzeug.Response(answer.body, answer.status, answer.headers)


def with_query(path: str, request: werkzeug.Request) -> str:
    """Return a path with the query of a request."""
    query = request.query_string.decode("latin-1")
    return f"{path}?{query}" if query else path


def make_blueprint(service: Service) -> "Blueprint":
    """Return a blueprint with the executor's paths only; all others stay with the application."""
    # Imported here, because an executor with its own port, or below Django, needs no Flask.
    from flask import Blueprint, request

    blueprint = Blueprint("xxl_job_executor", __name__)

    def view(path: str) -> Callable[[], werkzeug.Response]:
        return lambda: respond(service, request, with_query(path, request))

    for path in PATHS:
        options: dict[str, Any] = {
            "methods": METHODS,
            "provide_automatic_options": False,
            "strict_slashes": True,
        }
        blueprint.add_url_rule(path, endpoint=path.strip("/"), view_func=view(path), **options)
    if service.serves_metrics:
        blueprint.add_url_rule(
            METRICS_PATH, endpoint="metrics", view_func=view(METRICS_PATH), methods=["GET"]
        )
    return blueprint
