"""Selected rows, shortcuts, the dashboard that refreshes itself, the editor's language, ending a login."""

import re

import pytest
from playwright.sync_api import expect

from app.clock import MINUTE_MS, now_ms
from app.database.engine import session_scope
from app.models.log import JobLog
from tests.browser.seed import NORMAL
from tests.browser.serving import Console
from tests.support.browser import OpenPage, Watch

pytestmark = pytest.mark.browser


def test_selected_rows_lead_to_one_confirmation(console: Console, open_page: OpenPage) -> None:
    page = open_page("/jobinfo")
    stop, ticked = page.locator("#bulk button").nth(1), page.locator("[data-tick]:checked")
    expect(stop).to_be_hidden()
    ticks = page.locator("[data-tick]")
    ticks.nth(0).click()
    ticks.nth(2).click(modifiers=["Shift"])
    expect(ticked).to_have_count(3)
    page.get_by_role("button", name="Clear selection").click()
    expect(ticked).to_have_count(0)
    expect(stop).to_be_hidden()
    ticks.nth(2).click()
    ticks.nth(0).click(modifiers=["Shift"])
    expect(page.locator("#bulk")).to_contain_text("3 selected")
    stop.click()
    expect(page.locator("h1")).to_have_text("Switch off the schedules of 3 jobs?")
    page.locator("main a.btn-default").click()
    expect(page).to_have_url(re.compile("/jobinfo$"))


@pytest.mark.extensive
def test_without_scripts_selected_rows_lead_there_too(console: Console, open_page: OpenPage) -> None:
    page = open_page("/jobinfo", java_script_enabled=False)
    page.locator("[data-tick]").nth(1).check()
    page.locator("#bulk button").nth(1).click()
    expect(page.locator("h1")).to_have_text("Switch off the schedule of 1 job?")


def test_going_back_and_submitting_again_runs_nothing_twice(console: Console, open_page: OpenPage) -> None:
    page = open_page("/jobinfo")
    for number in (0, 2):
        page.locator("[data-tick]").nth(number).click()
    page.locator("#bulk").get_by_role("button", name="Run once").click()
    result, run = page.locator("main .notice.success"), page.get_by_role("button", name="Run once")
    run.click()
    expect(result).to_contain_text("2 of 2 jobs: queued.")
    page.go_back()
    run.click()
    expect(page.locator("main")).to_contain_text("This form was already submitted")
    expect(result).to_contain_text("2 of 2 jobs: queued.")
    page.get_by_role("link", name="Back to the list").click()
    expect(page).to_have_url(re.compile("/jobinfo$"))


def test_shortcuts_open_pages_and_the_filters(console: Console, open_page: OpenPage) -> None:
    page = open_page("/")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("j")
    expect(page).to_have_url(f"{console.url}/jobinfo")
    page.wait_for_load_state("load")
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.type("gl?")
    expect(page.locator("#q")).to_have_value("gl?")
    expect(page).to_have_url(f"{console.url}/jobinfo")


def test_the_dot_live_pauses_the_dashboard(console: Console, open_page: OpenPage) -> None:
    page = open_page("/")
    button = page.locator("[data-live-pause]")
    expect(button).to_have_text("Live")
    expect(button).to_have_accessible_name("Live updates: on, click to pause")
    expect(page.locator("[data-live-age]")).to_be_hidden()  # only of a page that is stale
    button.click()
    expect(button).to_have_text("Paused")
    expect(button).to_have_accessible_name("Live updates: paused, click to go on")
    with page.expect_response(lambda response: response.url.rstrip("/") == console.url):
        button.click()
    expect(page.locator('[data-part="answer"]')).to_contain_text("jobs are failing")


def test_a_page_about_what_was_deleted_says_so_and_is_no_longer_updated(
    console: Console, open_page: OpenPage, watch: Watch
) -> None:
    page = open_page(f"/jobinfo/{console.seeded.jobs[0]}")
    gone = page.get_by_text("No longer updated: deleted")
    page.route("**/jobinfo/*", lambda route: route.fulfill(status=404, body="404 page not found"))
    page.evaluate("document.dispatchEvent(new Event('live-wanted'))")
    expect(page.locator("[data-live-age]")).to_contain_text("the console does not answer")  # a proxy does
    expect(gone).to_be_hidden()
    missing = page.request.get(f"{console.url}/jobinfo/2147483647", headers={"Accept": "text/html"})
    page.unroute("**/jobinfo/*")
    page.route("**/jobinfo/*", lambda route: route.fulfill(response=missing))
    page.evaluate("document.dispatchEvent(new Event('live-wanted'))")
    expect(gone).to_be_visible()
    expect(page.locator("[data-live-age]")).to_be_hidden()
    expect(page.locator("[data-live-pause]")).to_be_hidden()
    assert ["404" in each for each in watch.problems] == [True, True]
    watch.problems.clear()


