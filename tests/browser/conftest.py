"""Chromium on a real console.

A page that violates the content security policy, logs an error or requests a foreign host fails its test.
Console and browser are shared by all tests here and end with the last one: Playwright keeps an event loop
running in the main thread, in which no other test could use asyncio.run.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    expect,
    sync_playwright,
)
from sqlalchemy import update

from app.database.engine import session_scope
from app.models.user import User
from tests.browser.seed import ADMIN
from tests.browser.serving import LAUNCH, Console, serving
from tests.support.browser import OpenPage, Watch

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


@pytest.fixture
def watch(console: Console) -> Iterator[Watch]:
    """Watches every page of a test; a problem fails the test."""
    made = Watch(console.url)
    yield made
    assert made.problems == []


@pytest.fixture
def open_page(browser: Browser, console: Console, watch: Watch) -> Iterator[OpenPage]:
    """Open a page in a new browser profile, logged in as ``user`` or not (None); options for the context."""
    contexts: list[BrowserContext] = []

    def open_(path: str = "/", *, user: tuple[str, str] | None = ADMIN, **options: object) -> Page:
        options = {"locale": "en-US", "reduced_motion": "reduce", **options}
        context = browser.new_context(**options)  # type: ignore[arg-type]
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
