"""A console's API v1 that answers what a test sets up."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

TOKEN = "xxl_" + "t" * 43
ME = {"name": "laptop", "kind": "personal", "user": "ann", "rights": [], "expires_at": None}


@dataclass(frozen=True)
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    body: Any
    headers: dict[str, str]


@dataclass(frozen=True)
class Reply:
    """One answer; ``body``: a JSON value, or lines of a stream."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


Handler = Callable[[Seen], Reply | Any]


class FakeApi:
    """WSGI application; ``on`` sets what a method and path (a pattern) answer."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.token = TOKEN
        self._handlers: list[tuple[str, str, Handler]] = []
        self.on("GET", "/me", ME)

    def on(self, method: str, path: str, answer: Any) -> None:
        """Answer with a value, a Reply, the next of a list of replies, or what a function returns."""
        if isinstance(answer, list) and answer and all(isinstance(each, Reply) for each in answer):
            left = [*answer]
            answer = lambda _: left.pop(0) if len(left) > 1 else left[0]  # noqa: E731
        handler = answer if callable(answer) else lambda _: answer
        self._handlers.insert(0, (method, path, handler))

    def page(self, path: str, *items: Any) -> None:
        """Answer a list of one page."""
        self.on("GET", path, {"items": list(items), "next_cursor": None})

    def requests(self, method: str) -> list[str]:
        """Return the paths that were requested with a method."""
        return [each.path for each in self.seen if each.method == method]

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Handle one request."""
        reply = self._reply(_seen(environ))
        body = reply.body
        lines = body if isinstance(body, tuple) else [json.dumps(body).encode()] if body is not None else []
        kind = "application/problem+json" if reply.status >= 400 else "application/json"
        headers = {"Content-Type": kind, **reply.headers}
        start_response(f"{reply.status} Status", list(headers.items()))
        return iter(lines)

    def _reply(self, seen: Seen) -> Reply:
        self.seen.append(seen)
        if seen.headers.get("AUTHORIZATION") != f"Bearer {self.token}":
            return problem(401, "the token is unknown")
        for method, path, handler in self._handlers:
            if method == seen.method and re.fullmatch(path, seen.path):
                answer = handler(seen)
                return answer if isinstance(answer, Reply) else Reply(answer)
        return problem(404, f"There is no {seen.path}")


def problem(status: int, detail: str, errors: list[dict[str, str]] | None = None, **headers: str) -> Reply:
    """Return an answer that refuses a request."""
    document = {"type": "about:blank", "title": "Refused", "status": status, "detail": detail}
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply({**document, "errors": errors or [], "request_id": "r1"}, status, given)


def _seen(environ: dict[str, Any]) -> Seen:
    path = environ["SCRIPT_NAME"] + environ["PATH_INFO"]
    content = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    query = {name: values[0] for name, values in parse_qs(environ["QUERY_STRING"]).items()}
    headers = {name[5:]: value for name, value in environ.items() if name.startswith("HTTP_")}
    assert path.startswith("/api/v1/"), path
    return Seen(
        environ["REQUEST_METHOD"],
        path.removeprefix("/api/v1"),
        query,
        json.loads(content) if content else None,
        headers,
    )
