"""Dialogs, menus and other parts that open on demand, and very long names: readable, named, not too wide."""

from collections.abc import Callable, Iterator

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, ViewportSize, expect

from app.clock import now_ms
from app.database.engine import session_scope
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from tests.browser.serving import Console
from tests.support.browser import AXE, PHONE, WIDE, WIDER, OpenPage, Watch

pytestmark = pytest.mark.browser

#: lines of the longest reason in the list of what needs attention
LINES = """() => Math.max(...Array.from(document.querySelectorAll(".att-why > .cut"),
  (each) => each.getBoundingClientRect().height / parseFloat(getComputedStyle(each).lineHeight)))"""


def open_menu(page: Page) -> None:
    page.locator("tbody button[popovertarget]").first.click()


def open_display(page: Page) -> None:
    if page.viewport_size != PHONE:  # cards have no columns
        page.get_by_role("button", name="Display").click()


def open_filter(page: Page) -> None:
    if page.viewport_size == PHONE:
        page.locator('label[for="search-open"]').click()
    page.get_by_text("Filter", exact=True).click()


def show_groups_of_failing(page: Page) -> None:
    page.context.add_cookies([{"name": "xxl_job_group", "value": "executor", "url": page.url}])
    page.goto(page.url + "&last=failing")
    expect(page.locator("[data-collapse]").first).to_be_visible()
    page.context.clear_cookies(name="xxl_job_group")


def open_user_menu(page: Page) -> None:
    if page.viewport_size != PHONE:  # there it is in the drawer, which covers the page
        page.locator("[popovertarget=user-menu]").click()


def open_keys(page: Page) -> None:
    page.keyboard.press("?")


def open_palette(page: Page) -> None:
    page.keyboard.press("Control+k")
    page.keyboard.type("re")
    expect(page.locator("[data-palette] [data-note]")).to_be_visible()


def open_unsaved(page: Page) -> None:
    page.keyboard.press("n")
    page.locator("dialog[open] input[name=username]").fill("x")
    page.keyboard.press("Escape")
    expect(page.get_by_role("alertdialog")).to_be_visible()


def open_question(page: Page) -> None:
    open_menu(page)
    page.locator(".menu:popover-open .danger").click()
    expect(page.locator("dialog[open]")).to_be_visible()


def switch_off(page: Page) -> None:
    row = page.locator("tr:has(button.switch[aria-checked=true])").first
    if page.viewport_size == PHONE:  # its cards have the switch in their menu
        row.locator("button[popovertarget]").click()
        row.get_by_role("button", name="Switch off").click()
    else:
        row.locator("button.switch").click()
    expect(page.locator(".toast-note .undo")).to_be_visible()


def open_builder(page: Page) -> None:
    page.get_by_label("Cron").fill("0 0 8-20/2 * * ?")
    page.get_by_role("button", name="Build the expression").click()
    page.get_by_role("tab", name="Hour").click()


def find_in_log(page: Page) -> None:
    expect(page.locator(".log-line").first).to_be_visible()
    if (find := page.locator("[data-find]")).is_visible():  # a phone has the search of its browser
        find.fill("order")


OPENED: dict[str, Callable[[Page], None]] = {
    "/jobinfo?length=10#menu": open_menu,
    "/jobinfo?length=10#display": open_display,
    "/jobinfo?length=10#filter": open_filter,
    "/jobinfo?length=10#groups": show_groups_of_failing,
    "/jobinfo?length=10#user": open_user_menu,
    "/jobinfo?length=10#keys": open_keys,
    "/jobinfo?length=10#palette": open_palette,
    "/jobinfo?length=10#question": open_question,
    "/jobinfo?length=10#toast": switch_off,
    "/user#unsaved": open_unsaved,
    "/jobinfo/new": open_builder,
    "log": find_in_log,
}


