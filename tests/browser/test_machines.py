"""Draining instances: in a dialog with scripts, by pages without them, and on a phone."""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.seed import NORMAL
from tests.browser.serving import Console
from tests.support.browser import OpenPage

pytestmark = pytest.mark.browser

ADDRESS = "http://10.0.3.12:9999"


def row(page: Page) -> Locator:
    return page.locator("tbody tr").filter(has_text=ADDRESS)


def test_an_address_is_drained_and_undrained_in_a_dialog(console: Console, open_page: OpenPage) -> None:
    page = open_page(f"/jobgroup/{console.seeded.groups[0]}")
    row(page).get_by_role("link", name=f"Drain {ADDRESS}").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("No new runs are sent to it")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(row(page)).to_contain_text("accepts new runs")
    row(page).get_by_role("link", name=f"Drain {ADDRESS}").press("Enter")
    dialog.get_by_role("button", name="Drain").click()
    expect(page.locator("[data-toast]")).to_contain_text("gets no new runs")
    expect(row(page)).to_contain_text("drained")
    expect(row(page)).to_contain_text("admin")
    row(page).get_by_role("button", name=f"Undrain {ADDRESS}").click()
    expect(page.locator("[data-toast]")).to_contain_text("gets new runs again")
    expect(row(page)).to_contain_text("accepts new runs")


def test_an_operator_drains_on_a_phone_without_scripts(console: Console, open_page: OpenPage) -> None:
    size = {"width": 390, "height": 844}
    page = open_page(
        f"/jobinfo/{console.seeded.jobs[0]}/nodes", user=NORMAL, java_script_enabled=False, viewport=size
    )
    page.get_by_role("link", name="Instances").click()
    row(page).get_by_role("link", name=f"Drain {ADDRESS}").click()
    page.get_by_role("button", name="Drain").click()
    expect(row(page)).to_contain_text("drained")
    row(page).get_by_role("button").click()
    expect(row(page)).to_contain_text("accepts new runs")
    expect(page.get_by_role("button", name="Test connection")).to_have_count(0)


def test_the_connection_is_tested_on_the_same_page(console: Console, open_page: OpenPage) -> None:
    page = open_page(f"/jobgroup/{console.seeded.groups[0]}")
    page.get_by_role("button", name="Test connection").click()
    expect(page.get_by_role("alert")).to_contain_text("An instance accepts any token.", timeout=20_000)
    expect(page.locator("tbody tr").filter(has_text="http://127.0.0.1")).to_contain_text("accepts any token")
    expect(row(page)).to_contain_text("No answer")
