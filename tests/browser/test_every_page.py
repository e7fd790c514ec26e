"""Every page in each look, loaded once, then checked for everything that holds for all pages."""

from dataclasses import dataclass

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.conftest import OpenPage, Watch
from tests.browser.screenshots import pages
from tests.browser.serving import Console

pytestmark = pytest.mark.browser

DESKTOP: ViewportSize = {"width": 1280, "height": 720}
PHONE: ViewportSize = {"width": 390, "height": 844}


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
    "dashboard": ".ring",
    "log": ".log-line",
    "glue": ".cm-content",
}
WIDER = (
    "document.documentElement.scrollWidth > window.innerWidth ? [document.documentElement.scrollWidth] : []"
)

CONTRAST = """
() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const lin = (v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  const lum = ([r, g, b]) => 0.2126 * lin(r) + 0.7152 * lin(g) + 0.0722 * lin(b);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      const scale = colour.startsWith("color(srgb") ? 255 : 1;
      const [r, g, b, a = 1] = parse(colour).map((v, i) => (i < 3 ? v * scale : v));
      if (a > 0.99) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const low = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim()) continue;
    if (!element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    if (element.closest(".visually-hidden, .skip-link, script, noscript, option")) continue;
    if (element.closest("canvas, .cm-editor, .tile-icon")) continue;
    const style = getComputedStyle(element);
    const front = parse(style.color);
    const [a, b] = [lum(front), lum(behind(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && parseInt(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) low.push([ratio.toFixed(2), element.outerHTML.slice(0, 120)].join(" "));
  }
  return low;
}
"""

UNNAMED = """
() => Array.from(document.querySelectorAll("a, button, input:not([type=hidden]), select, textarea"))
  .filter((element) => element.checkVisibility({ visibilityProperty: true }))
  .filter((element) => !element.getAttribute("aria-label") && !element.textContent.trim())
  .filter((element) => !element.labels?.length)
  .map((element) => element.outerHTML.slice(0, 120))
"""

#: problem -> script that returns where it is
CHECKS = {
    "wider than the window": WIDER,
    "text too close to its ground": CONTRAST,
    "a control without a name": UNNAMED,
}


@pytest.mark.parametrize("look", LOOKS)
def test_every_page_in_each_look(console: Console, open_page: OpenPage, watch: Watch, look: Look) -> None:
    page = open_page("/", locale=look.locale, color_scheme=look.theme, viewport=look.size)
    problems = []
    for name, path in pages(console).items():
        if name != "missing":
            page.goto(console.url + path)
            watch.await_quiet(page)
            problems += [
                f"{name}: {problem}" for problem in (*problems_of(page, name, look), *watch.problems)
            ]
            watch.problems.clear()
    assert not problems, "\n".join(problems)


def problems_of(page: Page, name: str, look: Look) -> list[str]:
    """Return the problems of an open page."""
    expect(page.locator("main"), name).to_be_visible()
    expect(page.locator("html"), name).to_have_attribute("lang", look.language)
    expect(page.locator("html"), name).to_have_attribute("data-bs-theme", look.theme)
    if name in DRAWN:
        expect(page.locator(DRAWN[name]).first, name).to_be_visible()
    return [f"{problem}: {where}" for problem, script in CHECKS.items() for where in page.evaluate(script)]
