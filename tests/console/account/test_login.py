"""Login, logout and session cookie, as clients of the original use them.

Source: docs/reference/clients.md, section B1.
"""

import re

import pytest

from app.models.session import LoginSession
from tests.support.console import ADMIN_PASSWORD, CONTEXT, PASSWORD, Console, add_user
from tests.support.factories import only_row

OK = b'{"code":200,"msg":null,"content":null}'


def cookie_of(console: Console) -> str:
    """Log in without a cookie jar; return the value of the cookie."""
    response = console.app.test_client(use_cookies=False).post(
        f"{CONTEXT}/login?userName=admin&password={ADMIN_PASSWORD}"
    )
    return response.headers["Set-Cookie"].split("=", 1)[1].split(";")[0]


@pytest.mark.parametrize("as_query", [True, False], ids=["query", "form"])
def test_login_returns_the_original_envelope_and_exactly_one_cookie(console: Console, as_query: bool) -> None:
    parameters = {"userName": "admin", "password": ADMIN_PASSWORD}
    response = (
        console.post("/login", query_string=parameters) if as_query else console.post("/login", parameters)
    )
    assert response.data == OK
    assert response.content_type.startswith("application/json")
    (cookie,) = response.headers.getlist("Set-Cookie")
    assert re.fullmatch(r"XXL_JOB_LOGIN_IDENTITY=[0-9a-f]{64}; HttpOnly; Path=/; SameSite=Lax", cookie)


def test_remember_me_outlives_the_browser_session(console: Console) -> None:
    response = console.post("/login", {"userName": "admin", "password": ADMIN_PASSWORD, "ifRemember": "on"})
    assert "Max-Age=31536000" in response.headers["Set-Cookie"]
    assert "Expires=" in response.headers["Set-Cookie"]


@pytest.mark.parametrize(
    "shape",
    [
        "XXL_JOB_LOGIN_IDENTITY={}",
        "XXL_JOB_LOGIN_IDENTITY={}; Path",
        "XXL_JOB_LOGIN_IDENTITY={}; Path=/; HttpOnly",
        "XXL_JOB_LOGIN_IDENTITY={}; HttpOnly; Path=/; SameSite=Lax",
        'XXL_JOB_LOGIN_IDENTITY="{}"',
        "{}; Path",
        "other=1; XXL_JOB_LOGIN_IDENTITY={}; xxljob_adminlte_settings=on",
        "XXL_JOB_LOGIN_IDENTITY=7b226964; XXL_JOB_LOGIN_IDENTITY={}",
        "remember_token=x; XXL_JOB_LOGIN_IDENTITY={}",
    ],
)
def test_every_form_of_the_cookie_is_accepted(console: Console, shape: str) -> None:
    cookie = shape.format(cookie_of(console))
    response = console.app.test_client(use_cookies=False).post(
        f"{CONTEXT}/jobgroup/pageList", headers={"Cookie": cookie}
    )
    assert response.status_code == 200
    assert response.get_json()["recordsTotal"] == 0


@pytest.mark.parametrize("value", ["", "0" * 64, "x" * 64, "7b226964223a317d", "' OR 1=1 --", "A" * 5000])
def test_a_forged_cookie_is_not_a_login_and_is_deleted(console: Console, value: str) -> None:
    client = console.app.test_client(use_cookies=False)
    response = client.get(
        f"{CONTEXT}/jobgroup/pageList", headers={"Cookie": f"XXL_JOB_LOGIN_IDENTITY={value}"}
    )
    assert response.status_code == 302
    assert response.headers["Location"] == f"{CONTEXT}/toLogin"
    assert response.data == b""
    (cookie,) = response.headers.getlist("Set-Cookie")
    assert cookie.startswith("XXL_JOB_LOGIN_IDENTITY=;")
    assert "Max-Age=0" in cookie


@pytest.mark.parametrize(
    "path", ["/", "/jobinfo/pageList", "/no/such/page", "/static/no-such-file.js", "/login", "/user/add"]
)
def test_without_a_login_every_page_redirects_to_the_login(console: Console, path: str) -> None:
    response = console.get(path, headers={"Host": "localhost:8080"})
    assert (response.status_code, response.headers["Location"], response.data) == (
        302,
        f"{CONTEXT}/toLogin",
        b"",
    )
    assert "Set-Cookie" not in response.headers


