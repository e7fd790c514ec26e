"""Rows of promises in the forms of a job and of an executor: added, removed and filled from a suggestion."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from app.clock import HOUR_MS, SECOND_MS, now_ms
from app.database.engine import session_scope
from app.models.job import Job
from app.models.log import JobLog
from tests.browser.serving import Console
from tests.support.browser import OpenPage

pytestmark = pytest.mark.browser


@pytest.fixture
def job_id(console: Console) -> Iterator[int]:
    """A job without promises, with enough successes for a suggestion."""
    at_ms = now_ms() // SECOND_MS * SECOND_MS
    with session_scope() as session:
        job = session.get_one(Job, console.seeded.jobs[9])
        job_id = job.id
        logs = [
            JobLog(
                job_group=job.job_group,
                job_id=job.id,
                trigger_time=at_ms - number * HOUR_MS,
                trigger_code=200,
                handle_code=200,
                duration_ms=40 * SECOND_MS,
            )
            for number in range(20)
        ]
        session.add_all(logs)
        session.flush()
        ids = [log.id for log in logs]
    yield job_id
    with session_scope() as session:
        session.query(JobLog).filter(JobLog.id.in_(ids)).delete()
        session.get_one(Job, job_id).promises = None


def promises_of(job_id: int) -> str:
    with session_scope() as session:
        return session.get_one(Job, job_id).promises or ""


def save(page: Page, job_id: int) -> None:
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url(f"**/jobinfo/{job_id}*")


def test_a_row_is_added_has_the_inputs_of_its_kind_and_is_removed(open_page: OpenPage, job_id: int) -> None:
    page = open_page(f"/jobinfo/{job_id}/edit#section-promises")
    section = page.locator("#section-promises")
    section.locator("summary").click()
    expect(section.get_by_role("group")).to_have_count(0)
    section.get_by_role("button", name="Add a promise").click()
    row = section.get_by_role("group", name="Promise 1")
    expect(row.get_by_role("combobox", name="Promise")).to_be_focused()
    row.get_by_role("combobox", name="Promise").select_option("finishes_by")
    expect(row.get_by_label("Unit")).to_be_hidden()
    row.get_by_role("combobox", name="Promise").select_option("starts_within")
    expect(row.get_by_label("Unit")).to_be_visible()
    row.get_by_label("Value").fill("2")
    row.get_by_label("Unit").select_option("m")
    row.get_by_label("Unit").blur()
    expect(section.locator(".fold-note")).to_have_text("starts within 2 min")
    save(page, job_id)
    assert '"s":120' in promises_of(job_id)
    page.goto(page.url.partition("?")[0] + "/edit")
    section.locator("summary").click()
    section.get_by_role("button", name="Remove promise 1").click()
    expect(section.get_by_role("group")).to_have_count(0)
    save(page, job_id)
    assert promises_of(job_id) == ""


def test_a_suggestion_fills_a_row(open_page: OpenPage, job_id: int) -> None:
    page = open_page(f"/jobinfo/{job_id}/edit")
    section = page.locator("#section-promises")
    section.locator("summary").click()
    section.get_by_role("link", name="Suggest from the last 30 days").click()
    section.get_by_role("button", name="takes at most").click()
    row = section.get_by_role("group", name="Promise 1")
    expect(row.get_by_label("Value")).to_have_value("90")
    save(page, job_id)
    assert '"kind":"takes_at_most","s":90' in promises_of(job_id)


def test_without_scripts_there_are_empty_rows(open_page: OpenPage, job_id: int) -> None:
    page = open_page(f"/jobinfo/{job_id}/edit?suggest=1", java_script_enabled=False)
    section = page.locator("#section-promises")
    expect(section.get_by_role("group")).to_have_count(3)
    expect(section.get_by_text("99% of the runs took at most 40 s").first).to_be_visible()
    row = section.get_by_role("group", name="Promise 2")
    row.get_by_role("combobox", name="Promise").select_option("fails_at_most")
    row.get_by_label("Value").fill("3")
    row.get_by_label("If it is broken").select_option("switch_off")
    save(page, job_id)
    assert '"n":3,"then":"switch_off"' in promises_of(job_id)


def test_the_form_of_an_executor_has_the_rows_in_its_dialog(console: Console, open_page: OpenPage) -> None:
    page = open_page(f"/jobgroup/{console.seeded.groups[2]}")
    page.get_by_role("button", name="Actions on").click()
    page.get_by_role("link", name="Edit").click()
    sheet = page.get_by_role("dialog")
    sheet.locator("summary").click()
    sheet.get_by_role("button", name="Add a promise").click()
    expect(
        sheet.get_by_role("group", name="Promise 1").get_by_role("combobox", name="Promise")
    ).to_be_focused()
