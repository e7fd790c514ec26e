"""Background tasks in the browser: a page that polls until the result is there, with and without scripts."""

import json

import pytest
from playwright.sync_api import Page, expect

from tests.browser.serving import Console
from tests.support.browser import OpenPage

pytestmark = pytest.mark.browser

#: longest wait of a user for a change of two jobs; much shorter on an idle machine
RESULT_MS = 5_000
NEW_JOBS = {
    "format": 1,
    "jobs": [
        {
            "appname": "shop-orders",
            "jobDesc": f"imported {number}",
            "author": "ann",
            "scheduleType": "NONE",
            "glueType": "BEAN",
            "executorHandler": "importedHandler",
        }
        for number in range(3)
    ],
}


def submit_stop(page: Page) -> None:
    for number in range(2):
        page.locator("[data-tick]").nth(number).check()
    page.locator("#bulk button").nth(1).click()
    page.get_by_role("button", name="Switch off").click()


def test_a_small_change_shows_its_result_without_another_click(open_page: OpenPage) -> None:
    page = open_page("/jobinfo")
    submit_stop(page)
    expect(page.locator("main .notice.success")).to_contain_text(
        "2 of 2 jobs: switched off.", timeout=RESULT_MS
    )
    expect(page.locator("main tbody tr")).to_have_count(2)
    page.get_by_role("link", name="All tasks").click()
    expect(page.locator("main tbody tr").first).to_contain_text("Switch schedules off")


def test_without_scripts_the_page_reloads_itself(open_page: OpenPage) -> None:
    page = open_page("/jobinfo", java_script_enabled=False)
    submit_stop(page)
    expect(page.locator("main .notice.success")).to_contain_text("2 of 2 jobs: switched off.")


def test_rows_to_clean_are_counted_in_a_dialog(console: Console, open_page: OpenPage) -> None:
    page = open_page(f"/joblog?jobGroup={console.seeded.groups[0]}")
    page.get_by_role("link", name="Clear", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.locator("select[name=kind]").select_option("1")  # older than a month
    dialog.locator("button.btn-danger, button.btn-primary").first.click()
    expect(page.get_by_text("Nothing to delete.")).to_be_visible()


def test_jobs_are_imported_and_the_tasks_are_in_the_menu_of_the_user(open_page: OpenPage) -> None:
    page = open_page("/jobinfo/import")
    page.fill("#text", json.dumps(NEW_JOBS))
    page.get_by_role("button", name="Show what would change").click()
    page.get_by_role("button", name="Import").click()
    expect(page.locator("main .notice.success")).to_contain_text("Imported: 3 new, 0 changed, 0 unchanged.")
    page.locator("[popovertarget=user-menu]").click()
    page.locator("#user-menu").get_by_role("link", name="Tasks").click()
    expect(page.locator("main tbody tr").first).to_contain_text("Import jobs")