@pytest.mark.parametrize(
    ("theme", "size"),
    [
        pytest.param("light", PHONE, id="light-phone"),
        pytest.param("dark", WIDE, id="dark-wide", marks=pytest.mark.extensive),
        pytest.param("light", WIDE, id="light-wide", marks=pytest.mark.extensive),
        pytest.param("dark", PHONE, id="dark-phone", marks=pytest.mark.extensive),
    ],
)
def test_opened_parts_are_readable_and_named(
    console: Console, open_page: OpenPage, theme: str, size: ViewportSize
) -> None:
    page = open_page("/", own=True, color_scheme=theme, viewport=size)
    page.add_init_script(AXE_SCRIPT)  # compiled once, not for each page
    wrong = []
    for path, open_ in OPENED.items():
        address = f"/joblog/{console.seeded.log_id}" if path == "log" else path.partition("#")[0]
        page.goto(console.url + address)
        open_(page)
        wrong += [f"{path}: {problem}" for problem in page.evaluate(AXE, {}) + page.evaluate(WIDER)]
        if open_ is switch_off:
            page.locator(".undo").click()
            page.wait_for_load_state("load")
    assert not wrong, "\n".join(wrong)


@pytest.fixture
def long_names(console: Console) -> Iterator[tuple[int, int]]:
    """A job and a run with the longest possible names, without a blank; deleted after the test."""
    with session_scope() as session:
        group = Group(app_name="long-names", title="T" * 64, address_type=1, update_time=now_ms())
        group.address_list = ",".join(
            f"http://10.1.{number // 250}.{number % 250}:9999" for number in range(1000)
        )
        session.add(group)
        session.flush()
        like = session.get(Job, console.seeded.jobs[0])
        assert like is not None
        values = {
            column.name: getattr(like, column.name) for column in Job.__table__.columns if column.name != "id"
        }
        long_texts = {
            "job_desc": "x" * 255,
            "author": "a" * 64,
            "alarm_email": "m" * 255,
            "executor_param": "p" * 512,
        }
        conf = ",".join(map(str, range(35)))
        job = Job(
            **{
                **values,
                **long_texts,
                "job_group": group.id,
                "executor_handler": "h" * 255,
                "schedule_conf": f"0 {conf} 1-5 * * ?",
            }
        )
        session.add(job)
        session.flush()
        log = JobLog(
            job_group=group.id,
            job_id=job.id,
            trigger_time=now_ms(),
            trigger_code=200,
            handle_code=500,
            handle_time=now_ms(),
        )
        log.executor_address, log.executor_param, log.handle_msg = (
            f"http://{'host-' * 40}:9999",
            "q" * 512,
            "e" * 3000,
        )
        session.add(log)
        session.flush()
        made = (job.id, log.id)
        group_id = group.id
    yield made
    with session_scope() as session:
        for model, own_id in ((JobLog, made[1]), (Job, made[0]), (Group, group_id)):
            session.delete(session.get(model, own_id))


@pytest.mark.parametrize(
    "size", [pytest.param(WIDE, id="wide", marks=pytest.mark.extensive), pytest.param(PHONE, id="phone")]
)
def test_the_longest_names_make_no_page_wider(
    console: Console, open_page: OpenPage, watch: Watch, long_names: tuple[int, int], size: ViewportSize
) -> None:
    job_id, log_id = long_names
    paths = ["/", "/jobinfo", "/joblog?range=day", "/jobgroup", "/user/audit"]
    paths += [
        f"/jobinfo/{job_id}{page_name}"
        for page_name in ("", "/edit", "/run", "/delete", "/next-times", "/nodes")
    ]
    paths += [f"/joblog/{log_id}", f"/joblog/{log_id}/note", f"/jobinfo/bulk/stop?id={job_id}"]
    page = open_page("/", viewport=size)
    wrong = []
    for path in paths:
        page.goto(console.url + path)
        watch.await_quiet(page)
        wrong += [f"{path}: {where}" for where in page.evaluate(WIDER)]
    assert not wrong, "\n".join(wrong)


def test_a_long_reason_takes_two_lines_of_the_dashboard_on_a_phone(
    open_page: OpenPage, long_names: tuple[int, int]
) -> None:
    page = open_page("/", viewport=PHONE)
    expect(page.locator(".att-why > .cut", has_text="eee").first).to_be_visible()
    assert page.evaluate(LINES) < 2.5
