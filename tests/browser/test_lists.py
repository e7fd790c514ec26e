"""Lists on their screens: rows that fit a window, cards and folded filters on a phone, times that tick."""

import re

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.serving import Console
from tests.support.browser import PHONE, WIDE, WIDER, OpenPage

pytestmark = pytest.mark.browser

#: height of the tallest row in px, and the number of rows whole in the window
ROWS = """() => {
  const rows = Array.from(document.querySelectorAll("tbody tr"), (row) => row.getBoundingClientRect());
  const whole = rows.filter((row) => row.bottom < window.innerHeight);
  return [Math.max(...rows.map((row) => row.height)), whole.length];
}"""

#: a time in seconds, which may be "just now" a tick earlier
SECONDS = re.compile("second|秒")
#: right ends of the buttons of the first row
BUTTONS = """() => Array.from(document.querySelectorAll("tbody tr:first-child .act > :not([popover])"),
  (each) => each.getBoundingClientRect().right)"""
#: links to sort by that are cut at the end of their column
CUT_HEADS = """() => Array.from(document.querySelectorAll("thead .sort")).filter(
  (link) => link.getBoundingClientRect().right > link.closest("th").getBoundingClientRect().right
).map((link) => link.textContent)"""
#: executors and instances of runs that are cut
CUT_INSTANCES = """() => Array.from(document.querySelectorAll(".grid.runs .sub")).filter(
  (each) => each.scrollWidth > each.clientWidth).map((each) => each.textContent)"""
#: names of jobs that are cut
CUT_NAMES = """() => Array.from(document.querySelectorAll(".grid.jobs .name .cut")).filter(
  (each) => each.scrollWidth > each.clientWidth).map((each) => each.textContent)"""
#: pixels of the year that are scrolled out of its box
HIDDEN = """() => {
  const year = document.querySelector(".year");
  return year.scrollWidth - year.clientWidth;
}"""


@pytest.mark.parametrize("width", [1280, 1024])
def test_the_menu_of_a_job_is_in_the_window_however_narrow_it_is(open_page: OpenPage, width: int) -> None:
    page = open_page("/jobinfo", viewport={"width": width, "height": 800})
    assert max(page.evaluate(BUTTONS)) <= width
    page.locator("tbody button[popovertarget]").first.click()
    expect(page.get_by_role("link", name="Delete")).to_be_visible()


def test_the_heads_of_the_job_list_are_whole_in_a_usual_window(open_page: OpenPage) -> None:
    page = open_page("/jobinfo", viewport={"width": 1280, "height": 800})
    assert page.evaluate(CUT_HEADS) == []


@pytest.mark.parametrize("width", [1024, 1130, 1280, 1440])
def test_names_of_jobs_are_whole_in_narrow_windows(open_page: OpenPage, width: int) -> None:
    page = open_page("/jobinfo", viewport={"width": width, "height": 800})
    assert page.evaluate(CUT_NAMES) == []


def test_the_year_fits_a_usual_window(open_page: OpenPage) -> None:
    page = open_page("/load", viewport={"width": 1265, "height": 800})  # 1280 without a scroll bar
    assert page.evaluate(HIDDEN) == 0


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_a_long_filter_makes_no_page_wider(open_page: OpenPage, size: ViewportSize) -> None:
    page = open_page(f"/jobinfo?jobDesc={'z' * 500}", viewport=size)
    expect(page.locator(".search-box")).to_contain_text("zzz")
    assert page.evaluate(WIDER) == []


@pytest.mark.parametrize("path", ["/joblog", "/user/audit"])
@pytest.mark.parametrize("width", [1200, 1440])
def test_a_period_from_one_time_to_another_makes_no_list_wider(
    open_page: OpenPage, path: str, width: int
) -> None:
    page = open_page(f"{path}?range=custom", viewport={"width": width, "height": 800})
    page.locator(".picks > summary").click()
    expect(page.get_by_label("From", exact=True)).to_be_visible()
    assert page.evaluate(WIDER) == []


def test_nineteen_runs_fit_a_window_and_are_cards_of_two_lines_on_a_phone(open_page: OpenPage) -> None:
    page = open_page("/joblog?range=all", viewport=WIDE)
    height, count = page.evaluate(ROWS)
    assert height < 38, "one line"
    assert count >= 19
    page.set_viewport_size(PHONE)
    height, count = page.evaluate(ROWS)
    assert height < 60, "two lines"
    assert count >= 9
    status = page.get_by_label("Status")
    expect(status).to_be_hidden()
    expect(page.locator("#q")).to_be_visible()
    page.locator(".picks > summary").click()
    expect(status).to_be_visible()
    page.goto(page.url.partition("?")[0])
    expect(page.locator("#q")).to_be_hidden()
    page.locator('label[for="search-open"]').click()
    expect(page.locator("#q")).to_be_visible()


