"""Stand-in admin of the fixture ``executor`` without console: triggers runs and receives results."""

import json
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from executor_client.wire.callbacks import CallbackItem
from executor_client.wire.clock import now_ms
from executor_client.wire.errors import ExecutorError
from executor_client.wire.protocol import CONTENT_TYPE, SUCCESS, TIMEOUT, TOKEN_HEADER, RunRequest


class StandInAdmin:
    """Admin of one executor on a free port of this host."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._condition = threading.Condition()
        self._results: dict[int, CallbackItem] = {}
        self._last_log_id = 0
        self._server = _Server(self)
        self.url = f"http://127.0.0.1:{self._server.server_port}/xxl-job-admin"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()

    def store(self, items: list[CallbackItem]) -> None:
        """Store results."""
        with self._condition:
            self._results.update({item.log_id: item for item in items})
            self._condition.notify_all()

    def run(self, address: str, handler: str, param: str, timeout: float) -> tuple[str, str, str]:
        """Run a handler and return state, message and log; raise ExecutorError if it does not end."""
        self._last_log_id = log_id = self._last_log_id + 1
        triggered_ms = now_ms()
        # Each run has its own job, so that it waits for no other one.
        request = RunRequest(
            log_id, handler, param, "SERIAL_EXECUTION", 0, log_id, triggered_ms, "BEAN", "", 0, 0, 1
        )
        reply = self._call(address, "run", request.to_wire())
        if reply["code"] != SUCCESS:
            raise ExecutorError(f"the executor refused {handler}: {reply['msg']}")
        with self._condition:
            if not self._condition.wait_for(lambda: log_id in self._results, timeout):
                raise ExecutorError(f"{handler} did not end within {timeout:g} s")
            result = self._results[log_id]
        log_request = {"logId": log_id, "logDateTim": triggered_ms, "fromLineNum": 1}
        log = self._call(address, "log", log_request)["content"]["logContent"]
        return _state_of(result.handle_code), result.handle_msg or "", log

    def _call(self, address: str, action: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"Content-Type": CONTENT_TYPE, TOKEN_HEADER: self._token}
        request = urllib.request.Request(address + action, json.dumps(body).encode(), headers)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=10) as response:
            reply: dict[str, Any] = json.load(response)
        return reply


def _state_of(code: int) -> str:
    return {SUCCESS: "succeeded", TIMEOUT: "timed_out"}.get(code, "failed")


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, admin: StandInAdmin) -> None:
        self.admin = admin
        super().__init__(("127.0.0.1", 0), _Calls)


class _Calls(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def answer(self) -> None:
        """Answer a call of the executor."""
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "null")
        if self.path.endswith("/callback"):
            items = body if isinstance(body, list) else body["callbackList"]
            self.server.admin.store([CallbackItem.from_wire(item) for item in items])
        answer = json.dumps({"code": SUCCESS, "msg": None, "content": None}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_POST = answer  # noqa: N815 - the name that http.server calls

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing."""
