"""Log viewer: colours, times, search, copying, following the end, and the elapsed time."""

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import OpenPage
from tests.browser.serving import LOG_LINES, Console

pytestmark = pytest.mark.browser


@pytest.fixture
def page(console: Console, open_page: OpenPage) -> Page:
    opened = open_page(f"/joblog/{console.seeded.log_id}")
    expect(opened.locator("[data-log-status]")).to_contain_text("End of the log")
    return opened


def test_terminal_colours_are_shown_and_other_sequences_are_not(page: Page) -> None:
    line = page.locator("#L4 > span")
    expect(line).to_have_text("2026-11-20 08:00:02 [demo.py:35] red green yellow blue end")
    expect(line.locator(".ansi-31")).to_have_text("red")
    expect(line.locator(".ansi-32.ansi-bold")).to_have_text("green")
    expect(line.locator(".ansi-93")).to_have_text("yellow")
    expect(line.locator(".ansi-34")).to_have_text("blue")


def test_line_times_can_be_hidden_and_are_then_not_copied(page: Page) -> None:
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


def test_search_moves_from_match_to_match(page: Page) -> None:
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


def open_sample_log(page: Page, console: Console, *pieces: list[str]) -> None:
    """Open a log of these lines in the viewer, one piece per answer."""

    def answer(route: Route) -> None:
        first = int(route.request.url.rsplit("=", 1)[1])
        before = [sum(map(len, pieces[:number])) for number in range(len(pieces))]
        number = before.index(first - 1)
        lines = pieces[number]
        end = number == len(pieces) - 1
        route.fulfill(
            json={"from": first, "to": first + len(lines) - 1, "lines": lines, "end": end, "note": ""}
        )

    page.route("**/made-up?from=*", answer)
    href = f"{console.url}/made-up"
    page.evaluate("href => document.dispatchEvent(new CustomEvent('log-open', {detail: href}))", href)
    expect(page.locator("#log .log-line")).to_have_count(sum(map(len, pieces)))
    expect(page.locator("[data-log-status]")).not_to_contain_text("Waiting")


def test_a_match_is_marked_at_its_place_after_any_letters(console: Console, page: Page) -> None:
    field, found = page.get_by_label("Find in the log"), page.locator("[data-found]")
    field.fill("XX")
    open_sample_log(page, console, ["first"], ["İİİİİİİİxx", "😀 a.b*(c)[d] \\ ẞ-/"], ["last xx"])
    expect(found).to_have_text("2")
    ranges = "Array.from(CSS.highlights.get('log-find'), (range) => range.toString())"
    assert page.evaluate(ranges) == ["xx", "xx"]
    for text in ("A.B*(C)[D]", "\\", "-/", "😀", "ß"):
        field.fill(text)
        expect(found).to_have_text("1/1")
    field.fill("a.b.")
    expect(found).to_have_text("0")


def test_reading_continues_when_searching_fails(console: Console, page: Page) -> None:
    page.get_by_label("Find in the log").fill("x")
    page.evaluate("() => { CSS.highlights.set = () => { throw new Error('broken'); }; }")
    open_sample_log(page, console, ["x 1"], ["x 2"], ["x 3"])
    expect(page.locator("#log")).to_contain_text("x 3")


def test_a_log_copied_twice_gets_its_button_back(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button = page.locator("[data-copy-log]")
    button.click()
    expect(button).to_have_text("Copied")
    button.click()
    expect(button).to_have_text("Copy")


def test_scrolling_up_stops_following_and_scrolling_down_resumes(page: Page) -> None:
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


def test_a_running_log_shows_the_elapsed_time(console: Console, open_page: OpenPage) -> None:
    page = open_page("/joblog?logStatus=3&range=all")
    page.locator("tbody td.id a").last.click()
    elapsed = page.locator("[data-elapsed]")
    expect(elapsed).to_have_text(re.compile(r"^(\d+:)?\d+:\d\d$"))
    first = elapsed.inner_text()
    expect(elapsed).not_to_have_text(first)
    expect(page.get_by_role("link", name="Kill job")).to_be_visible()
