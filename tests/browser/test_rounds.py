"""What a job runs after, in its form by keyboard and with scripts; what is missing run again in a dialog."""

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from sqlalchemy import delete

from app.database.engine import session_scope
from app.models.job import Job
from app.models.round import After
from tests.browser.serving import Console
from tests.support.browser import OpenPage

pytestmark = pytest.mark.browser


@pytest.fixture
def job_id(console: Console) -> Iterator[int]:
    """A job that runs after none."""
    job_id = console.seeded.jobs[4]
    yield job_id
    with session_scope() as session:
        session.get_one(Job, job_id).runs_after = None
        session.execute(delete(After).where(After.job_id == job_id))


def test_predecessors_are_picked_by_keyboard_and_the_next_rounds_follow(
    console: Console, open_page: OpenPage, job_id: int
) -> None:
    settled, unpaid = console.seeded.jobs[1], console.seeded.jobs[0]
    page = open_page(f"/jobinfo/{job_id}/edit")
    section = page.locator("#section-after")
    section.locator("summary").first.press("Enter")
    page.locator("#after_jobs-search").focus()
    for text in ("Settle", "unpaid"):
        with page.expect_response(re.compile("/pick/jobs")):
            page.keyboard.type(text)
        # The first letters alone may have found others.
        expect(page.locator("#after_jobs-choices [role=option]").first).to_contain_text(text)
        page.keyboard.press("Enter")
    expect(page.locator("#after_jobs")).to_have_value(f"{settled},{unpaid}")
    preview = page.locator("#rounds-preview")
    expect(preview).to_contain_text("Runs once all of them have succeeded.")
    expect(section.locator("#after_k")).to_be_hidden()
    section.get_by_label("Runs when").select_option("k_of_n")
    section.get_by_label("How many of them").fill("2")
    section.get_by_label("What belongs together").select_option("day")
    expect(preview).to_contain_text(
        "Runs once 2 of them have succeeded. Runs of the same day belong together."
    )
    expect(section.locator(".fold-note").first).to_contain_text("2 of them · Runs of the same day")
    section.get_by_role("button", name=re.compile("Remove .* Close unpaid orders")).click()
    expect(page.locator("#after_jobs")).to_have_value(str(settled))
    expect(preview).to_contain_text("Runs once it has succeeded.")
    section.get_by_label("Runs when").select_option("all_succeeded")
    page.get_by_role("button", name="Save", exact=True).click()
    # The page takes `?done=` out of its address once it has shown the notice.
    page.wait_for_url(re.compile(rf"/jobinfo/{job_id}(\?|$)"))
    with session_scope() as session:
        stored = json.loads(session.get_one(Job, job_id).runs_after or "{}")
    assert (stored["jobs"], stored["rule"], stored["round"]) == ([settled], "all_succeeded", "day")
    expect(page.locator("#rounds")).to_contain_text("Runs of the same day belong together.")


def test_what_is_missing_is_asked_for_in_a_dialog(console: Console, open_page: OpenPage) -> None:
    page = open_page(f"/rounds/{console.seeded.round_id - 2}")
    page.get_by_role("link", name="Run only what is missing").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("is run again, with the same logical time.")
    dialog.get_by_role("link", name="Cancel").click()
    expect(dialog).to_be_hidden()
