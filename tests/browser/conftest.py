"""Chromium on a real console; a page that broke the content security policy, logged an error or asked a foreign host fails its test."""

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, sync_playwright

from tests.browser.seed import ADMIN
from tests.browser.serving import LAUNCH, Console, serving

OpenPage = Callable[..., Page]


@pytest.fixture(scope="session")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with serving(Path(tmp_path_factory.mktemp("console"))) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        opened = driver.chromium.launch(**LAUNCH)
        yield opened
        opened.close()


class Watch:
    """What went wrong in a browser: messages of the console, errors of scripts, requests to foreign hosts."""

    def __init__(self, own: str) -> None:
        self.own = urlsplit(own).netloc
        self.problems: list[str] = []

    def over(self, page: Page) -> None:
        page.on("console", self._on_message)
        page.on("pageerror", lambda error: self.problems.append(f"script: {error}"))
        page.on("request", self._on_request)

    def _on_message(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and not message.location["url"].endswith("/favicon.ico"):  # asked for beside plain text
            self.problems.append(f"{message.type}: {message.text}")

    def _on_request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in {"data", "blob"} and parts.netloc != self.own:
            self.problems.append(f"foreign request: {request.url}")


@pytest.fixture
def open_page(browser: Browser, console: Console) -> Iterator[OpenPage]:
    """Open a page of a new browser profile, logged in as ``user`` (None: not); options are Playwright's of a context."""
    watch = Watch(console.url)
    contexts: list[BrowserContext] = []

    def open_(path: str = "/", *, user: tuple[str, str] | None = ADMIN, **options: object) -> Page:
        context = browser.new_context(**{"locale": "en-US", "reduced_motion": "reduce", **options})  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        watch.over(page)
        if user is not None:
            page.goto(f"{console.url}/toLogin")
            page.fill("#userName", user[0])
            page.fill("#password", user[1])
            page.click("form.panel button.btn-primary")
            page.wait_for_url(f"{console.url}/")
        page.goto(console.url + path)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert watch.problems == []
