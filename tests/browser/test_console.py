"""Pages in a real browser: menus and dialogs by mouse and keyboard, also without scripts."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from app.console.web.current import COOKIE
from tests.browser.seed import ADMIN, NORMAL
from tests.browser.serving import LOG_LINES, Console, fake_worker
from tests.support.browser import OpenPage, Watch, log_in

pytestmark = pytest.mark.browser

PHONE = {"viewport": {"width": 390, "height": 844}}


@pytest.mark.parametrize(
    "scripts",
    [pytest.param(True, id="scripts"), pytest.param(False, id="no-scripts", marks=pytest.mark.extensive)],
)
def test_the_login_form_works(console: Console, open_page: OpenPage, scripts: bool) -> None:
    page = open_page("/toLogin", user=None, java_script_enabled=scripts)
    log_in(page, console, ADMIN)
    expect(page.locator("main dl dd").first).to_be_visible()


def test_a_row_menu_opens_by_keyboard_and_closes_with_escape(console: Console, open_page: OpenPage) -> None:
    page = open_page("/jobinfo")
    button = page.locator("tbody button[popovertarget]").first
    button.focus()
    page.keyboard.press("Enter")
    menu = page.locator(".menu:popover-open")
    expect(menu).to_be_visible()
    expect(menu.locator("a").first).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(menu.locator("a").nth(1)).to_be_focused()
    page.keyboard.press("Escape")
    expect(menu).to_have_count(0)
    expect(button).to_be_focused()


def test_a_menu_stays_inside_the_window(open_page: OpenPage) -> None:
    page = open_page("/jobinfo", **PHONE)
    page.locator("tbody button[popovertarget]").last.click()
    box = page.locator(".menu:popover-open").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= 844


def test_the_menu_of_a_row_switches_its_schedule(console: Console, open_page: OpenPage) -> None:
    job_id = console.seeded.jobs[5]
    page = open_page("/jobinfo?jobDesc=temporary")
    switch = page.get_by_role("switch", name=f"Schedule of job {job_id}")
    opener = page.get_by_role("button", name=f"Actions on job {job_id}")
    menu = page.locator(".menu:popover-open")
    for act, is_on in (("Switch on", True), ("Switch off", False)):
        opener.focus()
        page.keyboard.press("Enter")
        entry = menu.get_by_role("button", name=act)
        entry.focus()
        page.keyboard.press("Enter")
        expect(menu).to_have_count(0)
        expect(switch).to_be_checked(checked=is_on)
        expect(opener).to_be_focused()
    expect(page.locator("tbody .col-next")).to_have_text("–")


def test_a_schedule_is_switched_in_its_row_and_back_by_undo(console: Console, open_page: OpenPage) -> None:
    job_id = console.seeded.jobs[5]
    page = open_page("/jobinfo?jobDesc=temporary")
    switch, next_run = (
        page.get_by_role("switch", name=f"Schedule of job {job_id}"),
        page.locator("tbody .col-next"),
    )
    expect(switch).not_to_be_checked()
    switch.focus()
    page.keyboard.press("Space")
    expect(page.locator(".toasts")).to_contain_text(f"Job {job_id} Clean the temporary files switched on")
    expect(switch).to_be_checked()
    expect(switch).to_be_focused()
    # the live row follows without a reload
    expect(next_run).to_contain_text(re.compile(r"\d"))
    expect(page).to_have_url(f"{console.url}/jobinfo?jobDesc=temporary")
    page.get_by_role("button", name="Undo").click()
    expect(switch).not_to_be_checked()
    expect(next_run).to_have_text("–")


#: name of an answer -> what is done with the request, and the toast
LOST: dict[str, tuple[Callable[[Route], None], str]] = {
    "no network": (lambda route: route.abort(), "The console does not answer."),
    "gateway": (lambda route: route.fulfill(status=502, body="<h1>502</h1>"), "The console does not answer."),
    "refused": (lambda route: route.fulfill(status=403, json={"msg": "Why it is not."}), "Why it is not."),
}


@pytest.mark.parametrize("answer", LOST)
def test_a_switch_or_star_that_fails_stays_and_says_why(
    console: Console, open_page: OpenPage, watch: Watch, answer: str
) -> None:
    page = open_page("/jobinfo")
    handle, text = LOST[answer]
    page.route(re.compile("/(start|stop|favourite)$"), handle)
    for name, state in (("[data-switch]", "aria-checked"), ("[data-star]", "aria-pressed")):
        button = page.locator(f"tbody {name}").first
        before = button.get_attribute(state)
        assert before is not None
        button.click()
        toast = page.locator("[data-toasts]")
        expect(toast).to_contain_text(text)
        expect(button).to_have_attribute(state, before)
        toast.evaluate("(place) => place.replaceChildren()")
    assert len(watch.problems) == 2
    watch.problems.clear()


@pytest.mark.parametrize("answer", ["no network", "gateway"])
def test_a_dialog_that_does_not_arrive_leaves_the_page_as_it_is(
    console: Console, open_page: OpenPage, watch: Watch, answer: str
) -> None:
    page = open_page("/jobinfo")
    ticked = page.locator("tbody input[type=checkbox]").first
    ticked.check()
    handle, text = LOST[answer]
    page.route("**/delete*", handle)
    page.locator("tbody button[popovertarget]").first.click()
    page.get_by_role("link", name="Delete").click()
    expect(page.locator("[data-toasts]")).to_contain_text(text)
    expect(page).to_have_url(f"{console.url}/jobinfo")
    expect(ticked).to_be_checked()
    assert len(watch.problems) == 1
    watch.problems.clear()


def test_a_dialog_whose_link_leads_to_the_login_of_a_proxy_opens_that(
    console: Console, open_page: OpenPage, watch: Watch
) -> None:
    """Scripts may not follow a redirect to another origin."""
    login = console.url.replace("127.0.0.1", "localhost") + "/toLogin"
    page = open_page("/jobinfo")
    page.route("**/delete*", lambda route: route.fulfill(status=302, headers={"Location": login}))
    page.locator("tbody button[popovertarget]").first.click()
    page.get_by_role("link", name="Delete").click()
    expect(page).to_have_url(login)
    watch.await_quiet(page)
    found = {problem.partition(": ")[2] for problem in watch.problems}
    assert f"foreign request: {login}" in found
    assert all(each.startswith("foreign request: http://localhost") for each in found)
    watch.problems.clear()


def test_escape_closes_a_dialog_and_changes_nothing(open_page: OpenPage) -> None:
    page = open_page("/jobinfo")
    menu = page.locator("tbody button[popovertarget]").first
    menu.click()
    page.get_by_role("link", name="Delete").click()
    dialog = page.get_by_role("dialog", name="Delete the job?")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(menu).to_be_focused()


def test_a_double_click_opens_one_dialog(console: Console, open_page: OpenPage, watch: Watch) -> None:
    page = open_page("/jobinfo?jobDesc=Settle")
    page.get_by_label(f"Run job {console.seeded.jobs[1]} once").dblclick()
    expect(page.get_by_role("dialog", name="Run once")).to_be_visible()
    watch.await_quiet(page)
    expect(page.locator("dialog.sheet[open]")).to_have_count(1)
    page.keyboard.press("Escape")
    page.get_by_label(f"Run job {console.seeded.jobs[1]} once").click()
    expect(page.get_by_role("dialog", name="Run once")).to_be_visible()


def end_login(page: Page) -> None:
    """End the login of a job's form, which learns it with the next preview of its schedule."""
    page.context.clear_cookies(name=COOKIE)
    page.get_by_label("Cron").fill("nonsense")
    expect(page.locator("#schedule-preview")).to_have_text(
        "Your login has ended. Log in in another tab, then go on here."
    )


