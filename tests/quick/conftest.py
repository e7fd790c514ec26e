"""Fixtures of the quick path: the whole application, and which requests reach its views."""

from typing import Any

import pytest
from flask import Flask

from app.quick import passes
from app.quick.path import QuickPath
from tests.console.conftest import admin, app, console, settings  # noqa: F401


class Views:
    """Counts the requests that go the ordinary way."""

    def __init__(self, path: QuickPath) -> None:
        self._inner, self.path, self.count = path._inner, path, 0
        path._inner = self

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        self.count += 1
        return self._inner(environ, start_response)


class Clock:
    """Monotonic clock that a test moves."""

    now_ms = 1_000_000

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def views(app: Flask) -> Views:  # noqa: F811
    path: Any = app.wsgi_app
    while not isinstance(path, QuickPath):
        path = path._inner
    return Views(path)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(passes, "monotonic_ms", made)
    return made
