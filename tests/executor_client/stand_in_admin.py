"""Stand-in admin: an HTTP server that behaves like the admins of 2.2, 2.4, 3.4 and 3.5."""

import json
import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "stand-in-token-0123456789"
BAD_TOKEN = "The access token is wrong."

Answer = Callable[[str, Any], dict[str, Any] | None]


class StandInAdmin:
    """Records requests. ``refuse`` can be replaced: {} accepts, None closes the connection."""

    def __init__(self, version: str = "2.4") -> None:
        self.version = version
        self.token = TOKEN
        #: CONSOLE_HEADER of a console of this project, by action
        self.console: Callable[[str], str] = lambda action: ""
        self.lock = threading.Lock()
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        #: acknowledged results in order: (log id, code, message)
        self.results: list[tuple[int, int, str | None]] = []
        #: lines of logs that were sent at a stop, by log id
        self.tails: dict[int, list[str]] = {}
        self.refuse: Answer = lambda action, body: {}
        self._server: Server | None = None
        self._port = 0
        self.up()

    @property
    def url(self) -> str:
        prefix = "" if self.version >= "3.4" else "/xxl-job-admin"
        return f"http://127.0.0.1:{self._port}{prefix}"

    def up(self) -> None:
        """Listen on the same port as before."""
        self._server = Server(("127.0.0.1", self._port), Handler)
        self._server.admin = self
        self._port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def down(self) -> None:
        """Stop listening and drop all connections."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
            server.drop()

    def bodies(self, action: str) -> list[Any]:
        """Return the bodies of all calls of an action."""
        with self.lock:
            return [body for path, _, body in self.requests if path.endswith(f"/api/{action}")]

    def headers(self, action: str) -> dict[str, str]:
        """Return the headers of the last call of an action."""
        with self.lock:
            return next(
                headers for path, headers, _ in reversed(self.requests) if path.endswith(f"/api/{action}")
            )

    def codes(self) -> dict[int, int]:
        """Return log id -> first result code."""
        with self.lock:
            return {log_id: code for log_id, code, _ in reversed(self.results)}

    def message(self, log_id: int) -> str | None:
        """Return the message of a run's first result."""
        with self.lock:
            return next(msg for known, _, msg in self.results if known == log_id)

    def repeats(self) -> Counter[int]:
        """Return the number of acknowledgements by log id."""
        with self.lock:
            return Counter(log_id for log_id, _, _ in self.results)

    def respond(self, path: str, headers: dict[str, str], body: Any) -> dict[str, Any] | None:
        """Return the envelope for a call, as this version does."""
        action = path.rpartition("/")[2]
        with self.lock:
            self.requests.append((path, headers, body))
        if path != f"{self.url.removeprefix(f'http://127.0.0.1:{self._port}')}/api/{action}":
            return {"code": 500, "msg": f"no such path {path}"}
        received = {name.lower(): value for name, value in headers.items()}
        if received.get("xxl-job-access-token") != self.token:
            return self.envelope(500, BAD_TOKEN)
        if self.version >= "3.5" and not received.get("xxl-job-appname"):
            return self.envelope(500, "invalid request, accessToken or appname is empty.")
        if action == "logTail" and "log-tail" in self.console(action):
            return self.store_tail(body)
        if action not in ("registry", "registryRemove", "callback"):
            return self.envelope(500, f"invalid request, uri-mapping({action}) not found.")
        refusal = self.refuse(action, body)
        if refusal is None or refusal:
            return refusal
        return self.store_results(body) if action == "callback" else self.envelope(200)

    def store_tail(self, body: Any) -> dict[str, Any]:
        lines = self.tails.setdefault(body["logId"], [])
        if body["fromLineNum"] <= len(lines) + 1:
            lines += body["lines"][len(lines) + 1 - body["fromLineNum"] :]
        return self.envelope(200) | {"content": {"fromLineNum": len(lines) + 1}}

    def store_results(self, body: Any) -> dict[str, Any]:
        if self.version >= "3.5":
            if not isinstance(body, dict):
                return self.envelope(
                    500, "Expected BEGIN_OBJECT but was BEGIN_ARRAY at line 1 column 2 path $"
                )
            body = body["callbackList"]
        elif not isinstance(body, list):
            return self.envelope(500, "Expected BEGIN_ARRAY but was BEGIN_OBJECT at line 1 column 2 path $")
        accepted = []
        for item in body:
            if self.version < "2.3":
                if "executeResult" not in item:
                    return self.envelope(500, "java.lang.NullPointerException")
                accepted.append((item["logId"], item["executeResult"]["code"], item["executeResult"]["msg"]))
            else:
                assert item["logDateTime" if self.version >= "3.5" else "logDateTim"] > 0
                accepted.append((item["logId"], item["handleCode"], item["handleMsg"]))
        with self.lock:
            self.results += accepted
        return self.envelope(200)

    def envelope(self, code: int, msg: str | None = None) -> dict[str, Any]:
        if self.version >= "3.3":
            return {"code": code, "msg": msg or "Success", "data": None, "success": code == 200}
        return {"code": code, "msg": msg, "content": None}


class Server(ThreadingHTTPServer):
    daemon_threads = True
    admin: StandInAdmin

    def __init__(self, *arguments: Any) -> None:
        self.connections: set[Any] = set()
        super().__init__(*arguments)

    def get_request(self) -> tuple[Any, Any]:
        connection, peer = super().get_request()
        self.connections.add(connection)
        return connection, peer

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        super().shutdown_request(request)

    def drop(self) -> None:
        for connection in list(self.connections):
            try:
                connection.shutdown(2)
            except OSError:
                pass

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore dropped connections."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "null")
        envelope = self.server.admin.respond(self.path, dict(self.headers), body)
        if envelope is None:
            self.close_connection = True
            return
        answer = json.dumps(envelope).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        if announced := self.server.admin.console(self.path.rpartition("/")[2]):
            self.send_header("X-Exec-Console", announced)
        self.send_header("Transfer-Encoding", "chunked")  # as Spring does; here in two chunks
        self.end_headers()
        for piece in (answer[:5], answer[5:], b""):
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing."""
