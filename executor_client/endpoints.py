"""What an executor answers to admins, apart from any web framework: checks in the original's order, then the call."""

import hmac
import logging
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl

from executor_client.intake import Intake
from executor_client.lenient_json import load_json, long_field
from executor_client.log_reading import PAGE_MAX_BYTES, WHOLE_MAX_BYTES, LogReader
from executor_client.protocol import (
    FAIL,
    MSG_BAD_TOKEN,
    MSG_METHOD,
    MSG_REQUEST_ERROR,
    MSG_URI_EMPTY,
    MSG_URI_NOT_FOUND,
    SUCCESS,
    JobRequest,
    LogRequest,
    Reply,
    RunRequest,
)

#: a larger request is refused unread
BODY_MAX_BYTES = 5 * 1024 * 1024
#: our own extension: what has become of a run, as in ``/known?logId=7``
KNOWN_PATH = "/known"
PATHS = ("/beat", "/idleBeat", "/run", "/trigger", "/kill", "/log", KNOWN_PATH)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Request:
    """What the checks need of an HTTP request."""

    method: str
    #: path and query, as in ``/run``
    target: str
    token: str
    #: the peer's address
    peer: str
    body: bytes


class Endpoints:
    """The six calls of an admin, and ``GET /known``."""

    def __init__(self, intake: Intake, logs: LogReader, tokens: tuple[str, ...]) -> None:
        """Without tokens only this machine is answered."""
        self._intake = intake
        self._logs = logs
        self._tokens = [sha256(token.encode()).digest() for token in tokens]
        self._actions: dict[str, Callable[[bytes], Reply]] = {
            "/beat": lambda body: Reply(SUCCESS),
            "/idleBeat": lambda body: self._intake.idle_beat(JobRequest.from_wire(load_json(body)).job_id),
            "/run": self._run,
            "/trigger": self._run,
            "/kill": lambda body: self._intake.kill(JobRequest.from_wire(load_json(body)).job_id),
            "/log": self._log,
        }

    def answer(self, request: Request) -> Reply:
        """Answer any request; nothing here raises, and every answer is a Reply."""
        path, _, query = request.target.partition("?")
        if request.method == "GET" and path == KNOWN_PATH and self._is_allowed(request):
            return self._carry_out(self._run_state, query.encode(), request)
        if request.method != "POST":
            return Reply(FAIL, MSG_METHOD)
        if not request.target:
            return Reply(FAIL, MSG_URI_EMPTY)
        action = self._actions.get(request.target)
        if action is None or not self._is_allowed(request):
            return self._unknown(request)
        return self._carry_out(action, request.body, request)

    def _carry_out(self, action: Callable[[bytes], Reply], given: bytes, request: Request) -> Reply:
        try:
            return action(given)
        except ValueError as exc:
            return Reply(FAIL, f"{MSG_REQUEST_ERROR}{exc}")
        except Exception as exc:
            logger.exception("request failed path=%s", request.target)
            return Reply(FAIL, f"{MSG_REQUEST_ERROR}{type(exc).__name__}")

    def _unknown(self, request: Request) -> Reply:
        """Refuse: the token first, so that a stranger learns nothing of the paths."""
        if not self._is_allowed(request):
            return Reply(FAIL, MSG_BAD_TOKEN)
        return Reply(FAIL, MSG_URI_NOT_FOUND.format(request.target))

    def _is_allowed(self, request: Request) -> bool:
        """Compare digests, all of them, so that the time taken says nothing."""
        if not self._tokens:
            return request.peer in ("127.0.0.1", "::1", "::ffff:127.0.0.1")
        given = sha256(request.token.encode("utf-8", "surrogateescape")).digest()
        matches = [hmac.compare_digest(given, known) for known in self._tokens]
        return any(matches)

    def _run_state(self, query: bytes) -> Reply:
        log_id = long_field(dict(parse_qsl(query.decode("latin-1"))), "logId")
        if log_id <= 0:
            raise ValueError(f"a logId is needed, as in {KNOWN_PATH}?logId=7")
        return self._intake.run_state(log_id)

    def _run(self, body: bytes) -> Reply:
        return self._intake.run(RunRequest.from_wire(load_json(body)))

    def _log(self, body: bytes) -> Reply:
        fields: Any = load_json(body)
        request = LogRequest.from_wire(fields)
        # consoles that know the newer spelling ask again until nothing is left; older ones ask once
        reads_in_pages = "logDateTime" in fields
        return Reply(
            SUCCESS,
            None,
            self._logs.read(
                request, max_bytes=PAGE_MAX_BYTES if reads_in_pages else WHOLE_MAX_BYTES
            ).to_wire(),
        )
