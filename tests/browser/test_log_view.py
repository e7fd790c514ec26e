"""Log viewer: colours, times, search, copying, following the end, and the elapsed time."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.serving import LOG_LINES, Console
from tests.support.browser import OpenPage, Watch

pytestmark = pytest.mark.browser


@pytest.fixture
def log_url(console: Console) -> str:
    return f"{console.url}/joblog/{console.seeded.log_id}"


@pytest.fixture
def unread(open_page: OpenPage) -> Page:
    """A page that has not opened the log yet, for answers of the test's own."""
    return open_page("/health")


@pytest.fixture
def timed(open_page: OpenPage) -> Page:
    """An unread page that a test gives a clock."""
    return open_page("/health", own=True)


@pytest.fixture
def page(console: Console, open_page: OpenPage) -> Page:
    opened = open_page(f"/joblog/{console.seeded.log_id}")
    expect(opened.locator("[data-log-status]")).to_contain_text("End of the log")
    return opened


def test_terminal_colours_are_shown_and_other_sequences_are_not(page: Page) -> None:
    line = page.locator("#L4 > .msg")
    expect(line).to_have_text("red green yellow blue end")
    expect(page.locator("#L4 > .src")).to_have_text("demo.py:35")
    expect(line.locator(".ansi-31")).to_have_text("red")
    expect(line.locator(".ansi-32.ansi-bold")).to_have_text("green")
    expect(line.locator(".ansi-93")).to_have_text("yellow")
    expect(line.locator(".ansi-34")).to_have_text("blue")