def test_a_form_open_at_the_end_of_the_login_is_accepted_after_another(
    console: Console, open_page: OpenPage, watch: Watch
) -> None:
    page = open_page("/jobinfo/new")
    page.get_by_label("Job description").fill("typed")
    end_login(page)
    log_in(page.context.new_page(), console, ADMIN)
    with page.expect_response(re.compile("/jobinfo/new$")):
        page.evaluate("window.dispatchEvent(new Event('focus'))")
    watch.await_quiet(page)
    page.locator("main form.box .form-buttons button.btn-primary").click()
    expect(page.locator("#cron-error")).to_be_visible()
    expect(page.get_by_label("Job description")).to_have_value("typed")
    watch.problems.clear()  # the browser logs what was refused


def test_a_form_sent_at_once_after_another_login_waits_for_its_token(
    console: Console, open_page: OpenPage, watch: Watch
) -> None:
    page = open_page("/jobinfo/new", own=True)
    page.get_by_label("Job description").fill("typed")
    end_login(page)
    save = page.locator("main form.box .form-buttons button.btn-primary")
    save.click()  # without another login
    expect(page.locator("[data-toasts]")).to_contain_text("Log in in another tab, then go on here.")
    log_in(page.context.new_page(), console, ADMIN)
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    save.dblclick()
    expect(page.locator("#cron-error")).to_be_visible()
    expect(page.get_by_label("Job description")).to_have_value("typed")
    assert len(sent) == 1
    watch.problems.clear()  # the browser logs what was refused


