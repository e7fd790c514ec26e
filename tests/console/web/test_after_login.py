"""The way from a request without a login to the login page, and from the login to what was requested."""

import pytest
from werkzeug.test import TestResponse

from app.console.web.after_login import COOKIE
from app.database.engine import session_scope
from app.models.user import User
from app.services.accounts import passwords
from tests.console.pages import is_at_login, text_of
from tests.support.console import ADMIN_PASSWORD, CONTEXT, Console

PAGE = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
NOT_SAVED = "Your login has ended. What you sent was not saved."


def log_in(console: Console, password: str = ADMIN_PASSWORD) -> TestResponse:
    return console.post("/toLogin", {"userName": "admin", "password": password})


def kept(console: Console) -> str | None:
    cookie = console.client.get_cookie(COOKIE, path=f"{CONTEXT}/")
    return cookie.value if cookie is not None else None


@pytest.mark.parametrize(
    "path", ["/joblog/105", "/jobinfo?jobDesc=a%20b&tag=%E6%97%A5%26x%3By", "/jobinfo?q=%2f%2fevil.example"]
)
def test_a_login_leads_to_the_page_that_was_requested(console: Console, path: str) -> None:
    assert is_at_login(console.get(path, headers=PAGE))
    assert NOT_SAVED not in console.get("/toLogin").text
    refused = log_in(console, "wrong-password")
    assert refused.status_code == 400
    answer = log_in(console)
    assert (answer.status_code, answer.headers["Location"]) == (303, CONTEXT + path)
    assert kept(console) is None
    assert log_in(console.another()).headers["Location"] == f"{CONTEXT}/"


def test_the_cookie_is_for_this_console_for_a_while_and_not_for_scripts(console: Console) -> None:
    answer = console.get("/joblog/105", headers=PAGE)
    (cookie,) = answer.headers.getlist("Set-Cookie")
    assert cookie.startswith(f"{COOKIE}={CONTEXT}/joblog/105;")
    for part in ("HttpOnly", "SameSite=Lax", "Max-Age=900", f"Path={CONTEXT}/"):
        assert part in cookie.split("; ")


def test_a_form_sent_without_a_login_is_noted_on_the_login_page(console: Console) -> None:
    assert is_at_login(console.post("/jobinfo/1/edit", {"job_desc": "typed"}, headers=PAGE))
    assert NOT_SAVED in text_of(console.get("/toLogin"))
    assert log_in(console).headers["Location"] == f"{CONTEXT}/"
    assert kept(console) is None


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", "/", PAGE),
        ("GET", "/start", PAGE),
        ("GET", "/joblog/105", {"Accept": "*/*"}),
        ("GET", "/joblog/105", PAGE | {"X-Refresh": "auto"}),
        ("GET", "/joblog/105?refresh=auto", PAGE),
        ("GET", f"/jobinfo?jobDesc={'x' * 3000}", PAGE),
        ("POST", "/jobinfo/pageList", PAGE),
        ("POST", "/jobinfo/1/edit", {"Accept": "application/json"}),
        ("POST", "/account/logout", PAGE),
    ],
)
def test_scripts_refreshes_and_the_start_page_keep_nothing(
    console: Console, method: str, path: str, headers: dict[str, str]
) -> None:
    answer = console.client.open(CONTEXT + path, method=method, headers=headers)
    assert answer.status_code in {200, 302}
    assert "Set-Cookie" not in answer.headers


def test_a_part_of_an_open_page_leads_nowhere(console: Console) -> None:
    answer = console.get("/jobinfo/preview", headers=PAGE | {"HX-Request": "true"})
    assert answer.status_code == 401
    assert not {"HX-Redirect", "Location", "Set-Cookie"} & set(answer.headers.keys())


@pytest.mark.parametrize(
    "planted",
    [
        "https://evil.example/xxl-job-admin/",
        "//evil.example/",
        "/elsewhere",
        "/xxl-job-admin",
        "/xxl-job-adminx/",
        "\\\\evil.example",
        "/xxl-job-admin/\\evil.example",
        "/xxl-job-admin/../evil",
        "/xxl-job-admin/%2e%2e/evil",
        "/xxl-job-admin/\tx",
        "/xxl-job-admin/ü",
        "javascript:alert(1)",
        "not-saved",
    ],
)
def test_a_planted_target_is_not_followed(console: Console, planted: str) -> None:
    console.client.set_cookie(COOKIE, planted, path=f"{CONTEXT}/")
    assert log_in(console).headers["Location"] == f"{CONTEXT}/"


def test_a_first_password_is_changed_before_anything_else(console: Console) -> None:
    with session_scope() as session:
        stored = passwords.hash_password(ADMIN_PASSWORD, must_change=True)
        session.query(User).filter_by(username="admin").one().password = stored
    console.get("/joblog/105", headers=PAGE)
    assert log_in(console).headers["Location"] == f"{CONTEXT}/"
    assert console.get("/joblog/105", headers=PAGE).headers["Location"] == f"{CONTEXT}/account"
