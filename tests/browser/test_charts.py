"""Charts: one card for the text of a bar, a legend that filters, bars by keyboard.

Tab stops once per row, arrow keys move within it, Enter opens the run.
"""

import re

import pytest
from playwright.sync_api import expect

from tests.support.browser import OpenPage

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    ("path", "row"), [("/?hours=6", "#run-timeline [data-bars]"), ("/jobinfo", ".strip")]
)
def test_arrow_keys_move_between_bars(open_page: OpenPage, path: str, row: str) -> None:
    page = open_page(path)
    index = page.evaluate(
        "(row) => [...document.querySelectorAll(row)].findIndex((at) => at.querySelectorAll('a').length > 2)",
        row,
    )
    bars = page.locator(row).nth(index).locator("a")
    count = bars.count()
    expect(page.locator(row).nth(index).locator("a[tabindex='0']")).to_have_count(1)
    bars.last.focus()
    page.keyboard.press("ArrowRight")
    expect(bars.last).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(bars.nth(count - 2)).to_be_focused()
    page.keyboard.press("Home")
    expect(bars.first).to_be_focused()
    expect(page.locator(row).nth(index).locator("a[tabindex='0']")).to_have_count(1)
    page.keyboard.press("Tab")
    assert page.evaluate(
        "([row, index]) => document.activeElement.closest(row) !== document.querySelectorAll(row)[index]",
        [row, index],
    )
    bars.first.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/joblog/\d+$"))


def test_the_days_of_a_year_are_a_grid_that_shows_its_end(open_page: OpenPage) -> None:
    page = open_page("/load", viewport={"width": 390, "height": 844})
    days = page.locator("#calendar [data-bars] a")
    count = days.count()
    days.last.focus()
    expect(days.last).to_be_in_viewport()
    for key, back in (("ArrowLeft", 7), ("ArrowUp", 8), ("ArrowDown", 7), ("ArrowRight", 0)):
        page.keyboard.press(key)
        expect(days.nth(count - 1 - back)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/joblog\?range=custom&from=\d{4}-\d\d-\d\dT00:00:00&to="))


def test_an_hour_links_to_the_jobs_that_start_in_it(open_page: OpenPage) -> None:
    page = open_page("/load", java_script_enabled=False)
    hour = page.locator(".heat td a").nth(30)
    label = hour.get_attribute("title") or ""
    hour.click()
    expect(page.locator("#starters h2")).to_have_text(label)
    expect(page.locator(".heat [aria-current]")).to_have_attribute("title", label)


def test_runs_that_overlap_are_on_lines_of_their_own(open_page: OpenPage) -> None:
    page = open_page("/")
    lane = page.locator("#run-timeline .lane", has_text="Pull exchange rates")
    places = lane.locator(".mark.success").evaluate_all(
        "(marks) => marks.map((mark) => mark.getAttribute('y'))"
    )
    assert {"13", "37"} == set(places)
    expect(lane.locator("a[aria-label*=' min ']").first).to_have_attribute(
        "aria-label", re.compile(r"Run \d+ · Succeeded · \d+ min \d+ s · \d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
    )


#: where a bar of each chart is, and the text of its card
CARDS = {
    "/": [(".days-chart .bars a", r"^\d{4}-\d\d-\d\d"), ("#run-timeline [data-track] a", r"^Run \d+|^\d+ ")],
    "/load?all=1": [
        ("#planned .bars a", r" starts?$|\d$"),
        (".heat td a", r" \d\d:00"),
        ("#calendar .calendar a", r"runs?|no run"),
    ],
    "/jobinfo": [(".strip a", r"^[A-Z]")],
    "/jobinfo/1": [(".bars a", r"^Run \d+")],
}


@pytest.mark.parametrize("path", CARDS)
def test_every_chart_has_the_same_card(open_page: OpenPage, path: str) -> None:
    page = open_page(path)
    card = page.locator(".chart-card")
    for selector, text in CARDS[path]:
        bar = page.locator(selector).last
        expect(card).to_be_hidden()
        bar.locator(".hit, .mark, .day").or_(bar).last.hover()
        expect(card).to_be_visible()
        expect(card).to_contain_text(re.compile(text))
        expect(bar.locator("title")).to_have_count(0)
        page.keyboard.press("Escape")
        expect(card).to_be_hidden()
        bar.focus()
        page.keyboard.press("Home")
        expect(card).to_be_visible()
        page.keyboard.press("Escape")
        expect(card).to_be_hidden()
        page.mouse.move(0, 0)


def test_a_finger_shows_the_card_first_and_then_opens_the_run(open_page: OpenPage) -> None:
    page = open_page("/jobinfo/1", viewport={"width": 390, "height": 844}, has_touch=True)
    bar = page.locator(".bars a").last
    bar.tap()
    expect(page.locator(".chart-card")).to_contain_text("Run ")
    page.locator("h1").tap()
    expect(page.locator(".chart-card")).to_be_hidden()
    bar.tap()
    bar.tap()
    expect(page).to_have_url(re.compile(r"/joblog/\d+$"))


def test_the_legend_hides_a_result_and_the_rest_fills_the_chart(open_page: OpenPage) -> None:
    page = open_page("/")
    chart = page.locator(".days-chart")
    good, bad = chart.locator(".bars .success"), chart.locator(".bars .bar.danger")
    button = chart.get_by_role("button", name="Succeeded")
    heights = """(bars) => bars.map((bar) => Number(bar.getAttribute("height")))"""
    before = bad.evaluate_all(heights)
    expect(button).to_have_attribute("aria-pressed", "true")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")
    expect(good.first).to_be_hidden()
    after = bad.evaluate_all(heights)
    assert max(after) > 100 > max(before)
    page.evaluate("document.dispatchEvent(new CustomEvent('live-wanted'))")
    page.wait_for_load_state("networkidle")
    expect(good.first).to_be_hidden()
    button.click()
    expect(good.first).to_be_visible()
    assert bad.evaluate_all(heights) == before


def test_the_legend_of_the_timeline_hides_its_marks(open_page: OpenPage) -> None:
    page = open_page("/")
    marks = page.locator("#run-timeline [data-track] .mark.success")
    expect(marks.first).to_be_visible()
    page.locator("#run-timeline [data-legend]").get_by_role("button", name="Succeeded").click()
    expect(marks.first).to_be_hidden()


def test_without_scripts_bars_have_titles_and_the_legend_is_inert(open_page: OpenPage) -> None:
    page = open_page("/", java_script_enabled=False)
    expect(page.locator(".days-chart .bars a title").last).to_have_text(re.compile(r"^\d{4}-\d\d-\d\d · "))
    button = page.locator(".days-chart [data-legend] button").first
    assert button.get_attribute("aria-pressed") is None