def test_line_times_can_be_hidden_and_are_then_not_copied(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    stamp = page.locator("#L1 .stamp")
    expect(stamp).to_have_text("08:00:00")
    page.locator(".toggle", has_text="Time").click()
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


def open_sample_log(
    page: Page, log_url: str, *pieces: list[str], before: Callable[[], object] = lambda: None
) -> None:
    """Open a log of these lines, one piece per answer; ``before`` is called before the first of them."""
    held = [True]

    def answer(route: Route) -> None:
        first = int(route.request.url.rsplit("=", 1)[1])
        number = [sum(map(len, pieces[:number])) for number in range(len(pieces))].index(first - 1)
        lines = [] if held[0] else pieces[number]
        end = number == len(pieces) - 1 and not held[0]
        answered = {"from": first, "to": first + len(lines) - 1, "lines": lines, "end": end, "note": ""}
        route.fulfill(json=answered)

    page.route("**/lines?*", answer)
    page.clock.install()
    page.goto(log_url)
    expect(page.locator("[data-log-status]")).to_contain_text("Waiting")
    before()
    held[0] = False
    for piece in range(len(pieces)):
        with page.expect_response("**/lines?*"):
            page.clock.run_for(2_000)
        expect(page.locator("#log .log-line")).to_have_count(sum(map(len, pieces[: piece + 1])))


@pytest.mark.parametrize("outcome", [{"outcome": "success"}, {}], ids=["ended", "running"])
def test_lines_that_exist_are_fetched_without_a_pause(
    timed: Page, log_url: str, outcome: dict[str, str]
) -> None:
    lines = ["a longer line " * 10] * 300

    def answer(route: Route) -> None:
        first = int(route.request.url.rsplit("=", 1)[1])
        part = lines if first <= 3 * len(lines) else []
        counted = {"from": first, "to": first + len(part) - 1, "lines": part}
        route.fulfill(json={**counted, **outcome, "end": not part, "note": ""})

    timed.route("**/lines?*", answer)
    timed.clock.install(time=0)
    timed.clock.pause_at(1_000)
    timed.goto(log_url)
    for number in (1, 2, 3):
        expect(timed.locator(f"#L{number * len(lines)}")).to_be_attached()
        expect(timed.locator("[data-log-status]")).to_contain_text("Loading…")
        timed.clock.run_for(1)
    expect(timed.locator("[data-log-status]")).to_contain_text("End of the log")


def test_an_ended_run_that_still_writes_is_asked_after_a_pause(timed: Page, log_url: str) -> None:
    asked: list[int] = []

    def answer(route: Route) -> None:
        asked.append(int(route.request.url.rsplit("=", 1)[1]))
        one = {"from": asked[-1], "to": asked[-1], "lines": ["a line"], "outcome": "timeout"}
        route.fulfill(json={**one, "end": False, "note": ""})

    timed.route("**/lines?*", answer)
    timed.clock.install(time=0)
    timed.clock.pause_at(1_000)
    timed.goto(log_url)
    status = timed.locator("[data-log-status]")
    for number in (1, 2):
        expect(timed.locator(f"#L{number}")).to_be_attached()
        expect(status).to_contain_text("Waiting for output…")
        timed.clock.run_for(499)
        assert asked == [1, 2][:number]
        timed.clock.run_for(1)


def test_an_internal_error_is_not_asked_for_without_end(timed: Page, log_url: str, watch: Watch) -> None:
    text = "Internal error. It is logged under number 1234567890ab."
    timed.route("**/lines?*", lambda route: route.fulfill(status=500, json={"msg": text}))
    timed.clock.install()
    timed.goto(log_url)
    for _ in range(19):
        expect(timed.locator("[data-log-status]")).to_have_text(text)
        with timed.expect_response("**/lines?*"):
            timed.clock.run_for(5_000)
    timed.unroute("**/lines?*")
    watch.await_quiet(timed)
    timed.clock.run_for(60_000)
    watch.await_quiet(timed)
    expect(timed.locator("[data-log-status]")).to_have_text(text)
    assert len(watch.problems) == 20
    watch.problems.clear()  # the browser logs what failed


#: answer in place of the lines, and whether it is asked for again
NO_LINES: dict[str, tuple[Callable[[Route], None], str, bool]] = {
    "no network": (lambda route: route.abort(), "The console does not answer. Trying again…", True),
    "gateway": (
        lambda route: route.fulfill(status=502, body="<h1>502</h1>"),
        "The console does not answer. Trying again…",
        True,
    ),
    "a 404 of a proxy": (
        lambda route: route.fulfill(status=404, body="404 page not found"),
        "The console does not answer. Trying again…",
        True,
    ),
    "a 403 of a proxy": (
        lambda route: route.fulfill(status=403, json={"message": "Forbidden"}),
        "The console does not answer. Trying again…",
        True,
    ),
    "busy": (
        lambda route: route.fulfill(status=503, json={"msg": "The database is busy."}),
        "The database is busy.",
        True,
    ),
    "executor": (
        lambda route: route.fulfill(json={"error": "10.0.0.5: no route"}),
        "The executor does not answer. Trying again… (10.0.0.5: no route)",
        True,
    ),
    "deleted": (
        lambda route: route.fulfill(status=404, json={"msg": "Log id is invalid"}),
        "No longer updated: deleted, or you have no access to it any more.",
        False,
    ),
}


@pytest.mark.parametrize("answer", NO_LINES)
def test_a_log_that_cannot_be_read_names_who_does_not_answer(
    timed: Page, log_url: str, watch: Watch, answer: str
) -> None:
    handle, text, is_repeated = NO_LINES[answer]
    timed.route("**/lines?*", handle)
    timed.clock.install()
    timed.goto(log_url)
    expect(timed.locator("[data-log-status]")).to_have_text(text)
    timed.unroute("**/lines?*")
    timed.clock.run_for(6_000)
    watch.await_quiet(timed)
    expect(timed.locator("[data-log-status]")).to_have_text("End of the log." if is_repeated else text)
    watch.problems.clear()  # the browser logs what failed


def test_a_match_is_marked_at_its_place_after_any_letters(timed: Page, log_url: str) -> None:
    field, found = timed.get_by_label("Find in the log"), timed.locator("[data-found]")
    pieces = ["first"], ["İİİİİİİİxx", "😀 a.b*(c)[d] \\ ẞ-/"], ["last xx"]
    open_sample_log(timed, log_url, *pieces, before=lambda: field.fill("XX"))
    expect(found).to_have_text("2")
    ranges = "Array.from(CSS.highlights.get('log-find'), (range) => range.toString())"
    assert timed.evaluate(ranges) == ["xx", "xx"]
    for text in ("A.B*(C)[D]", "\\", "-/", "😀", "ß"):
        field.fill(text)
        expect(found).to_have_text("1/1")
    field.fill("a.b.")
    expect(found).to_have_text("0")


def test_reading_continues_when_searching_fails(timed: Page, log_url: str) -> None:
    def break_search() -> None:
        timed.get_by_label("Find in the log").fill("x")
        timed.evaluate("() => { CSS.highlights.set = () => { throw new Error('broken'); }; }")

    open_sample_log(timed, log_url, ["x 1"], ["x 2"], ["x 3"], before=break_search)
    expect(timed.locator("#log")).to_contain_text("x 3")


def test_the_first_error_is_one_key_away(timed: Page, log_url: str) -> None:
    traceback = [
        "Traceback (most recent call last):",
        '  File "a.py", line 2, in f',
        "    g()",
        "ValueError: no",
    ]
    open_sample_log(timed, log_url, ["0 errors", *["fine"] * 200, *traceback, "fine", "Caused by: x"])
    timed.get_by_role("button", name="Errors: 2").click()
    expect(timed.locator(".log-line.current")).to_have_text("202Traceback (most recent call last):")
    expect(timed.locator("[data-first-error]")).to_have_text("Error 1 of 2")
    timed.get_by_role("button", name="Next error").click()
    expect(timed.locator(".log-line.current")).to_have_text("207Caused by: x")
    timed.get_by_role("button", name="Previous error").click()
    expect(timed.locator("[data-first-error]")).to_have_text("Error 1 of 2")
    expect(timed.locator(".log-line.current")).to_be_in_viewport()
    expect(timed.locator(".log-line.level-frame")).to_have_count(2)
    timed.locator("#log").evaluate("(log) => { log.scrollTop = 0; }")
    timed.locator("#log").press("e")
    expect(timed.locator(".log-line.current")).to_be_in_viewport()


def test_the_first_error_of_a_page_just_opened_is_one_key_away(page: Page) -> None:
    page.keyboard.press("e")
    expect(page.locator(".log-line.current")).to_contain_text("order 4711")
    expect(page.locator("#log")).to_be_focused()


def test_a_log_is_copied_where_the_browser_offers_no_clipboard(page: Page) -> None:
    # pages of plain http, other than those of this host
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.evaluate("document.addEventListener('copy', () => { window.copied = getSelection().toString(); })")
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_focused()
    assert len(page.evaluate("copied").split("\n")) == len(LOG_LINES) + 1


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
    expect(page.get_by_role("link", name="Kill the run")).to_be_visible()


def long_log(page: Page, log_url: str, *, errors: int | None = None) -> list[str]:
    """Open the log of a run that has ended, of 20,000 lines; return the queries of the page."""
    lines = [f"2026-11-20 08:00:00 [a.py:1] INFO order {number}" for number in range(1, 20_001)]
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url.partition("?")[2])
        query = dict(part.split("=") for part in asked[-1].split("&"))
        first, last = int(query["from"]), int(query.get("to", len(lines)))
        if "last" in query:
            first = max(first, len(lines) - int(query["last"]) + 1)
        part = lines[first - 1 : min(last, first + 1_999)]
        counted = {} if errors is None or "last" not in query else {"errors": errors}
        route.fulfill(
            json={"from": first, "to": first + len(part) - 1, "lines": part, "outcome": "success"}
            | {"end": not part or errors is not None, "note": "", **counted}
        )

    page.route("**/lines?*", answer)
    page.goto(log_url)
    expect(page.locator("[data-log-status]")).to_contain_text("End of the log")
    return asked


