"""Pickers by keyboard and mouse: typing searches, the chosen value is sent; plain fields without scripts."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import update

from app.database.engine import session_scope
from app.models.group import Group
from app.models.registry import Registration
from tests.browser.serving import Console
from tests.support.browser import OpenPage, Watch

pytestmark = pytest.mark.browser

SMALL = {"width": 390, "height": 844}


def open_filters(open_page: OpenPage, query: str = "", **options: Any) -> Page:
    """Open the list of runs with the fields of its filters."""
    page = open_page(f"/joblog?range=all{query}", **options)
    page.locator(".picks > summary").click()
    return page


def search(page: Page, text: str) -> None:
    """Type into the job picker of the log and wait for the answer."""
    page.locator("#jobId-search").focus()
    with page.expect_response(re.compile("/pick/jobs")):
        page.keyboard.type(text)
    expect(page.locator("#jobId-choices [role=option]").first).to_be_visible()


def test_a_job_is_found_and_chosen_by_keyboard(console: Console, open_page: OpenPage) -> None:
    page = open_filters(open_page)
    box = page.get_by_role("combobox", name="Job", exact=True)
    expect(page.locator("#jobId")).to_be_hidden()
    expect(box).to_have_attribute("aria-expanded", "false")
    search(page, "orders")
    expect(box).to_have_attribute("aria-expanded", "true")
    options = page.get_by_role("listbox").get_by_role("option")
    expect(options).to_have_count(2)
    expect(page.locator("[data-status]").last).to_have_text("2 matches")
    expect(box).to_have_attribute("aria-activedescendant", "jobId-choices-0")
    page.keyboard.press("ArrowDown")
    expect(box).to_have_attribute("aria-activedescendant", "jobId-choices-1")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    expect(box).to_have_attribute("aria-activedescendant", "jobId-choices-0")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(box).to_have_value(f"{console.seeded.jobs[0]} Close unpaid orders")
    expect(box).to_have_attribute("aria-expanded", "false")
    expect(box).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"jobId={console.seeded.jobs[0]}&"))
    assert "q=" not in page.url
    expect(page.locator(".search-box .chip")).to_contain_text("Close unpaid orders")
    page.locator(".picks > summary").click()
    expect(page.locator("#jobId-search")).to_have_value(f"{console.seeded.jobs[0]} Close unpaid orders")


def test_a_choice_by_mouse_leaves_the_filters_open(open_page: OpenPage) -> None:
    page = open_filters(open_page)
    search(page, "orders")
    page.locator("#jobId-choices [role=option]").first.click()
    expect(page.locator("#jobId-choices")).to_be_hidden()
    expect(page.locator("#logStatus")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#logStatus")).to_be_hidden()
    expect(page.locator(".picks > summary")).to_be_focused()


def test_a_search_that_fails_says_so_and_is_repeated(open_page: OpenPage, watch: Watch) -> None:
    page = open_filters(open_page)
    text = "The console does not answer. Try again in a moment."
    page.route("**/pick/jobs*", lambda route: route.abort())
    page.locator("#jobId-search").focus()
    page.keyboard.type("orders")
    expect(page.locator("#jobId-choices")).to_have_text(text)
    expect(page.locator("[data-status]").last).to_have_text(text)
    page.unroute("**/pick/jobs*")
    page.keyboard.press("Enter")
    expect(page.locator("#jobId-choices [role=option]")).to_have_count(2)
    watch.problems.clear()  # the browser logs what failed


def test_escape_closes_and_discards_what_was_not_chosen(open_page: OpenPage) -> None:
    page = open_filters(open_page)
    search(page, "mail")
    page.keyboard.press("Escape")
    expect(page.locator("#jobId-choices")).to_be_hidden()
    expect(page.locator("#jobId-search")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#jobId-choices")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.locator("#jobId-choices")).to_be_hidden()
    expect(page.locator("#jobId-search")).to_have_value("")
    expect(page.locator("#jobId")).to_have_value("")


def test_an_emptied_picker_selects_all_again(console: Console, open_page: OpenPage) -> None:
    page = open_filters(open_page, f"&jobId={console.seeded.jobs[0]}")
    page.locator("#jobId-search").fill("")
    page.get_by_role("button", name="Apply").click()
    expect(page).not_to_have_url(re.compile("jobId="))


def test_children_are_added_and_removed(console: Console, open_page: OpenPage) -> None:
    page = open_page(f"/jobinfo/{console.seeded.jobs[3]}/edit", viewport=SMALL)
    page.locator("#section-routing summary").click()
    box, field, picked = (
        page.locator("#child_jobid-search"),
        page.locator("#child_jobid"),
        page.locator("#section-routing [data-picked] li"),
    )
    for number, name in enumerate(("mail", "stock"), 1):
        box.focus()
        with page.expect_response(re.compile("/pick/jobs")):
            page.keyboard.type(name)
        page.locator("#child_jobid-choices [role=option]").first.click()
        expect(picked).to_have_count(number)
    mail, stock = console.seeded.jobs[7], console.seeded.jobs[9]
    expect(field).to_have_value(f"{mail},{stock}")
    expect(picked.first).to_have_text(f"{mail} Mail queue")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.get_by_role("button", name=f"Remove {mail} Mail queue").click()
    expect(field).to_have_value(str(stock))
    expect(page.locator("#section-routing .fold-note")).to_contain_text(f"then {stock}")
    field.fill(f"{stock},{mail}")
    expect(picked).to_have_count(2)


def test_the_change_history_accepts_any_name_and_suggests_existing_ones(open_page: OpenPage) -> None:
    page = open_page("/user/audit")
    page.get_by_text("Filter", exact=True).click()
    box = page.get_by_role("combobox", name="User name")
    box.focus()
    with page.expect_response(re.compile(r"/pick/users\?.*=wang(&|$)")):
        page.keyboard.type("wang")
    choices = page.locator("#username-choices").get_by_role("option")
    expect(choices).to_have_text("wangwei")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("username=wang(&|$)"))
    page.get_by_text("Filter", exact=True).click()
    page.locator("#username-search").click()
    choices.first.click()
    expect(page.locator("#username")).to_have_value("wangwei")


def test_executors_of_a_token_are_chosen_by_name(console: Console, open_page: OpenPage) -> None:
    page = open_page("/account/tokens/new")
    page.get_by_role("radio", name="Chosen executors").check()
    expect(page.locator("#groups")).to_be_hidden()
    page.locator("#groups-search").focus()
    page.keyboard.type("repor")
    expect(page.locator("#groups-choices [role=option]")).to_contain_text("Reports")
    page.keyboard.press("Enter")
    expect(page.locator("[data-picked]")).to_have_text("Reports")
    expect(page.locator("#groups")).to_have_value(str(console.seeded.groups[1]))


@pytest.fixture
def many_groups(console: Console) -> Iterator[None]:
    with session_scope() as session:
        session.add_all(
            Group(app_name=f"zz-{number:02}", title=f"Branch {number}", address_type=0)
            for number in range(30)
        )
    yield
    with session_scope() as session:
        session.query(Group).filter(Group.app_name.startswith("zz-")).delete()


@pytest.mark.usefixtures("many_groups")
def test_a_long_select_becomes_a_picker_that_sends_the_form(open_page: OpenPage) -> None:
    page = open_filters(open_page)
    box = page.get_by_role("combobox", name="Executor")
    box.focus()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("listbox").locator("[data-note]")).to_have_text(
        "First 20 results; type more to narrow the search"
    )
    with page.expect_response(re.compile("/pick/groups")):
        page.keyboard.type("branch 29")
    expect(page.locator("#jobGroup-choices [role=option]")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"jobGroup=\d+"))
    page.locator(".picks > summary").click()
    expect(page.get_by_role("combobox", name="Executor")).to_have_value("Branch 29")


@pytest.mark.extensive
@pytest.mark.usefixtures("many_groups")
def test_without_scripts_select_and_fields_are_there(open_page: OpenPage) -> None:
    page = open_filters(open_page, java_script_enabled=False)
    expect(page.locator("[role=combobox]").first).to_be_hidden()
    page.locator("#jobGroup").select_option(label="Branch 7")
    page.get_by_role("button", name="Apply").click()
    expect(page).to_have_url(re.compile(r"jobGroup=\d+"))
    page.locator(".picks > summary").click()
    expect(page.locator("select#jobId")).to_be_visible()


@pytest.fixture
def lone_handler(console: Console) -> Iterator[None]:
    """The executors of the first group announce one handler."""
    with session_scope() as session:
        app_name = session.get_one(Group, console.seeded.groups[0]).app_name
        own = update(Registration).where(Registration.registry_key == app_name)
        session.execute(own.values(handlers="lone"))
    yield
    with session_scope() as session:
        session.execute(own.values(handlers=None))


@pytest.mark.usefixtures("lone_handler")
def test_the_only_handler_is_filled_in_with_its_executor(console: Console, open_page: OpenPage) -> None:
    first, second, *_ = map(str, console.seeded.groups)
    page = open_page("/jobinfo/new")
    group, handler = page.locator("#job_group"), page.get_by_label("JobHandler")
    expect(handler).to_have_value("")
    group.select_option(first)
    expect(handler).to_have_value("lone")
    group.select_option(second)
    expect(handler).to_have_value("")
    handler.fill("typed")
    with page.expect_response(re.compile("/pick/handlers")):
        group.select_option(first)
    expect(page.locator("#handlers [data-only]")).to_have_count(1)
    expect(handler).to_have_value("typed")
