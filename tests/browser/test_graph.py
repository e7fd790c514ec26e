"""Picture of what jobs run after in a browser: it opens at its job, and the keyboard goes left to right."""

import pytest
from playwright.sync_api import expect

from tests.browser.serving import Console
from tests.support.browser import PHONE, OpenPage

pytestmark = pytest.mark.browser

#: how far the marked box is from the middle of its room, in pixels
OFF_CENTRE = """() => {
  const [box, room] = [".job-box[aria-current]", ".graph-room"].map((name) => document.querySelector(name));
  const [at, of] = [box.getBoundingClientRect(), room.getBoundingClientRect()];
  return Math.abs(at.x + at.width / 2 - of.x - of.width / 2);
}"""


def test_on_a_phone_it_opens_at_its_job_and_tab_goes_from_left_to_right(
    console: Console, open_page: OpenPage
) -> None:
    page = open_page(f"/jobinfo/{console.seeded.jobs[8]}/graph", viewport=PHONE)
    expect(page.locator(".job-box[aria-current]")).to_be_visible()
    assert page.evaluate(OFF_CENTRE) < 2
    page.locator(".graph-room").focus()
    columns = []
    for _box in page.locator(".job-box").all():
        page.keyboard.press("Tab")
        columns.append(page.evaluate("Number(document.activeElement.parentElement.getAttribute('x'))"))
    assert columns == sorted(columns)
    assert len(set(columns)) > 2
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Clean the temporary files")