def test_a_long_log_opens_at_its_end(unread: Page, log_url: str) -> None:
    asked = long_log(unread, log_url)
    assert asked == ["last=1000&from=1", "from=20001"]
    expect(unread.locator("#L20000")).to_be_in_viewport()
    expect(unread.locator("#log .log-line")).to_have_count(1_000)
    expect(unread.locator("[data-output-tab]")).to_contain_text("20,000 lines")


def test_a_failed_log_opens_at_its_last_error(console: Console, open_page: OpenPage) -> None:
    failed = open_page(f"/joblog/{console.seeded.log_id + 1}")
    expect(failed.locator("[data-log-status]")).to_contain_text("End of the log")
    expect(failed.locator("#log .log-line", has_text="order 4711")).to_be_in_viewport()
    expect(failed.locator("#L124")).not_to_be_in_viewport()


def test_earlier_lines_are_loaded_by_scrolling_and_by_a_button(unread: Page, log_url: str) -> None:
    asked = long_log(unread, log_url, errors=200)
    assert asked == ["last=1000&from=1"]
    expect(unread.get_by_role("button", name="Errors: 200")).to_be_visible()
    unread.get_by_role("button", name="Earlier lines").click()
    expect(unread.locator("#L18001")).to_be_attached()
    expect(unread.locator("#L20000")).to_be_in_viewport()
    unread.locator("#log").evaluate("(log) => { log.scrollTop = 0; }")
    expect(unread.locator("#L17001")).to_be_attached()
    expect(unread.locator("#L18001")).to_be_in_viewport()


