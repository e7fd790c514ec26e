"""Keyboard navigation, dialogs that keep input, the cron builder, list preferences, running code."""

import re

import pytest
from playwright.sync_api import Page, Route, expect

from app.database.engine import session_scope
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from tests.browser.seed import ADMIN
from tests.browser.serving import Console, fake_worker
from tests.support.browser import OpenPage, Watch

pytestmark = pytest.mark.browser


def test_a_job_is_found_by_its_name_its_handler_and_its_id(console: Console, open_page: OpenPage) -> None:
    page = open_page("/")
    job_id = console.seeded.jobs[1]
    palette = page.get_by_role("dialog", name="Find a job or a page")
    for typed in ("settle the", "settleOrders", str(job_id)):
        page.keyboard.press("Control+k")
        page.keyboard.type(typed)
        expect(palette.get_by_role("option", name="Settle the orders of the day")).to_be_visible()
        page.keyboard.press("Escape")
        expect(palette).to_be_hidden()
    page.get_by_role("button", name="Find a job or a page").click()
    page.keyboard.type("settle the")
    expect(palette.get_by_role("option", selected=True)).to_have_text(re.compile("Settle"))
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{console.url}/jobinfo/{job_id}")


def test_the_palette_says_why_it_finds_no_jobs(open_page: OpenPage, watch: Watch) -> None:
    page = open_page("/")
    found, status = page.locator("#palette-list"), page.locator("[data-palette-status]")
    page.keyboard.press("Control+k")
    page.keyboard.type("orders")
    expect(status).to_have_text("3 matches")
    page.route("**/pick/all*", lambda route: route.abort())
    page.keyboard.type(" ")
    expect(found).to_have_text("The console does not answer. Try again in a moment.")
    page.unroute("**/pick/all*")
    page.context.clear_cookies()
    page.keyboard.type(" ")
    for place in (found, status):
        expect(place).to_have_text("Your login has ended. Log in in another tab, then go on here.")
    watch.problems.clear()  # the browser logs what failed


def test_pages_are_found_by_their_names(console: Console, open_page: OpenPage) -> None:
    page = open_page("/jobinfo")
    page.keyboard.press("Control+k")
    page.keyboard.type("executors")
    options = page.locator("[data-palette] [role=option]")
    expect(options).to_have_text(["Executors"])
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{console.url}/jobgroup")


def test_n_adds_and_r_refreshes(console: Console, open_page: OpenPage) -> None:
    page = open_page("/user")
    page.keyboard.press("n")
    expect(page.get_by_role("dialog", name="Add a user")).to_be_visible()
    page.keyboard.press("Escape")
    with page.expect_navigation():
        page.keyboard.press("r")
    page.goto(f"{console.url}/jobinfo")
    page.keyboard.press("n")
    expect(page).to_have_url(f"{console.url}/jobinfo/new")


#: in one task: a dialog that closes keeps the focus until the next frame
ESCAPE_AND_HELP = """() => {
  const press = (key) => new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true });
  for (const key of ["Escape", "?"]) document.activeElement.dispatchEvent(press(key));
}"""


def test_a_shortcut_works_at_once_after_a_dialog(open_page: OpenPage) -> None:
    page = open_page("/user")
    page.keyboard.press("n")
    expect(page.get_by_role("dialog", name="Add a user")).to_be_visible()
    page.evaluate(ESCAPE_AND_HELP)
    expect(page.locator("[data-keys]")).to_be_visible()


def test_a_dialog_keeps_its_input_until_discarded(open_page: OpenPage) -> None:
    page = open_page("/user")
    page.keyboard.press("n")
    dialog = page.get_by_role("dialog", name="Add a user")
    field = dialog.get_by_label("User name")
    field.fill("someone")
    for leave in (lambda: page.keyboard.press("Escape"), dialog.get_by_role("link", name="Cancel").click):
        leave()
        expect(dialog.get_by_role("alertdialog")).to_contain_text("You have unsaved changes.")
        expect(dialog.get_by_role("button", name="Keep editing")).to_be_focused()
        page.keyboard.press("Enter")
        expect(field).to_be_focused()
        expect(field).to_have_value("someone")
    page.keyboard.press("Escape")
    dialog.get_by_role("button", name="Discard").click()
    expect(dialog).to_have_count(0)


