"""Every page in each look, loaded once, then checked for everything that holds for all pages."""

from dataclasses import dataclass

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.screenshots import pages
from tests.browser.serving import Console
from tests.support.browser import AXE, PHONE, WIDER, OpenPage, Watch

pytestmark = pytest.mark.browser

DESKTOP: ViewportSize = {"width": 1280, "height": 720}


@dataclass(frozen=True)
class Look:
    """Display settings of a reader; together the looks cover every language, both themes and both widths."""

    locale: str
    language: str
    theme: str
    size: ViewportSize

    def __str__(self) -> str:
        return f"{self.locale}-{self.theme}-{self.size['width']}"


LOOKS = [
    # the longest texts on the smallest screen
    pytest.param(look := Look("en-US", "en", "light", PHONE), id=str(look)),
    pytest.param(look := Look("zh-CN", "zh-Hans", "dark", DESKTOP), id=str(look)),
    pytest.param(
        look := Look("zh-TW", "zh-Hant", "light", DESKTOP), id=str(look), marks=pytest.mark.extensive
    ),
]
#: drawn by scripts, by page: must exist before the checks
DRAWN = {
    "dashboard": "#run-timeline .mark",
    "log": ".log-line",
    "glue": ".cm-content",
}

#: what differs between the looks; the first one is checked by every rule on every page
CONTRAST_ONLY = {"runOnly": ["color-contrast"]}
#: pages that together show every component; their colours are checked in the other looks
COLOURFUL = frozenset(
    ("dashboard", "load", "jobs", "job", "job-runs", "job-edit", "import", "tasks", "logs", "log", "glue")
    + (
        "glue-diff",
        "executors",
        "executor",
        "connect",
        "users",
        "audit",
        "alarms",
        "alarm-channels",
        "alarm-channel-edit",
        "variables",
        "variable",
        "secret-new",
    )
)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("look", LOOKS)
def test_every_page_in_each_look(console: Console, open_page: OpenPage, watch: Watch, look: Look) -> None:
    page = open_page("/", locale=look.locale, color_scheme=look.theme, viewport=look.size)
    problems, shown = [], pages(console)
    assert shown.keys() >= COLOURFUL
    for name, path in shown.items():
        page.goto(console.url + path)
        watch.await_quiet(page)
        if name == "missing":  # its status is in the browser's console
            watch.problems.clear()
        problems += [f"{name}: {problem}" for problem in (*problems_of(page, name, look), *watch.problems)]
        watch.problems.clear()
    assert not problems, "\n".join(problems)


def problems_of(page: Page, name: str, look: Look) -> list[str]:
    """Return the problems of an open page."""
    expect(page.locator("main"), name).to_be_visible()
    expect(page.locator("html"), name).to_have_attribute("lang", look.language)
    expect(page.locator("html"), name).to_have_attribute("data-bs-theme", look.theme)
    if name in DRAWN:
        expect(page.locator(DRAWN[name]).first, name).to_be_visible()
    problems = [f"wider than the window: {where}" for where in page.evaluate(WIDER)]
    is_first = look == LOOKS[0].values[0]
    if is_first or name in COLOURFUL:
        page.evaluate(AXE_SCRIPT)
        problems += page.evaluate(AXE, {} if is_first else CONTRAST_ONLY)
    return problems
