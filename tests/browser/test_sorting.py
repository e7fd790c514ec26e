"""Lists sorted by their column headings, also without scripts, and by a select on a phone."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.serving import Console
from tests.support.browser import OpenPage

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}


def expect_by_owner(page: Page, *, first: str, last: str) -> None:
    owners = page.locator("td.col-owner")
    expect(owners.first).to_have_text(first)
    expect(owners.last).to_have_text(last)


def test_a_heading_sorts_and_shows_the_direction(console: Console, open_page: OpenPage) -> None:
    page = open_page(
        "/jobinfo?triggerStatus=1", java_script_enabled=False, viewport={"width": 1440, "height": 900}
    )
    expect(page.get_by_label("Sort by")).to_be_hidden()
    head = page.locator("th.col-owner")
    head.get_by_role("link").click()
    expect(page).to_have_url(f"{console.url}/jobinfo?triggerStatus=1&sort=owner")
    expect(head).to_have_attribute("aria-sort", "ascending")
    expect_by_owner(page, first="lina", last="yusuf")
    page.get_by_text("Filter", exact=True).click()
    page.locator("#triggerStatus").select_option("")
    page.locator(".picks").get_by_role("button", name="Apply").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    head.get_by_role("link", name="Owner ascending").click()
    expect_by_owner(page, first="yusuf", last="lina")
    head.get_by_role("link", name="Owner descending").click()
    expect(head).not_to_have_attribute("aria-sort", "ascending")
    expect(page.locator("th.id")).to_have_attribute("aria-sort", "descending")


def test_on_a_phone_a_select_sorts_and_hidden_headings_take_no_focus(open_page: OpenPage) -> None:
    page = open_page("/jobinfo", viewport=PHONE, java_script_enabled=False)
    page.locator('label[for="search-open"]').click()
    page.get_by_text("Filter", exact=True).click()
    page.get_by_label("Sort by").select_option(label="Owner, descending")
    page.locator(".picks").get_by_role("button", name="Apply").click()
    expect(page.get_by_label("Sort by")).to_have_value("-owner")
    expect_by_owner(page, first="yusuf", last="lina")
    page.wait_for_load_state()
    heads = page.locator(".grid.cards thead")
    assert page.evaluate("document.querySelector('.grid.cards thead').offsetHeight") == 1
    link = heads.get_by_role("link", name="Next run")
    link.focus()
    expect(link).to_be_focused()
    expect(link).to_be_in_viewport(ratio=1)
    box = link.bounding_box()
    assert box is not None
    assert 10 < box["height"] < page.evaluate("document.querySelector('.grid.cards thead').offsetHeight")
    assert 0 <= box["x"] <= box["x"] + box["width"] <= PHONE["width"]
