"""Fixtures of the quick path: the whole application, and which requests reach its views.

With ``server`` a test runs twice: as under any WSGI server, and as under ours, which answers requests that
wait together.
"""

from collections.abc import Callable, Iterable
from io import BytesIO
from typing import Any

import pytest
from flask import Flask

from app.fast_triggers import access_cache
from app.fast_triggers.middleware import QuickPath
from executor_client.httpd.batching import BatchAnswer, BatchedEndpoints, BatchRequest
from tests.console.conftest import admin, app, console, settings  # noqa: F401


class Views:
    """Counts the requests that go the ordinary way."""

    def __init__(self, path: QuickPath) -> None:
        self._inner, self.path, self.count = path._inner, path, 0
        path._inner = self

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        self.count += 1
        return self._inner(environ, start_response)


def batch_request(environ: dict[str, Any]) -> BatchRequest:
    """Return a request as the server reads it; its body can be read again."""
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = BytesIO(body)
    headers = {name.removeprefix("HTTP_"): text for name, text in environ.items() if name.startswith("HTTP_")}
    headers |= {name: environ[name] for name in ("CONTENT_TYPE", "CONTENT_LENGTH") if name in environ}
    peer = environ.setdefault("REMOTE_ADDR", "127.0.0.1")
    return BatchRequest(environ["REQUEST_METHOD"], environ["PATH_INFO"], headers, peer, body)


class BatchServer:
    """WSGI middleware that does what our server does with the batched endpoints."""

    def __init__(self, inner: Callable[..., Iterable[bytes]], endpoints: BatchedEndpoints) -> None:
        self._inner, self._endpoints = inner, endpoints

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        is_post = environ["REQUEST_METHOD"] == "POST" and not environ["QUERY_STRING"]
        if is_post and self._endpoints.takes(environ["PATH_INFO"]):
            (answer,) = self._endpoints.answer([batch_request(environ)])
            if isinstance(answer, BatchAnswer):
                first, *others = answer.headers
                length = ("Content-Length", str(len(answer.body)))
                start_response(f"{answer.status} -", [first, length, *others])
                return [answer.body]
            environ |= {} if answer is None else answer.environ
        return self._inner(environ, start_response)


class Clock:
    """Monotonic clock that a test moves."""

    now_ms = 1_000_000

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture(params=["wsgi", "batched"])
def server(app: Flask, request: pytest.FixtureRequest) -> None:  # noqa: F811
    if request.param == "batched":
        (triggers,) = (each for each in app.extensions["xxl_job_batched"] if each.name == "triggers")
        app.wsgi_app = BatchServer(app.wsgi_app, triggers)  # type: ignore[method-assign]


@pytest.fixture
def sent(app: Flask) -> list[BatchRequest]:  # noqa: F811
    """The requests of a test, as the server reads them."""
    requests: list[BatchRequest] = []

    def keep(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        requests.append(batch_request(environ))
        return inner(environ, start_response)

    inner, app.wsgi_app = app.wsgi_app, keep  # type: ignore[method-assign]
    return requests


@pytest.fixture
def views(app: Flask) -> Views:  # noqa: F811
    path: Any = app.wsgi_app
    while not isinstance(path, QuickPath):
        path = path._inner
    return Views(path)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(access_cache, "monotonic_ms", made)
    return made