def test_the_focus_stays_in_a_dialog_and_returns(open_page: OpenPage) -> None:
    page = open_page("/user")
    page.locator("[data-new]").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Add a user")
    expect(dialog).to_be_visible()
    for _ in range(40):
        page.keyboard.press("Tab")
        assert page.evaluate(
            "document.activeElement === document.body || document.activeElement.closest('dialog') !== null"
        )
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.locator("[data-new]")).to_be_focused()


def test_leaving_a_changed_form_asks_first(console: Console, open_page: OpenPage) -> None:
    page = open_page(f"/jobinfo/{console.seeded.jobs[3]}/edit", own=True)
    prompts: list[str] = []
    page.on("dialog", lambda dialog: (prompts.append(dialog.type), dialog.accept()))
    page.locator(".sidebar").get_by_role("link", name="Runs").click()
    page.wait_for_url(f"{console.url}/joblog")
    assert prompts == []
    page.goto(f"{console.url}/jobinfo/{console.seeded.jobs[3]}/edit")
    page.get_by_label("Job description").fill("something else")
    page.locator(".sidebar").get_by_role("link", name="Runs").click()
    page.wait_for_url(f"{console.url}/joblog")
    assert prompts == ["beforeunload"]


#: typed expression, expression and choice of a unit the builder shows
BUILT = (
    ("0 0 8-20/2 * * ?", "0 0 8-20/2 * * ?", "Hour", "unchanged"),
    ("0 0 3 LW * ?", "0 0 3 LW * ?", "Day", "unchanged"),
    ("0 0 3 1,5-7 * ?", "0 0 3 1,5,6,7 * ?", "Day", "these"),
    ("0 0 3 */5 * ?", "0 0 3 1/5 * ?", "Day", "from"),
    ("0 0 3 ? * FRIL 2030", "0 0 3 ? * 6L 2030", "Weekday", "the last"),
    ("0 0 3 ? * MON#2", "0 0 3 ? * 2#2", "Weekday", "number"),
    ("0 0 3 * * MON", "0 0 3 ? * 2", "Weekday", "these"),
    ("0 0 3 5 * MON", "0 0 3 5 * 2", "Weekday", "these"),
    ("30 6 * * 1-5", "0 30 6 ? * 2-6", "Weekday", "from"),
    ("30 6 * * 0", "0 30 6 ? * 1", "Weekday", "these"),
)


def test_the_builder_starts_with_the_existing_expression(open_page: OpenPage) -> None:
    page = open_page("/jobinfo/new")
    dialog = page.get_by_role("dialog", name="Build the expression")
    for typed, shown, unit, choice in BUILT:
        page.get_by_label("Cron").fill(typed)
        page.get_by_role("button", name="Build the expression").click()
        expect(dialog.locator("[data-builder-result]"), typed).to_have_text(shown)
        dialog.get_by_role("tab", name=unit, exact=True).click()
        chosen = dialog.locator("section:not([hidden]) label", has=page.locator("input[type=radio]:checked"))
        expect(chosen, typed).to_contain_text(choice)
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)