def test_with_a_login_an_unknown_url_is_404_and_a_wrong_method_405(admin: Console) -> None:
    missing = admin.get("/no/such/page")
    assert missing.status_code == 404
    assert list(missing.get_json()) == ["timestamp", "status", "error", "path"]
    assert missing.get_json()["path"] == f"{CONTEXT}/no/such/page"
    assert admin.get("/login").status_code == 405
    assert admin.get("/jobinfo/start?id=1").status_code == 405


def test_the_context_path_gets_its_slash_and_the_root_redirects_to_it(console: Console) -> None:
    for path in (CONTEXT, "/"):
        response = console.client.get(path)
        assert (response.status_code, response.headers["Location"]) == (302, f"{CONTEXT}/")
    assert console.client.get("/jobinfo").status_code == 404


def test_doubled_slashes_are_merged(admin: Console) -> None:
    assert admin.post("//jobgroup//pageList").status_code == 200


def test_the_login_page_redirects_logged_in_users(admin: Console) -> None:
    response = admin.get("/toLogin")
    assert (response.status_code, response.headers["Location"]) == (303, f"{CONTEXT}/")


@pytest.mark.parametrize(
    ("username", "password", "text"),
    [
        ("", "x", "Enter user name and password"),
        ("admin", " ", "Enter user name and password"),
        ("admin", "wrong-password", "Wrong user name or password"),
        ("nobody", "wrong-password", "Wrong user name or password"),
    ],
)
def test_a_refused_login_always_shows_the_same_text_and_sets_no_cookie(
    console: Console, username: str, password: str, text: str
) -> None:
    response = console.post("/login", {"userName": username, "password": password})
    assert response.status_code == 200
    assert response.get_json() == {"code": 500, "msg": text, "content": None}
    assert "Set-Cookie" not in response.headers


def test_too_many_failures_are_429_with_a_wait(console: Console) -> None:
    for _ in range(5):
        assert console.post("/login", {"userName": "victim", "password": "guess"}).status_code == 200
    refused = console.post("/login", {"userName": "victim", "password": "guess"})
    assert refused.status_code == 429
    assert refused.headers["Retry-After"] == "1"
    assert refused.get_json()["code"] == 500
    console.log_in()  # other accounts are not delayed


def test_logout_ends_the_login_on_the_server(console: Console) -> None:
    token = cookie_of(console)
    client = console.app.test_client(use_cookies=False)
    headers = {"Cookie": f"XXL_JOB_LOGIN_IDENTITY={token}"}
    assert client.post(f"{CONTEXT}/logout", headers=headers).data == OK
    assert client.post(f"{CONTEXT}/jobgroup/pageList", headers=headers).status_code == 302
    assert client.post(f"{CONTEXT}/logout").data == OK


def test_the_database_contains_no_token(console: Console) -> None:
    token = cookie_of(console)
    row = only_row(LoginSession, user_id=1)
    assert token not in (row.token_hash, row.agent, row.address)
    assert len(row.token_hash) == 64


def test_each_login_has_its_own_token(console: Console) -> None:
    assert cookie_of(console) != cookie_of(console)


def test_a_password_change_requires_the_old_one_and_ends_every_login(console: Console) -> None:
    add_user("norman")
    first, second = console.another().log_in("norman", PASSWORD), console.another().log_in("norman", PASSWORD)
    assert first.call("/user/updatePwd", password="new-secret-88")["code"] == 500
    assert first.call("/user/updatePwd", oldPassword="wrong-one-1", password="new-secret-88")["code"] == 500
    assert first.call("/user/updatePwd", oldPassword=PASSWORD, password="short")["code"] == 500
    assert first.call("/user/updatePwd", oldPassword=PASSWORD, password="new-secret-88")["code"] == 200
    for console_ in (first, second):
        assert console_.post("/logout").status_code == 200
        assert console_.post("/jobinfo/nextTriggerTime").status_code == 302
    console.another().log_in("norman", "new-secret-88")
