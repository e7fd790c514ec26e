"""Chromium on a real console.

A page that violates the content security policy, logs an error or requests a foreign host fails its test.
Console and browser are shared by all tests here and end with the last one: Playwright keeps an event loop
running in the main thread, in which no other test could use asyncio.run.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    expect,
    sync_playwright,
)
from sqlalchemy import update

from app.database.engine import session_scope
from app.models.user import User
from tests.browser.seed import ADMIN
from tests.browser.serving import LAUNCH, Console, serving

OpenPage = Callable[..., Page]

#: time for a page's requests to finish
QUIET_S = 30
#: received content is drawn by the second frame
TWO_FRAMES = "() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"

# a shared machine may need longer than the 5 s Playwright waits for elements
expect.set_options(timeout=20_000)


@pytest.fixture(scope="package")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with serving(Path(tmp_path_factory.mktemp("console"))) as running:
        yield running


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        opened = driver.chromium.launch(**LAUNCH)
        yield opened
        opened.close()


class Watch:
    """Problems in a browser: console messages, script errors, foreign requests; each with its page."""

    def __init__(self, origin: str) -> None:
        self.origin = urlsplit(origin).netloc
        self.problems: list[str] = []
        self._open: set[Request] = set()

    def over(self, page: Page) -> None:
        page.on("console", lambda message: self._on_message(page, message))
        page.on("pageerror", lambda error: self._add(page, f"script: {error}"))
        page.on("request", lambda request: self._on_request(page, request))
        page.on("requestfinished", lambda request: self._open.discard(request))
        page.on("requestfailed", lambda request: self._open.discard(request))

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


@pytest.fixture
def watch(console: Console) -> Iterator[Watch]:
    """Watches every page of a test; a problem fails the test."""
    made = Watch(console.url)
    yield made
    assert made.problems == []


def log_in(page: Page, console: Console, user: tuple[str, str]) -> None:
    """Log in as a person does."""
    page.goto(f"{console.url}/toLogin")
    page.fill("#userName", user[0])
    page.fill("#password", user[1])
    page.click("form.panel button.btn-primary")
    page.wait_for_url(f"{console.url}/")


@pytest.fixture
def open_page(browser: Browser, console: Console, watch: Watch) -> Iterator[OpenPage]:
    """Open a page in a new browser profile, logged in as ``user`` or not (None); options for the context."""
    contexts: list[BrowserContext] = []

    def open_(path: str = "/", *, user: tuple[str, str] | None = ADMIN, **options: object) -> Page:
        context = browser.new_context(**{"locale": "en-US", "reduced_motion": "reduce", **options})  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        watch.over(page)
        if user is not None:
            with session_scope() as session:  # another test may have changed the user's language
                session.execute(update(User).where(User.username == user[0]).values(language=""))
            # by request, without loading a page: the cookie belongs to the profile
            answer = context.request.post(
                f"{console.url}/login", form={"userName": user[0], "password": user[1]}
            )
            assert answer.json()["code"] == 200, answer.text()
        page.goto(console.url + path)
        return page

    yield open_
    for context in contexts:
        context.close()
