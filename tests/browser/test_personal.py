"""Tags as links, stars with and without scripts, a view saved in a dialog and chosen as start page."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.seed import STARRED, TAGS
from tests.browser.serving import Console
from tests.support.browser import OpenPage

pytestmark = pytest.mark.browser

WITHOUT_STAR = 2


def test_a_tag_links_to_its_jobs(console: Console, open_page: OpenPage) -> None:
    page = open_page("/jobinfo?triggerStatus=1")
    page.get_by_role("link", name="nightly", exact=True).first.click()
    expect(page).to_have_url(f"{console.url}/jobinfo?triggerStatus=1&tag=nightly")
    expect(page.locator("[data-tick]")).to_have_count(sum("nightly" in tags for tags in TAGS["en"].values()))
    page.get_by_role("link", name="Tag: nightly").click()
    expect(page).to_have_url(f"{console.url}/jobinfo?triggerStatus=1")


@pytest.mark.parametrize(
    "scripts",
    [pytest.param(True, id="scripts"), pytest.param(False, id="no-scripts", marks=pytest.mark.extensive)],
)
def test_a_star_is_set_and_removed_in_place(console: Console, open_page: OpenPage, scripts: bool) -> None:
    page = open_page("/jobinfo?author=marco", java_script_enabled=scripts)
    star = page.get_by_role("button", name=f"Favourite: job {console.seeded.jobs[WITHOUT_STAR]}", exact=True)
    expect(star).to_have_attribute("aria-pressed", "false")
    star.click()
    expect(star).to_have_attribute("aria-pressed", "true")
    expect(page).to_have_url(re.compile(r"/jobinfo\?author=marco" + ("$" if scripts else "&done=starred$")))
    page.goto(f"{console.url}/jobinfo?favourites=1")
    expect(page.locator("[data-tick]")).to_have_count(len(STARRED) + 1)
    star.click()
    expect(star).to_have_count(1 if scripts else 0)
    page.goto(f"{console.url}/jobinfo?favourites=1")
    expect(page.locator("[data-tick]")).to_have_count(len(STARRED))


def test_a_view_is_saved_in_a_dialog_and_made_the_start_page(console: Console, open_page: OpenPage) -> None:
    page = open_page("/jobinfo?author=lina")
    page.get_by_role("link", name="Save as a view").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("Of Lina")
    dialog.get_by_role("button", name="Save").click()
    expect(
        page.get_by_role("navigation", name="Views").get_by_role("link", name="Of Lina")
    ).to_have_attribute("aria-current", "page")
    expect(page.locator("[data-toast]")).to_contain_text("The view ")
    page.goto(f"{console.url}/account")
    page.get_by_label("Start page").select_option(label="Jobs: Of Lina")
    page.locator("#start-page button").click()
    page.locator(".side .logo").click()
    expect(page).to_have_url(f"{console.url}/jobinfo?author=lina")
    page.goto(f"{console.url}/account")
    page.get_by_role("link", name="Delete Of Lina").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("link", name="Of Lina", exact=True)).to_have_count(0)
    page.locator(".side .logo").click()
    expect(page).to_have_url(f"{console.url}/")