def test_a_linked_line_is_loaded(unread: Page, log_url: str) -> None:
    long_log(unread, f"{log_url}#L15000")
    expect(unread.locator("#L15000.current")).to_be_in_viewport()


def test_lines_of_the_client_are_folded(timed: Page, log_url: str) -> None:
    start = "2026-11-20 08:00:00 ----------- job execute start, param: null -----------"
    open_sample_log(timed, log_url, [start, "2026-11-20 08:00:01 [a.py:1] begin"], ["end"])
    fold = timed.locator(".log-fold")
    expect(fold.locator("summary")).to_have_text("1job execute start, param: null")
    expect(timed.locator("#L1")).to_be_hidden()
    fold.locator("summary").click()
    expect(timed.locator("#L1")).to_be_visible()


def test_hidden_columns_are_remembered(page: Page, log_url: str) -> None:
    page.locator(".toggle", has_text="Source").click()
    expect(page.locator("#L1 .src")).to_be_hidden()
    page.goto(log_url)
    expect(page.locator("[data-log-status]")).to_contain_text("End of the log")
    expect(page.locator("#L1 .src")).to_be_hidden()
    expect(page.locator("#L1 .stamp")).to_be_visible()


def test_without_scripts_the_last_lines_are_in_the_page(console: Console, open_page: OpenPage) -> None:
    page = open_page(f"/joblog/{console.seeded.log_id}", java_script_enabled=False)
    expect(page.locator(".log-line").last).to_contain_text("order 5119 closed")
    expect(page.locator("[data-log-tools]")).to_have_count(0)


#: lines of an archived log that were kept, and what the page says of the others
HEAD, TAIL = range(1, 1_501), range(3_001, 4_501)
GAP = {"from": 1_501, "to": 3_000, "text": "Lines 1501–3000 were not kept: the log is longer than 16 MB"}
LOST = {"from": 4_501, "to": 0, "text": "Lines from 4501 on were not fetched: the instance did not answer"}


def answer_archived(route: Route) -> None:
    """Answer as the console does for a log with a gap, whose executor is gone."""
    asked = {name: int(value) for name, value in re.findall(r"(from|to|last)=(\d+)", route.request.url)}
    first = asked["from"]
    numbers = [number for number in TAIL if number >= first][-asked.get("last", 1_000) :]
    if "to" in asked:
        kept = HEAD if first in HEAD else TAIL
        numbers = [number for number in kept if first <= number <= asked["to"]]
    lines = [f"line {number}" for number in numbers]
    start = numbers[0] if numbers else first
    part = {"from": start, "to": start + len(lines) - 1, "lines": lines, "missing": [GAP, LOST], "note": ""}
    route.fulfill(json=part | {"end": not lines, "outcome": "failed"})


def test_lines_that_were_not_kept_are_named_between_the_others(unread: Page, log_url: str) -> None:
    unread.route("**/lines?*", answer_archived)
    unread.goto(log_url)
    expect(unread.locator("[data-log-status]")).to_contain_text(str(LOST["text"]))
    lines, gap = unread.locator("#log .log-line"), unread.locator("#log .log-missing")
    earlier = unread.get_by_role("button", name="Earlier lines")
    expect(lines).to_have_count(1_000)
    expect(gap).to_have_count(0)
    earlier.click()
    expect(lines).to_have_count(1_500)
    earlier.click()
    expect(lines).to_have_count(2_500)
    expect(gap).to_have_text(str(GAP["text"]))
    assert gap.evaluate("row => [row.previousElementSibling.id, row.nextElementSibling.id]") == [
        "L1500",
        "L3001",
    ]
    earlier.click()
    expect(lines).to_have_count(3_000)
    expect(earlier).to_be_hidden()


def test_a_link_leads_to_a_line_before_a_gap(unread: Page, log_url: str) -> None:
    unread.route("**/lines?*", answer_archived)
    unread.goto(f"{log_url}#L700")
    expect(unread.locator("#L700")).to_be_in_viewport()
    expect(unread.locator("#log .log-missing")).to_have_count(1)
