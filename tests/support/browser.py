"""Helpers of the tests of browser, for all that need them."""

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import (
    ConsoleMessage,
    Page,
    Request,
    ViewportSize,
)

from tests.browser.serving import Console

OpenPage = Callable[..., Page]


#: time for a page's requests to finish
QUIET_S = 30


#: received content is drawn by the second frame
TWO_FRAMES = "() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"


class Watch:
    """Problems in a browser: console messages, script errors, foreign requests; each with its page."""

    def __init__(self, origin: str) -> None:
        self.origin = urlsplit(origin).netloc
        self.problems: list[str] = []
        self._open: set[Request] = set()
        self._handlers: list[tuple[Page, Any, Any]] = []

    def over(self, page: Page) -> None:
        handlers: dict[Any, Any] = {
            "console": lambda message: self._on_message(page, message),
            "pageerror": lambda error: self._add(page, f"script: {error}"),
            "request": lambda request: self._on_request(page, request),
            "requestfinished": lambda request: self._open.discard(request),
            "requestfailed": lambda request: self._open.discard(request),
        }
        for event, handler in handlers.items():
            page.on(event, handler)
            self._handlers.append((page, event, handler))

    def leave(self) -> None:
        """Stop watching: pages are going to be closed or cleaned."""
        for page, event, handler in self._handlers:
            page.remove_listener(event, handler)
        self._handlers.clear()

    def await_quiet(self, page: Page) -> None:
        """Wait until everything a loaded page requested has arrived and is drawn."""
        quiet = 0
        deadline = time.monotonic() + QUIET_S
        while quiet < 2:
            assert time.monotonic() < deadline, (
                f"{page.url} still waits for {[request.url for request in self._open]}"
            )
            page.evaluate(TWO_FRAMES)
            quiet = 0 if self._open else quiet + 1

    def _add(self, page: Page, problem: str) -> None:
        self.problems.append(f"{urlsplit(page.url).path}: {problem}")

    def _on_message(self, page: Page, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and not message.location["url"].endswith(
            "/favicon.ico"
        ):  # requested as plain text beside it
            self._add(page, f"{message.type}: {message.text}")

    def _on_request(self, page: Page, request: Request) -> None:
        self._open.add(request)
        parts = urlsplit(request.url)
        if parts.scheme not in {"data", "blob"} and parts.netloc != self.origin:
            self._add(page, f"foreign request: {request.url}")


def log_in(page: Page, console: Console, user: tuple[str, str]) -> None:
    """Log in as a person does."""
    page.goto(f"{console.url}/toLogin")
    page.fill("#userName", user[0])
    page.fill("#password", user[1])
    page.click("form.panel button.btn-primary")
    page.wait_for_url(f"{console.url}/")


#: of a test that sets none
DESKTOP: ViewportSize = {"width": 1280, "height": 720}


PHONE: ViewportSize = {"width": 390, "height": 844}


WIDER = (
    "document.documentElement.scrollWidth > window.innerWidth ? [document.documentElement.scrollWidth] : []"
)


#: axe-core reports what keeps people from reading or operating a page
AXE = """
(rules) => axe.run({ ...rules, resultTypes: ["violations"], preload: false }).then(({ violations }) =>
  violations.flatMap(({ id, nodes }) =>
    nodes.slice(0, 3).map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)} ${failureSummary}`)))
"""


WIDE: ViewportSize = {"width": 1440, "height": 900}
