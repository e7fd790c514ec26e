"""Bars by keyboard: Tab stops once per row, arrow keys move within it, Enter opens the run."""

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
    bars = page.locator(row).nth(1).locator("a")
    count = bars.count()
    assert count > 2
    expect(page.locator(row).nth(1).locator("a[tabindex='0']")).to_have_count(1)
    bars.last.focus()
    page.keyboard.press("ArrowRight")
    expect(bars.last).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(bars.nth(count - 2)).to_be_focused()
    page.keyboard.press("Home")
    expect(bars.first).to_be_focused()
    expect(page.locator(row).nth(1).locator("a[tabindex='0']")).to_have_count(1)
    page.keyboard.press("Tab")
    assert page.evaluate(
        "(row) => document.activeElement.closest(row) !== document.querySelectorAll(row)[1]", row
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
    expect(lane.locator("a title", has_text=" min ").first).to_have_text(
        re.compile(r"Run \d+ · Succeeded · \d+ min \d+ s · \d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
    )
