"""Requests the console refuses for their form, whatever they ask for; tests/security has the known holes."""

import pytest

from tests.support.console import Console

HTML = {"Accept": "text/html"}


@pytest.mark.parametrize(
    "headers",
    [{}, {"Origin": "http://localhost"}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}],
)
def test_scripts_and_our_own_pages_can(admin: Console, headers: dict[str, str]) -> None:
    response = admin.post("/jobgroup/save", {"appname": "good-app", "title": "good"}, headers=headers)
    assert response.get_json()["code"] == 200


@pytest.mark.parametrize("host", ["localhost", "localhost:8080", "127.0.0.1:8080", "[::1]:8080", "LOCALHOST"])
def test_loopback_names_are_accepted(console: Console, host: str) -> None:
    assert console.get("/toLogin", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", "application/xml", ""])
def test_a_body_that_is_not_a_form_is_refused(admin: Console, content_type: str) -> None:
    assert admin.post("/jobgroup/save", b"{}", content_type=content_type).status_code == 415


def test_a_body_too_long_is_refused(admin: Console) -> None:
    response = admin.post("/jobgroup/save", {"title": "x" * (9 * 1024 * 1024)})
    assert response.status_code == 413


def test_an_invalid_integer_is_a_bad_request(admin: Console) -> None:
    for value in ("", "x", "1.5", "0x1", "99999999999", "1;drop table", "٣"):
        assert admin.post("/jobinfo/start", {"id": value}).status_code == 400
    assert admin.post("/joblog/logKill", {"id": str(2**63)}).status_code == 400
    assert admin.call("/jobinfo/start") == {"code": 500, "msg": "Parameter id is missing", "content": None}


def test_pages_have_a_content_security_policy_and_are_not_cached(admin: Console) -> None:
    for response in (
        admin.get("/toLogin"),
        admin.post("/jobgroup/pageList"),
        admin.get("/no/such/page", headers=HTML),
    ):
        policy = response.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Referrer-Policy"] == "same-origin"
        assert response.headers["Cache-Control"] == "no-store"
        assert "Strict-Transport-Security" not in response.headers
        assert "Server" not in response.headers


def test_an_error_page_escapes_its_input(admin: Console) -> None:
    response = admin.get("/<script>alert(1)</script>?x=<script>", headers=HTML)
    assert response.status_code == 404
    assert "<script>alert" not in response.text