def test_arrow_keys_move_between_the_tabs_of_the_builder(open_page: OpenPage) -> None:
    page = open_page("/jobinfo/new")
    page.get_by_role("button", name="Build the expression").click()
    expect(page.get_by_role("button", name="every 5 min")).to_be_focused()
    page.get_by_role("tab", name="Hour").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Minute")).to_be_focused()
    expect(page.locator("#unit-minute")).to_be_visible()
    page.keyboard.press("End")
    expect(page.get_by_role("tab", name="Year")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Tab")
    expect(page.locator("#unit-year input:focus")).to_have_count(1)


@pytest.mark.parametrize(
    "scripts",
    [pytest.param(True, id="scripts"), pytest.param(False, id="no-scripts", marks=pytest.mark.extensive)],
)
def test_list_preferences_are_applied(console: Console, open_page: OpenPage, scripts: bool) -> None:
    page = open_page("/jobinfo", java_script_enabled=scripts, viewport={"width": 1440, "height": 900})
    owner = page.get_by_role("columnheader", name="Owner")
    expect(owner).to_be_visible()
    before = page.locator("tbody tr").first.bounding_box()
    page.get_by_role("button", name="Display").click()
    page.locator("#view-menu [value=owner]").uncheck()
    page.locator("#view-menu [value=dense]").check()
    page.get_by_role("button", name="Apply").click()
    expect(owner).to_be_hidden()
    after = page.locator("tbody tr").first.bounding_box()
    assert before is not None
    assert after is not None
    assert after["height"] < before["height"]
    page.goto(f"{console.url}/joblog?range=day")
    expect(page.get_by_role("columnheader", name="Duration")).to_be_visible()


def test_every_kind_of_button_shows_its_focus(console: Console, open_page: OpenPage) -> None:
    page = open_page("/jobinfo")
    for kind in ("default", "success", "info"):
        if kind == "info":
            page.goto(f"{console.url}/jobcode/diff?jobId={console.seeded.jobs[4]}")
        button = page.locator(f"main .btn-{kind}:visible").first
        button.evaluate("(button) => button.focus({ focusVisible: true })")
        expect(button, kind).to_have_css("outline-style", "solid")


def test_list_preferences_are_chosen_by_keyboard(open_page: OpenPage) -> None:
    page = open_page("/jobinfo")
    page.get_by_role("button", name="Display").focus()
    page.keyboard.press("Enter")
    menu = page.locator("#view-menu")
    expect(menu.locator("[value=comfortable]")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(menu.locator("[value=dense]")).to_be_checked()
    page.keyboard.press("Tab")
    expect(menu.locator("[value=none]")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    expect(menu.locator("[name=column]").nth(1)).to_be_focused()
    page.keyboard.press("End")
    expect(menu.get_by_role("button", name="Apply")).to_be_focused()


def test_all_jobs_of_all_pages_are_selected_at_once(console: Console, open_page: OpenPage) -> None:
    with session_scope() as session:
        like = session.get(Job, console.seeded.jobs[6])
        assert like is not None
        copies = [copy_of(like) for _ in range(11)]
        session.add_all(copies)
    page = open_page("/jobinfo?author=copied&length=10")
    stop = page.locator("#bulk button").nth(1)
    page.get_by_label("Select all").check()
    page.get_by_label("All 11 of all pages").check()
    expect(page.locator("[data-tick]:disabled")).to_have_count(10)
    stop.click()
    expect(page.locator("h1")).to_have_text("Switch off the schedules of 11 jobs?")
    page.get_by_role("button", name="Switch off").click()
    expect(page.locator(".notice")).to_contain_text("11 of 11 jobs: switched off.")
    page.goto(f"{console.url}/jobinfo/bulk/delete?matching=1&author=copied")
    page.get_by_label("Type delete 11 to continue").fill("delete 11")
    page.get_by_role("button", name="Delete").click()
    expect(page.locator(".notice")).to_contain_text("11 of 11 jobs: deleted.")


def copy_of(job: Job) -> Job:
    values = {
        column.name: getattr(job, column.name)
        for column in Job.__table__.columns
        if column.name not in {"id", "author"}
    }
    return Job(**values, author="copied")


def editor(console: Console, open_page: OpenPage, **options: object) -> Page:
    return open_page(f"/jobcode?jobId={console.seeded.jobs[5]}", **options)


def test_the_saved_code_is_run_beside_the_editor(console: Console, open_page: OpenPage) -> None:
    page = editor(console, open_page)
    page.locator(".cm-content").click()
    page.keyboard.type("# not saved")
    page.get_by_label("Job parameter").fill("day=1")
    with fake_worker(console):
        page.get_by_role("button", name="Run once").click()
        expect(page.locator("[data-try-note]")).to_contain_text("Unsaved changes are not run.")
        expect(page.locator("#try [data-run-banner]")).to_contain_text("Succeeded")
        expect(page.locator("#try .log-line").first).to_contain_text("begin, parameter region=eu")
    expect(page.locator("#try [data-log-status]")).to_contain_text("End of the log")
    expect(page.locator(".cm-content")).to_contain_text("# not saved")
    link = page.get_by_role("link", name="Open the run")
    run = page.context.new_page()
    run.goto(link.get_attribute("href") or "")
    expect(run.locator("[data-run-banner]")).to_contain_text("day=1")
    run.goto(f"{console.url}/jobinfo/{console.seeded.jobs[5]}/run")
    run.get_by_role("link", name="day=1").click()
    expect(run.get_by_label("Job parameter")).to_have_value("day=1")


def test_a_refused_run_beside_the_editor_says_why(
    console: Console, open_page: OpenPage, watch: Watch
) -> None:
    page = editor(console, open_page)
    page.locator("#try-param").evaluate("(field) => { field.value = 'x'.repeat(70000); }")
    page.get_by_role("button", name="Run once").click()
    expect(page.locator("[data-try-note]")).to_contain_text("must have at most")
    assert ["400 (BAD REQUEST)" in each for each in watch.problems] == [True]
    watch.problems.clear()


def test_a_run_whose_answer_is_lost_is_shown_and_not_repeated(
    console: Console, open_page: OpenPage, watch: Watch
) -> None:
    page = editor(console, open_page)
    page.get_by_label("Job parameter").fill("lost=1")
    page.route("**/run", lose_answer)
    run = page.get_by_role("button", name="Run once")
    run.click()
    expect(page.locator("[data-try-note]")).to_contain_text("it is not known whether the run was queued")
    page.unroute("**/run")
    with fake_worker(console):
        run.click()
        expect(page.locator("#try [data-run-banner]")).to_contain_text("Succeeded")
        assert count_runs("lost=1") == 1
        with page.expect_response(lambda answer: answer.request.method == "POST"):
            run.click()
        assert count_runs("lost=1") == 2
    assert ["504" in each for each in watch.problems] == [True]
    watch.problems.clear()


def test_a_run_asked_for_while_one_waits_is_none_and_says_so(console: Console, open_page: OpenPage) -> None:
    page = editor(console, open_page)
    page.get_by_label("Job parameter").fill("waits=1")
    run, note = page.get_by_role("button", name="Run once"), page.locator("[data-try-note]")
    run.click()
    expect(page.locator("#try")).to_contain_text("waits for the scheduler")
    expect(note).to_be_empty()
    run.click()
    expect(note).to_have_text("This form was already submitted, so nothing was queued again.")
    assert count_runs("waits=1") == 1
    with fake_worker(console):
        expect(page.locator("#try [data-run-banner]")).to_contain_text("Succeeded")


def test_a_double_click_runs_the_saved_code_once(console: Console, open_page: OpenPage) -> None:
    page = editor(console, open_page, own=True)
    page.get_by_label("Job parameter").fill("clicked=2")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    with fake_worker(console):
        page.get_by_role("button", name="Run once").dblclick()
        expect(page.locator("#try [data-run-banner]")).to_contain_text("Succeeded")
    assert len(sent) == 1


def lose_answer(route: Route) -> None:
    """Let the console handle a request, and answer as a gateway that has not waited for it."""
    route.fetch(max_redirects=0)
    route.fulfill(status=504, content_type="text/html", body="<h1>504 Gateway Time-out</h1>")


def count_runs(parameter: str) -> int:
    with session_scope() as session:
        fires = session.query(Fire).filter_by(executor_param=parameter).count()
        return fires + session.query(JobLog).filter_by(executor_param=parameter).count()


@pytest.mark.extensive
def test_without_scripts_the_code_is_run_too(console: Console, open_page: OpenPage) -> None:
    page = editor(console, open_page, java_script_enabled=False)
    page.get_by_role("button", name="Run once").click()
    expect(page.locator("main [role=status]")).to_contain_text("The run waits")
    page.get_by_role("link", name="Back").click()
    assert "/jobcode" in page.url


def test_ctrl_s_saves_once_remark_and_password_are_entered(console: Console, open_page: OpenPage) -> None:
    page = editor(console, open_page)
    page.locator(".cm-content").click()
    page.keyboard.type("# by keyboard\n")
    page.keyboard.press("Control+s")
    expect(page.get_by_label("Remark")).to_be_focused()
    page.keyboard.type("by keyboard")
    page.keyboard.press("Control+s")
    expect(page.get_by_label("Your password")).to_be_focused()
    page.keyboard.type(ADMIN[1])
    page.keyboard.press("Control+s")
    expect(page.get_by_role("status").filter(has_text="saved")).to_be_visible()
