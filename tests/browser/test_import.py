"""Import in progress: it shows so, and its button works once."""

import json

import pytest
from playwright.sync_api import expect

from tests.support.browser import OpenPage

pytestmark = pytest.mark.browser

FILE = {
    "format": 1,
    "jobs": [
        {"appname": "shop-orders", "jobDesc": "Close unpaid orders", "executorHandler": "closeUnpaidOrders"}
    ],
}


def test_a_file_being_checked_shows_progress(open_page: OpenPage) -> None:
    page = open_page("/jobinfo/import")
    waiting, button = page.locator("[data-waiting]"), page.locator("form[data-waits] button")
    page.fill("#text", json.dumps(FILE))
    expect(waiting).to_be_hidden()
    page.evaluate(
        "document.querySelector('[data-waits]')"
        ".addEventListener('submit', (event) => event.preventDefault(), { once: true })"
    )
    button.click()
    expect(page.get_by_role("progressbar", name="The file is being compared")).to_be_visible()
    expect(page.get_by_role("status").filter(has=waiting)).to_contain_text("Nothing is stored.")
    expect(button).to_be_disabled()
    page.evaluate(
        "window.dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))"
    )  # as for a user who returns to the page
    expect(waiting).to_be_hidden()
    button.click()
    expect(page.get_by_role("status").first).to_contain_text("0 new, 0 changed, 1 unchanged")
    expect(page.locator("form[data-waits] button")).to_be_enabled()