def test_a_form_gets_the_token_of_another_login_with_the_next_answer(
    console: Console, open_page: OpenPage, watch: Watch
) -> None:
    page = open_page("/jobinfo/new")
    end_login(page)
    log_in(page.context.new_page(), console, ADMIN)
    with page.expect_response(re.compile("/jobinfo/new$")):
        page.get_by_label("Cron").fill("0 0 1 * * ?")
    watch.problems.clear()  # the browser logs what was refused


def test_the_end_of_the_login_that_the_palette_finds_is_known_to_forms(
    console: Console, open_page: OpenPage, watch: Watch
) -> None:
    page = open_page("/account")
    page.context.clear_cookies(name=COOKIE)
    page.keyboard.press("Control+k")
    page.keyboard.type("orders")
    expect(page.locator("[data-palette-status]")).to_contain_text("Log in in another tab, then go on here.")
    log_in(page.context.new_page(), console, ADMIN)
    page.keyboard.press("Escape")
    page.locator("form", has=page.get_by_label("Time zone")).get_by_role("button", name="Save").click()
    expect(page.locator("[data-toasts]")).to_contain_text("Saved.")
    watch.problems.clear()  # the browser may log what was refused


def test_a_run_after_the_end_of_the_login_says_so(console: Console, open_page: OpenPage) -> None:
    page = open_page("/jobinfo?jobDesc=Settle")
    page.get_by_label(f"Run job {console.seeded.jobs[1]} once").click()
    dialog = page.get_by_role("dialog", name="Run once")
    dialog.get_by_label("Job parameter").fill("typed")
    page.context.clear_cookies(name=COOKIE)
    dialog.get_by_role("button", name="Run once").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Your login has ended. What you sent was not saved.")
    expect(dialog.get_by_label("Job parameter")).to_have_value("typed")
    dialog.get_by_role("link", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("What you sent was not saved.")


def test_a_job_is_run_from_its_menu(console: Console, open_page: OpenPage) -> None:
    page = open_page("/jobinfo?jobDesc=Settle")
    page.locator("tbody button[popovertarget]").first.click()
    page.get_by_role("link", name="Run once").click()
    dialog = page.get_by_role("dialog", name="Run once")
    expect(dialog.get_by_label("Job parameter")).to_have_value("region=eu")
    dialog.get_by_role("button", name="Run once").click()
    dialog = page.get_by_role("dialog", name="Settle")
    expect(dialog).to_contain_text("The run")
    with fake_worker(console):
        expect(dialog.locator("[data-run-banner]")).to_contain_text("Succeeded")
    expect(dialog.locator(".log-line").first).to_contain_text("begin, parameter region=eu")
    expect(dialog.get_by_role("link", name="Open full page")).to_have_attribute(
        "href", re.compile("/joblog/")
    )
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page).to_have_url(f"{console.url}/jobinfo?jobDesc=Settle")


def test_the_preview_updates_while_typing(open_page: OpenPage) -> None:
    page = open_page("/jobinfo/new")
    page.get_by_label("Cron").fill("0 30 4 * * ?")
    expect(page.locator("#schedule-preview")).to_contain_text("Daily at 04:30")
    expect(page.locator("#schedule-preview li")).to_have_count(5)
    page.get_by_label("Cron").fill("0 61 4 * * ?")
    expect(page.locator("#schedule-preview .bad mark")).to_have_text("61")
    expect(page.get_by_label("Cron")).to_have_attribute("aria-invalid", "true")
    page.get_by_label("Schedule type").select_option("FIX_RATE")
    expect(page.get_by_label("Period in seconds")).to_be_visible()
    expect(page.get_by_label("Cron")).to_be_hidden()


