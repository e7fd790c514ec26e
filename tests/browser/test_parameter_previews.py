"""Preview of a parameter with placeholders: follows what is typed, in the job form and in the dialog."""

import pytest
from playwright.sync_api import expect

from tests.browser.serving import Console
from tests.support.browser import OpenPage

pytestmark = pytest.mark.browser


def test_the_job_form_follows_what_is_typed(console: Console, open_page: OpenPage) -> None:
    page = open_page(f"/jobinfo/{console.seeded.jobs[8]}/edit")
    preview, field = page.locator("#parameter-preview"), page.locator("#executor_param")
    expect(preview).to_contain_text("2030-12-31")
    field.fill("${time+1d:yyyyMMdd}")
    expect(preview).to_contain_text("20310102")
    field.fill("${time:qq}")
    expect(preview).to_contain_text("is not a letter of a date pattern")
    expect(field).to_have_attribute("aria-invalid", "true")
    field.fill("plain")
    expect(field).to_have_attribute("aria-invalid", "false")
    page.get_by_label("Fill in placeholders").uncheck()
    expect(preview).to_be_empty()
    expect(page.locator("[data-fill-offer]")).to_be_hidden()


def test_the_dialog_of_a_run_follows_what_is_typed(console: Console, open_page: OpenPage) -> None:
    page = open_page(f"/jobinfo/{console.seeded.jobs[8]}")
    page.get_by_role("link", name="Run once").first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".parameter-preview")).to_contain_text("‹secret STORAGE_KEY›")
    dialog.get_by_label("Job parameter").fill("${time:yyyy-MM-dd}")
    dialog.get_by_label("Logical time").fill("2024-05-01T08:00:00")
    expect(dialog.locator(".parameter-preview")).to_contain_text("2024-05-01 08:00:00 2024-05-01")
