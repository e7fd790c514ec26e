"""API session: retries, idempotency keys, errors and cursors of requests to API v1."""

import json
import re
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from executor_client.api.errors import ApiRefused, ApiUnreachable, NoApi, refusal
from executor_client.api.transport import ANSWER_S, Answer, Query, Request, Transport
from executor_client.wire.clock import monotonic_s

T = TypeVar("T")
#: a JSON object of the API, with the API's names
Item = dict[str, Any]

#: rows of one page of a list
PAGE = 200
#: seconds for which a request is repeated while the console is busy or its connection breaks
PATIENCE_S = 20.0
#: first and longest pause after a broken connection, in seconds; it doubles each time
FIRST_PAUSE_S, LAST_PAUSE_S = 0.25, 4.0
#: repetitions after a broken connection, to a console that has not answered before
RECONNECTIONS = 2
#: statuses of a proxy whose console does not answer; the API's own, about executors, have a problem document
GATEWAY = (502, 504)
WRITES = ("POST", "PUT", "PATCH", "DELETE")


class ApiSession:
    """Requests to the API v1 of one console, with one token. Not thread-safe.

    Requests are repeated after 429 and 503 with ``Retry-After``, and after a broken connection: every write
    has an ``Idempotency-Key``, but for those whose answer holds a secret.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        transport: Transport | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.transport = transport or _over_http(url or "", token or "")
        self._patience_s = patience_s
        self._has_answered = False
        self._pause = threading.Event().wait

    @property
    def address(self) -> str:
        """Address of the console, for messages."""
        return self.transport.address

    def close(self) -> None:
        """Close the connections."""
        self.transport.close()

    def get(self, path: str, query: Query | None = None, *, timeout_s: float = ANSWER_S) -> Item:
        """Return the JSON object of a GET."""
        return self.call(Request("GET", path, query or {}, timeout_s=timeout_s))

    def post(
        self, path: str, body: Any = None, *, dry_run: bool = False, timeout_s: float = ANSWER_S
    ) -> Item:
        """POST a JSON value and return the JSON object of the answer."""
        return self.write("POST", path, body, dry_run=dry_run, timeout_s=timeout_s)

    def write(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        dry_run: bool = False,
        etag: str = "",
        timeout_s: float = ANSWER_S,
    ) -> Item:
        """Send a write and return the JSON object of the answer, empty if there is none.

        With ``etag`` it fails with PreconditionFailed if the object has another one by now.
        """
        query = {"dry_run": True} if dry_run else {}
        headers = {"If-Match": etag} if etag else {}
        return self.call(Request(method, path, query, body, headers, timeout_s))

    def items(self, path: str, query: Query | None = None, *, limit: int | None = None) -> Iterator[Item]:
        """Yield the items of a list, page by page; ``limit``: at most so many."""
        cursor: str | None = None
        remaining = limit
        while remaining is None or remaining > 0:
            size = PAGE if remaining is None else min(PAGE, remaining)
            page = self.get(path, {**(query or {}), "limit": size, "cursor": cursor})
            items = page.get("items") or []
            yield from items
            remaining = None if remaining is None else remaining - len(items)
            cursor = page.get("next_cursor")
            if cursor is None:
                return

    def call(self, request: Request) -> Item:
        """Send a request and return the JSON object of the answer; raise ApiError."""
        text = self._send_repeatedly(request, lambda answer: answer.read())
        if not text:
            return {}
        try:
            content = json.loads(text)
        except ValueError as exc:
            raise self._no_api() from exc
        # The executor API of a console without API v1 answers every request with an envelope.
        if not isinstance(content, dict) or {"code", "msg"} <= content.keys():
            raise self._no_api()
        self._has_answered = True
        return content

    def open(self, request: Request) -> Answer:
        """Send a request, with retries, and return a successful answer whose body is not yet read."""
        return self._send_repeatedly(request, lambda answer: answer)

    def _send_repeatedly(self, request: Request, read_answer: Callable[[Answer], T]) -> T:
        """Return ``read_answer`` of the answer to a request, with retries."""
        if request.method in WRITES and request.is_repeatable:
            headers = {"Idempotency-Key": uuid.uuid4().hex, **request.headers}
            request = replace(request, headers=headers)
        failed_s, attempts = 0.0, 0
        while True:
            try:
                return read_answer(self._send_once(request))
            except (ApiUnreachable, ApiRefused) as exc:
                attempts += 1
                failed_s = failed_s or monotonic_s()
                pause_s = self._pause_before(attempts, request, exc)
                if pause_s is None or monotonic_s() + pause_s - failed_s > self._patience_s:
                    raise
            self._pause(pause_s)

    def _pause_before(
        self, attempt: int, request: Request, error: ApiUnreachable | ApiRefused
    ) -> float | None:
        """Return the seconds before another attempt; None: no other attempt."""
        if isinstance(error, ApiRefused):
            is_busy = error.status in (409, 429, 503) and error.retry_after_s is not None
            return max(error.retry_after_s or 0.0, FIRST_PAUSE_S) if is_busy else None
        if isinstance(error, NoApi):
            return None
        # A console that has answered is probably restarting; one that never has may not exist.
        may_return = self._has_answered or attempt <= RECONNECTIONS
        pause_s = min(FIRST_PAUSE_S * 2 ** (attempt - 1), LAST_PAUSE_S)
        return pause_s if request.is_repeatable and may_return else None

    def _send_once(self, request: Request) -> Answer:
        answer = self.transport.send(request)
        if answer.status < 400:
            return answer
        problem = _problem(answer.read())
        if not problem and answer.status in (404, 405):
            # The answer comes from a proxy that does not forward the path; it does not mean a missing object.
            raise (
                ApiRefused(answer.status, self._status_problem(answer))
                if self._has_answered
                else self._no_api()
            )
        if not problem and answer.status in GATEWAY:
            raise ApiUnreachable(
                self.address, f"HTTP status {answer.status}, from a proxy in front of the console"
            )
        raise refusal(
            answer.status,
            problem or self._status_problem(answer),
            retry_after_s=_seconds(answer.headers.get("retry-after", "")),
        )

    def _status_problem(self, answer: Answer) -> Item:
        return {"title": f"{self.address}: HTTP status {answer.status}"}

    def _no_api(self) -> NoApi:
        return NoApi(self.address, "no API v1 answers here; expected the address of a console")


def _over_http(url: str, token: str) -> Transport:
    from executor_client.api.http import HttpTransport  # here: urllib3 takes time to load

    return HttpTransport(url, token)


def _problem(content: bytes) -> Item:
    """Return the problem document of an answer; empty if it has none, such as that of a proxy."""
    try:
        problem = json.loads(content)
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) and "title" in problem else {}


def _seconds(retry_after: str) -> float | None:
    return float(retry_after) if re.fullmatch(r"\d{1,6}", retry_after.strip()) else None
