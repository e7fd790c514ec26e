"""Lists on their screens: rows that fit a window, cards and folded filters on a phone."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.test_every_page import PHONE
from tests.browser.test_open_parts import WIDE

pytestmark = pytest.mark.browser

#: height of the tallest row in px, and the number of rows whole in the window
ROWS = """() => {
  const rows = Array.from(document.querySelectorAll("tbody tr"), (row) => row.getBoundingClientRect());
  const whole = rows.filter((row) => row.bottom < window.innerHeight);
  return [Math.max(...rows.map((row) => row.height)), whole.length];
}"""


def test_twenty_runs_fit_a_window_and_are_cards_of_three_lines_on_a_phone(open_page: OpenPage) -> None:
    page = open_page("/joblog?range=all", viewport=WIDE)
    height, count = page.evaluate(ROWS)
    assert height < 36, "two lines"
    assert count >= 20
    page.set_viewport_size(PHONE)
    height, count = page.evaluate(ROWS)
    assert height < 90, "three lines"
    assert count >= 6
    status = page.get_by_label("Status")
    expect(status).to_be_hidden()
    page.locator(".fold-button").click()
    expect(status).to_be_visible()