def test_a_missing_schedule_stays_marked_beside_its_preview(open_page: OpenPage, watch: Watch) -> None:
    page = open_page("/jobinfo/new")
    cron = page.get_by_label("Cron")
    cron.fill("")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#cron-error")).to_be_visible()
    watch.await_quiet(page)  # the preview has arrived
    expect(cron).to_have_attribute("aria-invalid", "true")
    cron.fill("0 30 4 * * ?")
    expect(cron).to_have_attribute("aria-invalid", "false")
    watch.problems.clear()  # the refusal is in the browser's console


@pytest.mark.parametrize("answer", ["no network", "gateway"])
def test_a_preview_that_fails_shows_no_times_of_another_schedule(
    open_page: OpenPage, watch: Watch, answer: str
) -> None:
    handle, text = LOST[answer]
    page = open_page("/jobinfo/new")
    preview = page.locator("#schedule-preview")
    page.get_by_label("Cron").fill("0 0 3 * * ?")
    expect(preview.locator("li")).to_have_count(5)
    page.route("**/preview*", handle)
    page.get_by_label("Cron").fill("0 0 4 1 * ?")
    expect(preview).to_contain_text(text)
    expect(preview.locator("li")).to_have_count(0)
    page.unroute("**/preview*")
    page.get_by_label("Cron").fill("0 0 5 1 * ?")
    expect(preview.locator("li")).to_have_count(5)
    watch.problems.clear()  # the browser logs what failed


def test_the_builder_writes_an_expression(open_page: OpenPage) -> None:
    page = open_page("/jobinfo/new")
    page.get_by_label("Cron").fill("0 0/15 8-18 ? * 2")
    page.get_by_role("button", name="Build the expression").click()
    dialog = page.get_by_role("dialog", name="Build the expression")
    expect(dialog.locator("[data-builder-result]")).to_have_text("0 0/15 8-18 ? * 2")
    expect(dialog.locator("[data-builder-words]")).to_contain_text("Every 15 minutes, Mondays 08:00–18:59")
    expect(dialog.locator("[data-builder-words] li")).to_have_count(5)
    dialog.get_by_role("tab", name="Weekday").click()
    dialog.locator("#unit-week").get_by_label("Wednesday").last.check()
    dialog.get_by_role("tab", name="Second").click()
    dialog.locator("#unit-second [data-item][value='30']").check()
    dialog.get_by_role("button", name="Apply").click()
    expect(page.get_by_label("Cron")).to_have_value("0,30 0/15 8-18 ? * 2,4")
    expect(page.locator("#schedule-preview li")).to_have_count(5)


def test_the_builder_offers_presets(open_page: OpenPage) -> None:
    page = open_page("/jobinfo/new")
    page.get_by_role("button", name="Build the expression").click()
    dialog = page.get_by_role("dialog", name="Build the expression")
    preset = dialog.get_by_role("button", name="weekdays 08:00")
    preset.click()
    expect(preset).to_have_attribute("aria-pressed", "true")
    expect(dialog.locator("[data-builder-result]")).to_have_text("0 0 8 ? * 2-6")
    expect(dialog.locator("[data-builder-words]")).to_contain_text("08:00")
    dialog.get_by_role("button", name="Apply").click()
    expect(page.get_by_label("Cron")).to_have_value("0 0 8 ? * 2-6")


def test_the_log_is_text_with_linkable_lines(console: Console, open_page: OpenPage) -> None:
    page = open_page(f"/joblog/{console.seeded.log_id}")
    lines = page.locator(".log-line")
    expect(lines).to_have_count(len(LOG_LINES))
    expect(page.locator("[data-log-status]")).to_contain_text("End of the log")
    expect(lines.nth(2)).to_contain_text("<script>alert(1)</script>")
    expect(lines.nth(2)).to_have_class(re.compile("level-error"))
    page.locator("#L40 a").click()
    assert page.url.endswith("#L40")
    page.reload()
    expect(page.locator("#L40")).to_be_in_viewport()
    expect(page.locator("[data-follow]")).not_to_be_checked()
    page.locator("[data-find]").fill("order 5007 ")
    expect(page.locator("[data-found]")).to_have_text("1/1")


def test_dark_mode_is_remembered(console: Console, open_page: OpenPage) -> None:
    page = open_page("/jobinfo", color_scheme="light")
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "light")
    page.get_by_role("button", name="Dark mode").click()
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")
    page.goto(f"{console.url}/joblog")
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")


