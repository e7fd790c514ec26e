"""HTTP server: the endpoints as a Flask blueprint, and the executor's own waitress server."""

import errno
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import waitress.wasyncore
from flask import Blueprint, Flask, Response, request

from executor_client.endpoints import BODY_MAX_BYTES, Endpoints, Request
from executor_client.errors import StartRefused
from executor_client.http_server import ConnectionLimits, create_http_server
from executor_client.lenient_json import dump_json
from executor_client.protocol import CAPABILITIES_HEADER, CONTENT_TYPE, FAIL, TOKEN_HEADER, Reply

WSGIApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE")
#: an admin has at most 32 requests in flight to one address
SERVER_THREADS = 16
#: an idle connection is closed after this, as in XXL-JOB
IDLE_CONNECTION_S = 90
CLEANUP_INTERVAL_S = 10
CONNECTION_MAX = 1_000
#: most connections of one address: an admin is one, so half of all
LIMITS = ConnectionLimits(address_max=CONNECTION_MAX // 2)


class Service:
    """Blueprint service; rejects every call until the executor is started."""

    def __init__(self) -> None:
        self.endpoints: Endpoints | None = None
        self.capabilities = ""
        #: text of ``GET /metrics``; None: not served
        self.metrics: Callable[[], str] | None = None

    def handle(self, target: str) -> Response:
        """Handle Flask's current request."""
        if self.endpoints is None:
            return self._response(Reply(FAIL, "the executor is not started"))
        if (request.content_length or 0) > BODY_MAX_BYTES:
            return Response("request entity too large", status=413, content_type="text/plain")
        body = request.stream.read(BODY_MAX_BYTES + 1)
        token = request.headers.get(TOKEN_HEADER, "")
        return self._response(
            self.endpoints.handle(Request(request.method, target, token, request.remote_addr or "", body))
        )

    def _response(self, reply: Reply) -> Response:
        response = Response(dump_json(reply.to_wire()), content_type=CONTENT_TYPE)
        if self.capabilities:
            response.headers[CAPABILITIES_HEADER] = self.capabilities
        return response

    def handle_metrics(self) -> Response:
        """Handle ``GET /metrics``."""
        if self.metrics is None:
            return self.handle("/metrics")
        return Response(self.metrics(), content_type="text/plain; version=0.0.4; charset=utf-8")


def make_blueprint(service: Service, paths: Sequence[str], *, metrics: bool) -> Blueprint:
    """Return a blueprint with the executor's paths only; all others stay with the application."""
    blueprint = Blueprint("xxl_job_executor", __name__)

    def view(path: str) -> Callable[[], Response]:
        return lambda: service.handle(
            path + ("?" + request.query_string.decode("latin-1") if request.query_string else "")
        )

    for path in paths:
        options: dict[str, Any] = {
            "methods": METHODS,
            "provide_automatic_options": False,
            "strict_slashes": True,
        }
        blueprint.add_url_rule(path, endpoint=path.strip("/"), view_func=view(path), **options)
    if metrics:
        blueprint.add_url_rule(
            "/metrics", endpoint="metrics", view_func=service.handle_metrics, methods=["GET"]
        )
    return blueprint


def make_app(service: Service, paths: Sequence[str], *, metrics: bool) -> Flask:
    """Return a Flask application with the blueprint and XXL-JOB's replies for all other requests."""
    app = Flask("xxl_job_executor", static_folder=None)
    app.url_map.merge_slashes = False
    app.register_blueprint(make_blueprint(service, paths, metrics=metrics))

    def reject(error: Exception) -> Response:
        target = request.full_path if request.query_string else request.path
        return service.handle(target)

    for code in (404, 405):
        app.register_error_handler(code, reject)
    return app


class OwnServer:
    """The executor's own port."""

    def __init__(self, app: "Flask | WSGIApp", host: str, port: int) -> None:
        """Bind; raise StartRefused with one line if that is impossible."""
        self._socket = bound_socket(host, port)
        self._channels: dict[int, Any] = {}
        self._stopping = threading.Event()
        self._server = create_http_server(
            app,
            LIMITS,
            map=self._channels,
            sockets=[self._socket],
            threads=SERVER_THREADS,
            connection_limit=CONNECTION_MAX,
            channel_timeout=IDLE_CONNECTION_S,
            cleanup_interval=CLEANUP_INTERVAL_S,
            max_request_body_size=BODY_MAX_BYTES,
            clear_untrusted_proxy_headers=True,
            ident=None,
        )
        self._thread = threading.Thread(target=self._serve, name="server", daemon=True)

    @property
    def port(self) -> int:
        """Listening port."""
        return int(self._socket.getsockname()[1])

    def start(self) -> None:
        """Serve in a thread."""
        self._thread.start()

    def stop(self) -> None:
        """Close the port after the requests in flight have ended."""
        self._stopping.set()
        if self._thread.ident is None:
            self._close()
            return
        self._server.pull_trigger()
        self._thread.join(10)

    def _serve(self) -> None:
        while not self._stopping.is_set():
            waitress.wasyncore.loop(timeout=1, use_poll=True, map=self._channels, count=1)
        self._close()

    def _close(self) -> None:
        self._server.task_dispatcher.shutdown()
        waitress.wasyncore.close_all(self._channels)


def bound_socket(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address; raise StartRefused with one line."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, socket.SOCK_STREAM)
    except OSError as exc:
        raise StartRefused(f"cannot listen on {host}:{port}: {exc.strerror}") from exc
    except UnicodeError as exc:
        raise StartRefused(f"cannot listen on {host}:{port}: not a host name") from exc
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as exc:
        bound.close()
        in_use = exc.errno == errno.EADDRINUSE
        reason = "the port is in use by another program" if in_use else exc.strerror
        raise StartRefused(f"cannot listen on {host}:{port}: {reason}") from exc
    return bound
