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
    Page,
    expect,
    sync_playwright,
)
from sqlalchemy import update

from app.database.engine import session_scope
from app.models.user import User
from tests.browser.kept_pages import KeptPages
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


@pytest.fixture(scope="package")
def kept_pages(browser: Browser, console: Console) -> KeptPages:
    return KeptPages(browser, console.url)


@pytest.fixture
def open_page(kept_pages: KeptPages, console: Console, watch: Watch) -> Iterator[OpenPage]:
    """Open a page, logged in as ``user`` or not (None); options for the context.

    Its browser profile is clean. ``own``: a new page, for a test that adds handlers, a script or a clock.
    """
    taken: list[tuple[Page, dict[str, object]]] = []

    def open_(
        path: str = "/", *, user: tuple[str, str] | None = ADMIN, own: bool = False, **options: object
    ) -> Page:
        options = {"locale": "en-US", "reduced_motion": "reduce", **options}
        page = kept_pages.take(options, own=own)
        taken.append((page, options))
        watch.over(page)
        if user is not None:
            with session_scope() as session:  # another test may have changed the user's language
                session.execute(update(User).where(User.username == user[0]).values(language=""))
            # by request, without loading a page: the cookie belongs to the profile
            answer = page.context.request.post(
                f"{console.url}/login", form={"userName": user[0], "password": user[1]}
            )
            assert answer.json()["code"] == 200, answer.text()
        page.goto(console.url + path)
        return page

    yield open_
    watch.leave()
    for page, options in taken:
        kept_pages.give_back(page, options)
