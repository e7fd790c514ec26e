"""The viewer of a run's log: colours, times, finding, copying, letting go of the end, and how long the run has taken."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.serving import LOG_LINES, Console

pytestmark = pytest.mark.browser


@pytest.fixture
def page(console: Console, open_page: OpenPage) -> Page:
    opened = open_page(f"/joblog/{console.seeded.log_id}")
    expect(opened.locator("[data-log-status]")).to_contain_text("End of the log")
    return opened


def test_colours_of_terminals_are_shown_and_other_sequences_are_not(page: Page) -> None:
    line = page.locator("#L4 > span")
    expect(line).to_have_text("2026-11-20 08:00:02 [demo.py:35] red green yellow blue end")
    expect(line.locator(".ansi-31")).to_have_text("red")
    expect(line.locator(".ansi-32.ansi-bold")).to_have_text("green")
    expect(line.locator(".ansi-93")).to_have_text("yellow")
    expect(line.locator(".ansi-34")).to_have_text("blue")


def test_the_times_of_the_lines_can_be_hidden_and_are_not_copied_then(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    stamp = page.locator("#L1 .stamp")
    expect(stamp).to_have_text("2026-11-20 08:00:00 ")
    page.get_by_label("Times").uncheck()
    expect(stamp).to_be_hidden()
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()").split("\n")
    assert copied[0] == "[demo.py:12] INFO begin, parameter region=eu"
    assert len(copied) == len(LOG_LINES) + 1


def test_one_goes_from_match_to_match(page: Page) -> None:
    field, found = page.get_by_label("Find in the log"), page.locator("[data-found]")
    field.fill("ORDER 501")
    expect(found).to_have_text("1/10")
    expect(page.get_by_label("Follow")).not_to_be_checked()
    expect(page.locator(".log-line.current")).to_contain_text("order 5010 closed")
    expect(page.locator(".log-line.current")).to_be_in_viewport()
    field.press("Shift+Enter")
    expect(found).to_have_text("10/10")
    page.get_by_role("button", name="Next match").click()
    expect(found).to_have_text("1/10")
    field.press("Enter")
    expect(found).to_have_text("2/10")
    field.fill("no such text")
    expect(found).to_have_text("0")
    field.fill("")
    expect(found).to_have_text("")
    expect(page.locator(".log-line.marked, .log-line.current")).to_have_count(0)


def test_scrolling_up_lets_go_of_the_end_and_down_takes_hold_again(page: Page) -> None:
    follow, view = page.get_by_label("Follow"), page.locator("#log")
    expect(follow).to_be_checked()
    view.hover()
    page.mouse.wheel(0, -400)
    expect(follow).not_to_be_checked()
    page.mouse.wheel(0, 5000)
    expect(follow).to_be_checked()


def test_a_log_is_downloaded(console: Console, page: Page) -> None:
    with page.expect_download() as started:
        page.get_by_role("link", name="Download").click()
    assert started.value.suggested_filename == f"run-{console.seeded.log_id}.log"


def test_a_run_under_way_says_how_long_it_has_taken(console: Console, open_page: OpenPage) -> None:
    page = open_page("/joblog?logStatus=3&range=all")
    page.locator("tbody td.id a").last.click()
    elapsed = page.locator("[data-elapsed]")
    expect(elapsed).to_have_text(re.compile(r"^(\d+:)?\d+:\d\d$"))
    first = elapsed.inner_text()
    expect(elapsed).not_to_have_text(first)
    expect(page.get_by_role("link", name="Kill job")).to_be_visible()
