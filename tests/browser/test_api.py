"""The page of the API: requests are sent with the token that was typed, and as a dry run by default."""

import pytest
from playwright.sync_api import expect
from sqlalchemy import delete, select

from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Right
from app.models.user import User
from tests.browser.serving import Console
from tests.support.api_v1 import make_token
from tests.support.browser import OpenPage

pytestmark = pytest.mark.browser


def usernames() -> list[str]:
    with read_scope() as session:
        return list(session.scalars(select(User.username).order_by(User.id)))


def test_a_request_is_sent_with_the_token_and_not_with_the_login(
    console: Console, open_page: OpenPage
) -> None:
    token = make_token(*Right, admin=True, name="page")
    page = open_page("/help/api#users.add_user")
    operation = page.locator("details:has(#users\\.add_user)")
    expect(operation).to_have_attribute("open", "")
    operation.get_by_role("button", name="Send").click()
    expect(operation.get_by_text("Enter an API token above first.")).to_be_visible()
    page.fill("#api-token", token)
    with page.expect_request("**/api/v1/users**") as sent:
        operation.get_by_role("button", name="Send").click()
    assert sent.value.headers["authorization"] == f"Bearer {token}"
    assert "cookie" not in sent.value.all_headers()
    before = usernames()
    expect(operation.get_by_role("status")).to_contain_text("201")
    expect(operation.get_by_role("status")).to_contain_text("X-Dry-Run: true")
    expect(operation.get_by_role("status")).to_contain_text('"username": "alice"')
    assert usernames() == before
    operation.get_by_label("Dry run").uncheck()
    operation.get_by_role("button", name="Send").click()
    expect(operation.get_by_role("status")).to_contain_text("Location:")
    assert usernames() == [*before, "alice"]
    with session_scope() as session:
        session.execute(delete(User).where(User.username == "alice"))
    storage = page.evaluate("JSON.stringify([localStorage, sessionStorage, document.cookie])")
    assert token not in storage


def test_without_scripts_the_page_is_for_reading(console: Console, open_page: OpenPage) -> None:
    page = open_page("/help/api", java_script_enabled=False)
    expect(page.locator("#api-token")).to_be_hidden()
    page.locator("#users").get_by_text("List the users by name").click()
    expect(page.locator("#users\\.list_users")).to_contain_text("curl")
    expect(page.get_by_role("button", name="Send")).to_have_count(0)


def test_a_filter_leaves_the_operations_with_its_words(open_page: OpenPage) -> None:
    page = open_page("/help/api")
    page.get_by_label("Filter operations").fill("kill run")
    operations = page.locator("details.op:visible")
    expect(operations.first).to_contain_text("/runs/")
    assert operations.count() < 4
    expect(page.locator("#users")).to_be_hidden()
    expect(page.locator("[data-index-of=users]")).to_be_hidden()
    page.get_by_label("Filter operations").fill("no such words")
    expect(page.get_by_text("No operation has these words.")).to_be_visible()
    page.get_by_label("Filter operations").fill("")
    expect(page.locator("#users")).to_be_visible()


def test_the_help_is_searched(open_page: OpenPage) -> None:
    page = open_page("/help")
    page.get_by_label("Search the help").fill("secret")
    expect(page.locator("[data-filtered]:visible")).to_have_count(1)
    expect(page.locator("#terms")).to_be_hidden()
    expect(page.get_by_role("link", name="Terms")).to_be_hidden()
