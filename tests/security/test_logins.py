"""Session fixation and revived logins. Expiry and revocation: tests/services/accounts/test_login.py."""

import pytest

from app.console.web.current import COOKIE
from tests.console import pages
from tests.console.pages import is_at_login
from tests.support.console import CONTEXT, PASSWORD, Console, add_user

UNKNOWN = "0123456789abcdef" * 4


def token_of(console: Console) -> str:
    cookie = console.client.get_cookie(COOKIE)
    assert cookie is not None
    return cookie.value


def is_logged_in(console: Console, token: str) -> bool:
    other = console.another()
    other.client.set_cookie(COOKIE, token)
    return not is_at_login(other.post("/jobinfo/nextTriggerTime"))


@pytest.mark.parametrize("path", ["/login", "/toLogin"])
@pytest.mark.parametrize("planted", ["unknown", "own"])
def test_a_cookie_planted_before_the_login_is_not_adopted(console: Console, path: str, planted: str) -> None:
    add_user("norman")
    add_user("mallory")
    token = UNKNOWN if planted == "unknown" else token_of(console.another().log_in("mallory"))
    console.client.set_cookie(COOKIE, token)
    console.get("/toLogin")
    if planted == "own":
        console.client.set_cookie(COOKIE, token)
    console.post(path, {"userName": "norman", "password": PASSWORD})
    made = token_of(console)
    assert made != token
    assert is_logged_in(console, made)
    assert is_logged_in(console, token) == (planted == "own")
    page = console.client.get(f"{CONTEXT}/account", headers={"Accept": "text/html"}).text
    assert "norman" in page
    assert "mallory" not in page


def test_a_deleted_users_login_stays_dead_when_the_name_is_used_again(admin: Console) -> None:
    user_id = add_user("norman")
    norman = admin.another().log_in("norman")
    token = token_of(norman)
    assert is_logged_in(admin, token)
    admin.call("/user/remove", id=user_id)
    assert not is_logged_in(admin, token)
    add_user("norman")
    assert not is_logged_in(admin, token)


def test_the_token_of_a_form_is_that_of_one_login(admin: Console) -> None:
    add_user("norman")
    norman = admin.another().log_in("norman")
    other = admin.another().log_in("norman")
    form = pages.token_of(norman)
    fields = {"csrf_token": form, "language": "en"}
    assert norman.post("/account/settings", fields).status_code != 403
    assert other.post("/account/settings", fields).status_code == 403
