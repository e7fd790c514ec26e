"""Limits in the form of a job with scripts, and the actions on a waiting run in their dialogs."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import delete

from app.database.engine import session_scope
from app.models.job import Job
from app.models.limit import LimitUse
from tests.browser.serving import Console
from tests.support.browser import OpenPage

pytestmark = pytest.mark.browser


@pytest.fixture
def job_id(console: Console) -> Iterator[int]:
    """A job without limits."""
    job_id = console.seeded.jobs[9]
    yield job_id
    with session_scope() as session:
        job = session.get_one(Job, job_id)
        job.limits, job.max_running = None, 0
        session.execute(delete(LimitUse).where(LimitUse.job_id == job_id))


def save(page: Page, job_id: int) -> tuple[int, list[dict[str, object]]]:
    """Save the form; return the most runs at once and the named limits that are stored."""
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url(f"**/jobinfo/{job_id}*")
    with session_scope() as session:
        job = session.get_one(Job, job_id)
        return job.max_running, json.loads(job.limits or "[]")


def test_rows_are_added_and_removed_and_the_wish_is_filled_in(open_page: OpenPage, job_id: int) -> None:
    page = open_page(f"/jobinfo/{job_id}/edit")
    section = page.locator("#section-limits")
    section.locator("summary").click()
    section.get_by_role("button", name="Never twice at once, anywhere").click()
    expect(section.get_by_label("Most runs at once")).to_have_value("1")
    expect(section.locator(".fold-note")).to_have_text("at most 1 at once")
    section.get_by_role("combobox", name="Named limit 1").select_option("reporting database")
    section.get_by_role("button", name="Add a named limit").click()
    second = section.get_by_role("combobox", name="Named limit 2")
    expect(second).to_be_focused()
    second.select_option("partner interface")
    section.get_by_label("Slots of named limit 2").fill("3")
    section.get_by_role("button", name="Remove named limit 1").click()
    expect(section.locator("[data-limit]")).to_have_count(1)
    expect(section.locator(".fold-note")).to_have_text("at most 1 at once · partner interface × 3")
    assert save(page, job_id) == (1, [{"limit": "partner interface", "weight": 3}])


def test_without_scripts_the_wish_is_a_button_of_the_form(open_page: OpenPage, job_id: int) -> None:
    page = open_page(f"/jobinfo/{job_id}/edit", java_script_enabled=False)
    page.locator("#section-limits summary").click()
    page.get_by_role("button", name="Never twice at once, anywhere").click()
    section = page.locator("#section-limits")
    expect(section.get_by_label("Most runs at once")).to_have_value("1")
    section.get_by_role("combobox", name="Named limit 1").select_option("reporting database")
    assert save(page, job_id) == (1, [{"limit": "reporting database", "weight": 1}])


def test_a_waiting_run_is_asked_about_in_a_dialog(console: Console, open_page: OpenPage) -> None:
    page = open_page(f"/limits/{console.seeded.limit_id}")
    page.get_by_role("button", name="Actions on waiting run").first.click()
    page.get_by_role("link", name="Run now").click()
    sheet = page.get_by_role("dialog")
    expect(sheet.get_by_text("3 of 3 slots of reporting database are taken")).to_be_visible()
    sheet.get_by_role("link", name="Cancel").click()
    expect(sheet).to_be_hidden()
