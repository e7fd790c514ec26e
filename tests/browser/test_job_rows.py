"""Rows of the job list: keys, groups that fold, filters behind a button, columns that fit every width."""

import pytest
from playwright.sync_api import ViewportSize, expect

from tests.browser.serving import Console
from tests.support.browser import OpenPage

pytestmark = pytest.mark.browser

WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
#: names and words of states that are cut, although something beside them could give way
CUT = """[...document.querySelectorAll('.grid.jobs .state-cut .state')]
    .filter(word => word.getBoundingClientRect().right > word.closest('td').getBoundingClientRect().right + 1)
    .map(word => word.textContent)"""
#: tags of which only a part is seen
HALF_TAGS = """[...document.querySelectorAll('.grid.jobs .sub .chip')].filter(chip => {
    const box = chip.closest('.sub').getBoundingClientRect(), own = chip.getBoundingClientRect();
    return own.top < box.bottom && own.right > box.right + 1; }).map(chip => chip.textContent)"""


@pytest.mark.parametrize("width", [390, 1024, 1280, 1440, 1920])
def test_rows_fit_every_width(open_page: OpenPage, width: int) -> None:
    size: ViewportSize = {"width": width, "height": 844}
    page = open_page("/jobinfo", viewport=size)
    assert page.evaluate(WIDER) == 0
    first = page.locator('.grid.jobs [data-part^="job-"]').first
    box = first.bounding_box()
    assert box is not None
    if width == 390:
        assert box["y"] < 200, "the first job is on the first screen"
        assert box["height"] <= 62
    else:
        assert 36 <= box["height"] <= 38
        assert page.evaluate(CUT) == []
        assert page.evaluate(HALF_TAGS) == []


def test_the_head_of_the_list_stays_in_sight(open_page: OpenPage) -> None:
    page = open_page("/jobinfo", viewport={"width": 1440, "height": 400})
    page.mouse.wheel(0, 10_000)
    expect(page.locator("th.col-last")).to_be_in_viewport()


def test_keys_move_between_rows_and_act_on_one(console: Console, open_page: OpenPage) -> None:
    page = open_page("/jobinfo")
    rows = page.locator('.grid.jobs [data-part^="job-"]')
    page.keyboard.press("j")
    expect(rows.nth(0).locator(".name a")).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    link = rows.nth(1).locator(".name a")
    expect(link).to_be_focused()
    page.keyboard.press("x")
    expect(rows.nth(1).locator("[data-tick]")).to_be_checked()
    page.keyboard.press(".")
    menu = rows.nth(1).locator(".menu")
    expect(menu).to_be_visible()
    page.keyboard.press("j")
    expect(menu).to_be_visible()
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    link.focus()
    page.keyboard.press("r")
    expect(page.locator("dialog[open]")).to_contain_text("Run once")
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("jx")
    expect(page.locator("#q")).to_have_value("jx")
    target = link.get_attribute("href")
    link.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(console.url.removesuffix("/xxl-job-admin") + str(target))


def test_groups_fold_and_stay_so(open_page: OpenPage) -> None:
    page = open_page("/jobinfo")
    page.get_by_role("button", name="Display").click()
    page.locator("#view-menu").get_by_label("Executor").check()
    page.locator("#view-menu").get_by_role("button", name="Apply").click()
    button = page.locator("[data-collapse]").first
    rows = page.locator('.grid.jobs [data-part^="job-"]:visible')
    expect(button).to_have_attribute("aria-expanded", "true")
    total = rows.count()
    button.click()
    expect(button).to_have_attribute("aria-expanded", "false")
    assert 0 < rows.count() < total
    page.reload()
    expect(page.locator("[data-collapse]").first).to_have_attribute("aria-expanded", "false")
    page.locator("[data-collapse]").first.click()
    expect(rows).to_have_count(total)


def test_the_fields_behind_filter_close_like_a_menu(console: Console, open_page: OpenPage) -> None:
    page = open_page("/jobinfo")
    summary = page.get_by_text("Filter", exact=True)
    summary.click()
    expect(page.locator("#last")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#last")).to_be_hidden()
    summary.click()
    page.locator("#last").select_option("failing")
    page.locator(".picks").get_by_role("button", name="Apply").click()
    expect(page).to_have_url(f"{console.url}/jobinfo?last=failing")
    page.locator(".search-box .chip").click()
    expect(page).to_have_url(f"{console.url}/jobinfo")


def test_a_failing_job_has_how_often_in_a_row_and_since_when(open_page: OpenPage) -> None:
    page = open_page("/jobinfo?last=failing", viewport={"width": 1920, "height": 844})
    since = page.locator(".times", has_text="11×").locator("time")
    expect(since).to_have_text("9 hours")
    page.evaluate("document.querySelectorAll('.times time').forEach(time => { time.textContent = ''; })")
    expect(since).to_have_text("9 hours")
    page.set_viewport_size({"width": 1440, "height": 844})
    expect(since).to_be_hidden()
