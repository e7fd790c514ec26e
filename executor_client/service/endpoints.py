"""Executor endpoints, independent of web frameworks: checks in XXL-JOB's order, then the action."""

import contextlib
import hmac
import logging
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl

from executor_client.execution.intake import Intake
from executor_client.logs.reading import PAGE_MAX_BYTES, WHOLE_MAX_BYTES, LogReader
from executor_client.wire.lenient_json import load_json, long_field, long_or
from executor_client.wire.protocol import (
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

#: a larger request body is rejected unread
BODY_MAX_BYTES = 5 * 1024 * 1024
#: extension of this project: state of a run, ``/known?logId=7``
KNOWN_PATH = "/known"
#: triggers
RUN_PATHS = ("/run", "/trigger")
PATHS = ("/beat", "/idleBeat", *RUN_PATHS, "/kill", "/log", KNOWN_PATH)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Request:
    """HTTP request, reduced to what the endpoints need."""

    method: str
    #: path and query, for example ``/run``
    target: str
    token: str
    #: the peer's address
    peer: str
    body: bytes


class Endpoints:
    """Endpoints called by admins, and ``GET /known``."""

    def __init__(self, intake: Intake, logs: LogReader, tokens: tuple[str, ...]) -> None:
        """Without tokens, only requests from loopback are allowed."""
        self._intake = intake
        self._logs = logs
        self._tokens = [sha256(token.encode()).digest() for token in tokens]
        self._actions: dict[str, Callable[[bytes], Reply]] = {
            "/beat": lambda body: Reply(SUCCESS),
            "/idleBeat": lambda body: self._intake.idle_beat(JobRequest.from_wire(load_json(body)).job_id),
            **dict.fromkeys(RUN_PATHS, self._run),
            "/kill": lambda body: self._intake.kill(JobRequest.from_wire(load_json(body)).job_id),
            "/log": self._log,
        }

    def handle(self, request: Request) -> Reply:
        """Return the reply to a request; never raises."""
        path, _, query = request.target.partition("?")
        if request.method == "GET" and path == KNOWN_PATH and self._is_allowed(request):
            return self._call(self._run_state, query.encode(), request)
        if request.method != "POST":
            return Reply(FAIL, MSG_METHOD)
        if not request.target:
            return Reply(FAIL, MSG_URI_EMPTY)
        action = self._actions.get(request.target)
        if action is None or not self._is_allowed(request):
            return self._unknown(request)
        return self._call(action, request.body, request)

    def run_together(self, requests: list[Request]) -> list[Reply | None]:
        """Reply to requests for RUN_PATHS; None for one that ``handle`` has to reply to."""
        triggers: dict[int, RunRequest] = {}
        for index, request in enumerate(requests):
            if request.method == "POST" and request.target in RUN_PATHS and self._is_allowed(request):
                with contextlib.suppress(ValueError):
                    triggers[index] = RunRequest.from_wire(load_json(request.body))
        replies: list[Reply | None] = [None] * len(requests)
        for index, reply in zip(triggers, self._intake.run_together([*triggers.values()]), strict=True):
            replies[index] = reply
        return replies

    def _call(self, action: Callable[[bytes], Reply], argument: bytes, request: Request) -> Reply:
        try:
            return action(argument)
        except ValueError as exc:
            return Reply(FAIL, f"{MSG_REQUEST_ERROR}{exc}")
        except Exception as exc:
            logger.exception("request failed path=%s", request.target)
            return Reply(FAIL, f"{MSG_REQUEST_ERROR}{type(exc).__name__}")

    def _unknown(self, request: Request) -> Reply:
        """Reject an unknown path; the token comes first, so that paths cannot be probed without it."""
        if not self._is_allowed(request):
            return Reply(FAIL, MSG_BAD_TOKEN)
        return Reply(FAIL, MSG_URI_NOT_FOUND.format(request.target))

    def _is_allowed(self, request: Request) -> bool:
        """Check the token in constant time: compare digests, and always all of them."""
        if not self._tokens:
            return request.peer in ("127.0.0.1", "::1", "::ffff:127.0.0.1")
        digest = sha256(request.token.encode("utf-8", "surrogateescape")).digest()
        matches = [hmac.compare_digest(digest, token_digest) for token_digest in self._tokens]
        return any(matches)

    def _run_state(self, query: bytes) -> Reply:
        log_id = long_field(dict(parse_qsl(query.decode("latin-1"))), "logId")
        if log_id <= 0:
            raise ValueError(f"logId is required, for example {KNOWN_PATH}?logId=7")
        return self._intake.run_state(log_id)

    def _run(self, body: bytes) -> Reply:
        return self._intake.run(RunRequest.from_wire(load_json(body)))

    def _log(self, body: bytes) -> Reply:
        fields: Any = load_json(body)
        request = LogRequest.from_wire(fields)
        # Consoles that send the newer spelling read page by page; older ones send a single request.
        reads_in_pages = "logDateTime" in fields
        max_bytes = PAGE_MAX_BYTES if reads_in_pages else WHOLE_MAX_BYTES
        extra: dict[str, Any] = {}
        if run := self._intake.running(request.log_id):
            run.log.flush()
            # Only a console of this project requests the progress.
            if fields.get("progress") is True:
                progress = run.context.current_progress
                extra = {"running": True} | ({"progress": progress.to_text()} if progress else {})
        last_lines = long_or(fields, "lastLines", 0)
        if last_lines > 0:
            piece = self._logs.read_end(request, last_lines, max_bytes=max_bytes)
        else:
            piece = self._logs.read(request, max_bytes=max_bytes)
        return Reply(SUCCESS, None, {**piece.to_wire(), **extra})
