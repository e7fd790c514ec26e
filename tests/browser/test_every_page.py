"""Every page in each look, loaded once, then checked for everything that holds for all pages.

By default each of two looks has every second page, and together they have all pages; the contrast of colours,
most of the time, is checked on pages that together show every component. With ``--all`` each look has all
pages.
"""

from collections.abc import Collection
from dataclasses import dataclass

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.screenshots import pages
from tests.browser.serving import Console
from tests.support.browser import AXE, DESKTOP, PHONE, WIDER, OpenPage, Watch

pytestmark = pytest.mark.browser


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
#: looks of the default run
SHARES = 2
#: drawn by scripts, by page: must exist before the checks
DRAWN = {
    "dashboard": "#run-timeline .mark",
    "log": ".log-line",
    "glue": ".cm-content",
}

#: what differs between the looks, if each has all pages; then the first one is checked by every rule
CONTRAST_ONLY = {"runOnly": ["color-contrast"]}
WITHOUT_CONTRAST = {"rules": {"color-contrast": {"enabled": False}}}
#: pages that together show every component; their colours are checked in each look that has them
COLOURFUL = frozenset(
    ("dashboard", "load", "jobs", "job", "job-runs", "job-edit", "import", "tasks", "logs", "log", "glue")
    + (
        "completeness",
        "completeness-day",
        "incidents-all",
        "incident",
        "promises",
        "limits",
        "calendar-job",
        "blackouts",
        "blackout-new",
        "job-calendar-edit",
        "run-blackout",
        "job-graph",
        "limit-job",
        "job-rounds",
        "round",
        "backfills",
        "backfill",
        "backfill-new",
        "logs-failed",
        "job-promises-edit",
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
def test_every_page_in_each_look(
    console: Console, open_page: OpenPage, watch: Watch, look: Look, pytestconfig: pytest.Config
) -> None:
    page = open_page("/", own=True, locale=look.locale, color_scheme=look.theme, viewport=look.size)
    page.add_init_script(AXE_SCRIPT)  # compiled once, not for each page
    problems, shown = [], pages(console)
    assert shown.keys() >= COLOURFUL
    is_whole = pytestconfig.getoption("all")
    names = [*shown] if is_whole else share_of(look, shown)
    for name in names:
        path = shown[name]
        page.goto(console.url + path)
        watch.await_quiet(page)
        if name == "missing":  # its status is in the browser's console
            watch.problems.clear()
        found = [*problems_of(page, name, look, is_whole=is_whole), *watch.problems]
        problems += [f"{name}: {problem}" for problem in found]
        watch.problems.clear()
    assert not problems, "\n".join(problems)


def share_of(look: Look, names: Collection[str]) -> list[str]:
    """Return the pages of a look in the default run: every second of the colourful ones and of the others."""
    number = [each.values[0] for each in LOOKS[:SHARES]].index(look)
    kinds = ([name for name in names if (name in COLOURFUL) is colourful] for colourful in (True, False))
    return [name for kind in kinds for name in kind[number::SHARES]]


def problems_of(page: Page, name: str, look: Look, *, is_whole: bool) -> list[str]:
    """Return the problems of an open page; ``is_whole``: the look has all pages."""
    expect(page.locator("main"), name).to_be_visible()
    expect(page.locator("html"), name).to_have_attribute("lang", look.language)
    expect(page.locator("html"), name).to_have_attribute("data-bs-theme", look.theme)
    if name in DRAWN:
        expect(page.locator(DRAWN[name]).first, name).to_be_visible()
    problems = [f"wider than the window: {where}" for where in page.evaluate(WIDER)]
    rules: dict[str, object] | None = CONTRAST_ONLY if name in COLOURFUL else None
    if not is_whole:
        rules = {} if name in COLOURFUL else WITHOUT_CONTRAST
    elif look == LOOKS[0].values[0]:
        rules = {}
    if rules is not None:
        problems += page.evaluate(AXE, rules)
    return problems