def test_a_refresh_keeps_what_is_in_use_and_marks_what_is_new(console: Console, open_page: OpenPage) -> None:
    page = open_page("/")
    rows = page.locator("[data-part=attention-rows] tr")
    used = rows.first.locator("a").first
    address = used.get_attribute("href")
    page.locator("details summary").first.click()
    used.focus()
    at_ms = now_ms() // 1000 * 1000
    with session_scope() as session:
        failed = JobLog(
            job_group=console.seeded.groups[0],
            job_id=console.seeded.jobs[1],
            trigger_time=at_ms,
            trigger_code=200,
            handle_time=at_ms,
            handle_code=500,
        )
        session.add(failed)
    try:
        page.evaluate("document.dispatchEvent(new Event('live-wanted'))")
        expect(page.locator(f"[data-part=aj{failed.job_id}]")).to_have_class("live-changed")
        assert page.evaluate("document.activeElement.getAttribute('href')") == address
        expect(page.locator("details").first).to_have_attribute("open", "")
    finally:
        with session_scope() as session:
            session.delete(session.get_one(JobLog, failed.id))


def test_a_run_is_killed_from_the_dashboard_in_two_clicks(console: Console, open_page: OpenPage) -> None:
    at_ms = now_ms() // 1000 * 1000 - 60 * MINUTE_MS
    with session_scope() as session:
        address = session.get_one(JobLog, console.seeded.log_id).executor_address
        session.add(
            running := JobLog(
                job_group=console.seeded.groups[0],
                job_id=console.seeded.jobs[9],
                executor_address=address,
                trigger_time=at_ms,
                trigger_code=200,
                progress='{"done": 93, "total": 200, "text": "pages"}',
            )
        )
    page = open_page("/")
    row = page.locator(f"[data-part=nr{running.id}]")
    expect(row).to_contain_text("93 of 200 pages")
    row.get_by_role("link", name="Kill the run").click()
    page.get_by_role("dialog", name="Kill the run?").get_by_role("button", name="Kill the run").click()
    expect(page.locator("[data-toasts]")).to_contain_text(f"Run {running.id}")
    expect(page.get_by_role("heading", name="Dashboard")).to_be_visible()
    expect(row).to_have_count(0)
    with session_scope() as session:
        killed = session.get_one(JobLog, running.id)
        assert killed.handle_code == 500
        session.delete(killed)


def test_the_editor_uses_the_language_of_the_page(console: Console, open_page: OpenPage) -> None:
    page = open_page(f"/jobcode?jobId={console.seeded.jobs[5]}", locale="zh-CN")
    page.locator(".cm-content").click()
    page.keyboard.press("Control+f")
    panel = page.locator(".cm-search")
    expect(panel.get_by_placeholder("查找")).to_be_visible()
    expect(panel.get_by_role("button", name="全部替换")).to_be_visible()
    assert re.findall("[A-Za-z]{2,}", panel.inner_text()) == []


def test_a_login_ends_in_a_dialog(console: Console, open_page: OpenPage) -> None:
    open_page("/", user=NORMAL)
    page = open_page("/account", user=NORMAL)
    listed = page.locator("#logins tbody tr")
    before = listed.count()
    assert before >= 2
    page.locator(
        "#logins tbody a"
    ).first.click()  # not by text: another test may have changed the user's language
    page.locator("dialog[open] button.btn-danger").click()
    expect(page.locator("[data-toasts]")).not_to_be_empty()
    expect(listed).to_have_count(before - 1)


def test_every_page_shows_that_jobs_fail(open_page: OpenPage) -> None:
    page = open_page("/help")
    expect(page.locator("link[rel=icon]")).to_have_attribute("href", re.compile("/mark-failing"))
    expect(page).to_have_title(re.compile(r"^\(\d+ failing\) Help"))
    expect(page.locator(".sidebar [href*=jobinfo] .menu-number")).to_have_text(re.compile(r"^\d+$"))
    page.set_viewport_size({"width": 1024, "height": 800})
    expect(page.locator(".sidebar [href*=jobinfo] .menu-number")).to_have_css("width", "8px")
    expect(page.get_by_role("link", name=re.compile(r"^Jobs, \d+ failing$"))).to_be_visible()