@pytest.mark.parametrize("path", ["/user", "/user/audit", "/alarms", "/variables", "/jobgroup"])
def test_the_search_of_every_list_opens_on_a_phone(open_page: OpenPage, path: str) -> None:
    page = open_page(path, viewport=PHONE)
    expect(page.locator("#q")).to_be_hidden()
    page.locator('label[for="search-open"]').click()
    expect(page.locator("#q")).to_be_visible()
    page.locator(".picks > summary").click()
    expect(page.locator(".picks-panel")).to_be_visible()
    assert page.evaluate(WIDER) == []


def test_a_search_without_scripts_becomes_a_chip(open_page: OpenPage) -> None:
    page = open_page("/user", viewport=WIDE, java_script_enabled=False)
    page.locator("#q").fill("role:normal wang")
    page.locator("#q").press("Enter")
    expect(page.locator(".search-box .chip")).to_have_count(2)
    expect(page.locator("tbody tr")).to_have_count(1)


def test_executors_are_cards_of_two_lines_on_a_phone(open_page: OpenPage) -> None:
    page = open_page("/jobgroup", viewport=PHONE)
    height, _count = page.evaluate(ROWS)
    assert height < 64
    expect(page.locator("tbody tr").filter(has_text="shop-orders")).to_contain_text("failed")


def test_a_typed_filter_becomes_a_chip_that_is_removed(console: Console, open_page: OpenPage) -> None:
    page = open_page("/joblog", viewport=WIDE)
    page.keyboard.press("/")
    page.keyboard.type("status:not-started reminders period:day")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"jobId=\d+"))
    expect(page.locator(".search-box .chip")).to_have_count(3)
    expect(page.locator(".search-box .chip").first).to_contain_text("Send reminders")
    expect(page.locator("tbody .run-cell").first).to_contain_text(re.compile("Not started|Waiting"))
    page.locator(".search-box .chip", has_text="Not started").click()
    expect(page.locator(".search-box .chip")).to_have_count(2)
    page.locator("#q").fill(f"#{console.seeded.log_id}")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{console.url}/joblog/{console.seeded.log_id}")


def test_keys_move_through_runs_and_open_one(open_page: OpenPage) -> None:
    page = open_page("/joblog?range=all", viewport=WIDE)
    row = page.locator('[data-part^="run-"]').nth(1)
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(row.locator(".run-cell a")).to_be_focused()
    page.keyboard.press(".")
    expect(row.get_by_role("link", name="Output")).to_be_visible()
    page.keyboard.press("Escape")
    row.locator(".run-cell a").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/joblog/\d+$"))


def test_the_instance_of_a_run_is_whole_in_a_usual_window(open_page: OpenPage) -> None:
    page = open_page("/joblog?range=all&length=50", viewport={"width": 1440, "height": 900})
    assert page.evaluate(CUT_INSTANCES) == []


@pytest.mark.parametrize("width", [360, 375])
def test_the_dashboard_fits_a_small_phone(open_page: OpenPage, width: int) -> None:
    page = open_page("/", viewport={"width": width, "height": 740})
    assert page.evaluate(WIDER) == []


@pytest.mark.parametrize("locale", ["en-US", "zh-CN", "zh-TW"])
def test_a_script_names_times_as_the_server_does(console: Console, open_page: OpenPage, locale: str) -> None:
    page = open_page(f"/jobgroup/{console.seeded.groups[0]}", locale=locale)
    days = texts_before_and_after_a_tick(page)
    page.goto(f"{console.url}/jobinfo")
    jobs = texts_before_and_after_a_tick(page)
    assert len(days) >= 4
    assert len(jobs) >= 10
    different = [pair for pair in days + jobs if pair[0] != pair[1] and not SECONDS.search(pair[1])]
    assert different == []
    assert any(":" in before for before, _after in days + jobs), "tomorrow 06:00"


def texts_before_and_after_a_tick(page: Page) -> list[tuple[str, str]]:
    """Return the relative times of a page as the server and as the script wrote them, with 9 for numbers."""
    times = page.locator("time[datetime]").filter(has_not_text=re.compile(r"^\d+[-:]"))
    before = times.all_text_contents()
    times.evaluate_all("(all) => all.forEach((time) => { time.textContent = '?'; })")
    expect(page.locator("time[datetime]").get_by_text("?", exact=True)).to_have_count(0)
    after = page.locator("time[datetime]").filter(has_not_text=re.compile(r"^\d+[-:]")).all_text_contents()
    return [
        (re.sub(r"\d+", "9", old), re.sub(r"\d+", "9", new)) for old, new in zip(before, after, strict=True)
    ]