def test_the_sidebar_collapses_and_stays_collapsed(console: Console, open_page: OpenPage) -> None:
    page = open_page("/jobinfo")
    page.get_by_role("button", name="Toggle navigation").click()
    page.goto(f"{console.url}/joblog")
    expect(page.locator("html")).to_have_class("sidebar-mini")
    label = page.locator(".sidebar .label").nth(1)
    expect(label).to_be_hidden()
    page.locator(".sidebar a").nth(1).hover()
    expect(label).to_be_visible()


@pytest.mark.parametrize("scripts", [True, False])
def test_the_sidebar_is_narrow_in_a_narrow_window_until_the_wide_one_is_chosen(
    open_page: OpenPage, *, scripts: bool
) -> None:
    page = open_page("/jobinfo", viewport={"width": 1024, "height": 800}, java_script_enabled=scripts)
    side, toggle = page.locator(".side"), page.get_by_role("button", name="Toggle navigation")
    for width in (52, 216, 52):
        expect(side).to_have_css("width", f"{width}px")
        toggle.click()
    expect(side).to_have_css("width", "216px")


def test_a_phone_has_a_drawer(console: Console, open_page: OpenPage) -> None:
    page = open_page("/jobinfo", reduced_motion="no-preference", **PHONE)
    link = page.locator(".sidebar").get_by_role("link", name="Runs")
    expect(link).to_be_hidden()
    opener = page.get_by_role("link", name="Open navigation")
    opener.press("Enter")
    expect(page.locator(".sidebar a").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(link).to_be_hidden()
    expect(opener).to_be_focused()
    opener.click()
    link.click()
    page.wait_for_url(f"{console.url}/joblog")


def test_the_editor_shows_the_source_and_saves_it(console: Console, open_page: OpenPage) -> None:
    page = open_page(f"/jobcode?jobId={console.seeded.jobs[5]}")
    editor = page.locator(".cm-content")
    expect(editor).to_contain_text("echo hello")
    editor.click()
    page.keyboard.press("Control+End")
    page.keyboard.type("echo from the browser")
    page.get_by_label("Remark").fill("typed in a browser")
    page.get_by_label("Your password").fill(ADMIN[1])
    page.get_by_role("button", name="Save").click()
    expect(page.locator("[data-toasts]")).to_contain_text("saved")
    expect(page.locator(".cm-content")).to_contain_text("echo from the browser")


def test_the_language_is_switched_in_place(console: Console, open_page: OpenPage) -> None:
    page = open_page("/jobinfo?author=lina", user=NORMAL)
    page.get_by_role("button", name="Account menu").click()
    page.get_by_role("button", name="繁體中文").click()
    expect(page.get_by_role("heading", name="任務管理")).to_be_visible()
    expect(page).to_have_url(f"{console.url}/jobinfo?author=lina")


def without_scripts(open_page: OpenPage, path: str) -> Page:
    return open_page(path, java_script_enabled=False)


def test_without_scripts_jobs_are_run_and_edited(console: Console, open_page: OpenPage) -> None:
    page = without_scripts(open_page, "/jobinfo?jobDesc=Import")
    page.locator("tbody button[popovertarget]").first.click()
    page.get_by_role("link", name="Run once").click()
    page.get_by_role("button", name="Run once").click()
    expect(page.locator("main [role=status]")).to_contain_text("The run")
    # the other page reloads itself
    page = without_scripts(open_page, f"/jobinfo/{console.seeded.jobs[6]}/edit")
    page.locator("#section-owner summary").click()
    page.get_by_label("Owner").fill("no scripts")
    page.get_by_label("Schedule type").select_option("CRON")
    page.get_by_label("Cron").fill("0 0 5 * * ?")
    page.get_by_role("button", name="Show the next run times").click()
    expect(page.locator("#schedule-preview li")).to_have_count(5)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("definition").get_by_text("no scripts", exact=True)).to_be_visible()


@pytest.mark.extensive
def test_without_scripts_the_dashboard_has_its_charts_and_the_log_is_text(
    console: Console, open_page: OpenPage
) -> None:
    page = without_scripts(open_page, "/")
    expect(page.locator(".days-chart [data-bars] a").first).to_be_visible()
    page.goto(f"{console.url}/joblog/{console.seeded.log_id}")
    expect(page.locator("body")).to_contain_text("order 5000 closed")
