"""Year of a calendar with scripts: days are clicked, moved between by keys, and follow the text."""

from collections.abc import Iterator
from datetime import date

import pytest
from playwright.sync_api import Page, expect

from app.clock import now_ms
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import system_actor
from app.domain.calendars.calendar import Calendar, DayKind
from app.domain.calendars.drafts import CalendarDraft
from app.services.calendars import calendars
from app.store.calendars import calendars as store
from tests.browser.serving import Console
from tests.support.browser import OpenPage

pytestmark = pytest.mark.browser

NAME = "clicked"


@pytest.fixture
def address(console: Console) -> Iterator[str]:
    """The year of a calendar that has one holiday with a name."""
    draft = CalendarDraft(days={"2026-05-01": "holiday"}, names={"2026-05-01": "May, 1st"})
    actor = system_actor("admin")
    with session_scope() as session:
        calendar_id = calendars.put_calendar(session, NAME, draft, actor=actor, clock=now_ms).id
    yield f"/calendars/{calendar_id}?year=2026"
    with session_scope() as session:
        calendars.remove_calendar(session, NAME, actor=actor, clock=now_ms)


def stored() -> Calendar:
    with read_scope() as session:
        found = store.find_calendar(session, NAME)
    assert found is not None
    return found.calendar


def save(page: Page) -> Calendar:
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("[data-toasts]")).to_contain_text("saved")
    return stored()


def test_days_are_clicked_and_saved(open_page: OpenPage, address: str) -> None:
    page = open_page(address)
    page.get_by_label("Name of the days to mark").fill("National Day")
    first = page.locator("button[data-day='2026-10-01']")
    first.click()
    expect(first).to_have_attribute("data-kind", "holiday")
    expect(first).to_have_attribute("aria-label", "October 1, 2026 · holiday · National Day")
    saturday = page.locator("button[data-day='2026-10-10']")
    saturday.click()
    saturday.click()
    expect(saturday).to_have_attribute("data-kind", "workday")
    second = page.locator("button[data-day='2026-10-02']")
    for _ in range(3):
        second.click()
    expect(second).to_have_attribute("data-kind", "")
    calendar = save(page)
    assert calendar.days == {
        date(2026, 5, 1): DayKind.HOLIDAY,
        date(2026, 10, 1): DayKind.HOLIDAY,
        date(2026, 10, 10): DayKind.WORKDAY,
    }
    assert calendar.names[date(2026, 5, 1)] == "May, 1st"
    assert calendar.names[date(2026, 10, 10)] == "National Day"


def test_keys_move_between_days(open_page: OpenPage, address: str) -> None:
    page = open_page(address)
    page.locator("button[data-day='2026-03-03']").click()
    page.keyboard.press("ArrowDown")
    expect(page.locator("button[data-day='2026-03-10']")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.locator("button[data-day='2026-03-09']")).to_have_attribute("data-kind", "holiday")
    assert page.locator("button[data-day][tabindex='0']").count() == 1


def test_the_days_follow_the_text(open_page: OpenPage, address: str) -> None:
    page = open_page(address)
    page.locator("#as-text summary").click()
    page.locator("#days").fill('2026-06-19,holiday,"a, b"\n2026/6/20,workday\n')
    page.locator("#days").blur()
    expect(page.locator("button[data-day='2026-06-19']")).to_have_attribute("data-name", "a, b")
    expect(page.locator("button[data-day='2026-06-20']")).to_have_attribute("data-kind", "workday")
    expect(page.locator("button[data-day='2026-05-01']")).to_have_attribute("data-kind", "")
    assert save(page).names == {date(2026, 6, 19): "a, b"}


def test_without_scripts_the_text_is_the_form(open_page: OpenPage, address: str) -> None:
    page = open_page(address, java_script_enabled=False)
    assert page.locator("button[data-day]").count() == 0
    page.locator("#as-text summary").click()
    page.locator("#days").fill("2026-06-19,holiday")
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url("**done=saved**")
    assert stored().days == {date(2026, 6, 19): DayKind.HOLIDAY}


def test_the_preview_follows_the_calendar_of_the_form(open_page: OpenPage, console: Console) -> None:
    page = open_page(f"/jobinfo/{console.seeded.jobs[9]}/edit")
    page.locator("#section-calendar summary").click()
    page.get_by_label("Calendar", exact=True).select_option("cn")
    expect(page.locator("#section-calendar .fold-note")).to_have_text("on workdays of cn")
    page.get_by_label("Runs on").select_option("holidays")
    expect(page.locator("#section-calendar .fold-note")).to_have_text("on holidays and weekends of cn")
    expect(page.locator("#schedule-preview")).to_contain_text("skipped: ")


def test_the_form_of_a_blackout_shows_what_belongs_to_its_choice(open_page: OpenPage) -> None:
    page = open_page("/blackouts")
    page.get_by_role("link", name="Add a blackout").click()
    expect(page.get_by_label("Begins at")).to_be_hidden()
    page.get_by_label("How often").select_option("cron")
    expect(page.get_by_label("Begins at")).to_be_visible()
    page.get_by_label("For", exact=True).select_option("group")
    expect(page.get_by_label("Executor", exact=True)).to_be_visible()
    page.get_by_label("For", exact=True).select_option("job")
    expect(page.get_by_role("combobox", name="Job")).to_be_visible()


def test_a_file_is_imported_in_a_dialog(open_page: OpenPage, address: str) -> None:
    page = open_page(address)
    page.get_by_role("link", name="Import days").click()
    sheet = page.locator("dialog[open]")
    sheet.get_by_label("Days", exact=True).select_option("file")
    text = "date,kind,name\n2027-01-01,holiday,New Year\n"
    sheet.get_by_label("File", exact=True).set_input_files(
        {"name": "days.csv", "mimeType": "text/csv", "buffer": text.encode()}
    )
    sheet.get_by_role("button", name="Import").click()
    page.wait_for_url("**year=2027**")
    assert stored().names[date(2027, 1, 1)] == "New Year"
    assert stored().days[date(2026, 5, 1)] is DayKind.HOLIDAY
