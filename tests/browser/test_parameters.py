"""Fields for the parameters of a typed handler: filled in and saved in the job form, and never as markup."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import update

from app.database.engine import session_scope
from app.models.group import Group
from app.models.job import Job
from app.models.registry import Registration
from tests.browser.serving import Console
from tests.support.browser import OpenPage

MARKUP = "<img src=x onerror=alert(1)>"
SCHEMA = {
    "properties": {
        "day": {"type": "string", "format": "date", "title": MARKUP, "description": MARKUP},
        "limit": {"type": "integer", "default": 100},
        "dry": {"type": "boolean", "default": True},
        "mode": {"enum": ["", MARKUP, "slow"], "default": MARKUP},
    },
    "required": ["day"],
}


@pytest.fixture
def job_id(console: Console) -> Iterator[int]:
    """A job whose executor announces the parameters of its handler."""
    with session_scope() as session:
        job = session.get_one(Job, console.seeded.jobs[0])
        job_id, handler = job.id, job.executor_handler
        before = {"job_desc": job.job_desc, "executor_param": job.executor_param}
        app_name = session.get_one(Group, job.job_group).app_name
        own = update(Registration).where(Registration.registry_key == app_name)
        session.execute(own.values(schemas="0" * 16 + json.dumps({handler: SCHEMA})))
    yield job_id
    with session_scope() as session:
        session.execute(own.values(schemas=None))
        session.execute(update(Job).where(Job.id == job_id).values(before))


def param_of(job_id: int) -> str:
    with session_scope() as session:
        return str(session.get_one(Job, job_id).executor_param)


def save(page: Page, job_id: int) -> None:
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url(f"**/jobinfo/{job_id}")


def test_the_parameter_of_a_job_is_saved_field_by_field(
    console: Console, open_page: OpenPage, job_id: int
) -> None:
    path = f"/jobinfo/{job_id}/edit"
    page = open_page(path)
    page.get_by_label(MARKUP).fill("2026-01-31")
    page.get_by_label("limit", exact=True).fill("5")
    page.get_by_label("mode", exact=True).select_option("slow")
    save(page, job_id)
    saved = '{"day":"2026-01-31","limit":5,"dry":true,"mode":"slow"}'
    assert param_of(job_id) == saved
    page.goto(console.url + path)
    expect(page.get_by_label("limit", exact=True)).to_have_value("5")
    expect(page.get_by_label("mode", exact=True)).to_have_value("slow")
    page.get_by_label("Job description").fill("another description")
    save(page, job_id)
    assert param_of(job_id) == saved, "the fields were left as they were"
    page.goto(console.url + path)
    page.get_by_role("button", name="Enter the parameter as text").click()
    page.locator("#executor_param").fill("day=2026-02-01 dry=no")
    save(page, job_id)
    assert param_of(job_id) == "day=2026-02-01 dry=no"
    page.goto(console.url + path)
    expect(page.get_by_label("limit", exact=True)).to_be_hidden()
    page.get_by_role("button", name="Enter parameters one by one").click()
    expect(page.get_by_label("dry", exact=True)).to_be_checked()


def test_fields_of_an_unchanged_form_are_no_unsaved_changes(
    console: Console, open_page: OpenPage, job_id: int
) -> None:
    page = open_page(f"/jobinfo/{job_id}/edit", own=True)
    prompts: list[str] = []
    page.on("dialog", lambda dialog: (prompts.append(dialog.type), dialog.accept()))
    expect(page.get_by_label("limit", exact=True)).to_be_visible()
    page.locator(".sidebar").get_by_role("link", name="Runs").click()
    page.wait_for_url(f"{console.url}/joblog")
    assert prompts == []
