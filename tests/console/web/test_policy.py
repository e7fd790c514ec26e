"""Access policy: every endpoint has an entry; tests/security compares what the entries admit."""

import pytest
from flask import Flask
from werkzeug.routing import Rule

from app.console import POLICY
from app.console.web.access import Access
from app.database.engine import session_scope
from app.store.accounts import users
from tests.support.console import CONTEXT, Console, add_user
from tests.support.console_web import SAMPLE, rules_of

#: independent of the database
pytestmark = pytest.mark.databases("sqlite")


def method_of(rule: Rule) -> str:
    return "POST" if rule.methods and "POST" in rule.methods else "GET"


def path_of(app: Flask, rule: Rule) -> str:
    values = {name: SAMPLE.get(name, 1) for name in rule.arguments}
    return CONTEXT + app.url_map.bind("localhost").build(rule.endpoint, values, method=method_of(rule))


def test_every_endpoint_has_an_entry_and_every_entry_an_endpoint(app: Flask) -> None:
    endpoints = {rule.endpoint for rule in app.url_map.iter_rules()}
    assert endpoints - set(POLICY) == set()
    assert set(POLICY) - endpoints == set()


def test_no_url_has_two_endpoints(app: Flask) -> None:
    seen: dict[tuple[str, str], str] = {}
    for rule in app.url_map.iter_rules():
        for method in (rule.methods or set()) - {"OPTIONS"}:
            assert seen.setdefault((rule.rule, method), rule.endpoint) == rule.endpoint


def test_an_endpoint_without_an_entry_is_refused(app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(POLICY, "scripting_groups.page_list")
    admin = Console(app, app.test_client()).log_in()
    for method in ("POST", "OPTIONS"):
        assert admin.client.open(f"{CONTEXT}/jobgroup/pageList", method=method).status_code == 403


def test_options_without_a_login_lead_to_the_login_page(app: Flask) -> None:
    for rule in app.url_map.iter_rules():
        response = app.test_client().options(path_of(app, rule))
        expected = (200, None) if POLICY[rule.endpoint] is Access.PROBE else (302, f"{CONTEXT}/toLogin")
        assert (response.status_code, response.headers.get("Location")) == expected, rule
        assert response.data == b""


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/", {"GET", "HEAD", "OPTIONS"}),
        ("/jobinfo/pageList", {"GET", "HEAD", "POST", "OPTIONS"}),
        ("/jobinfo/start", {"POST", "OPTIONS"}),
        ("/toLogin", {"GET", "HEAD", "POST", "OPTIONS"}),
        ("/health", {"GET", "HEAD", "OPTIONS"}),
    ],
)
def test_options_list_the_methods_for_logged_in_users(app: Flask, path: str, methods: set[str]) -> None:
    add_user("norman")
    norman = Console(app, app.test_client()).log_in("norman")
    response = norman.client.options(CONTEXT + path)
    assert (response.status_code, response.allow.as_set(), response.data) == (
        200,
        {method.lower() for method in methods},
        b"",
    )
    assert norman.client.options(f"{CONTEXT}/no/such/page").status_code == 404


def test_a_first_password_allows_only_its_change(app: Flask) -> None:
    user_id = add_user("norman")
    with session_scope() as session:
        user = users.lock_user(session, user_id)
        assert user is not None
        user.password = f"first:{user.password}"
    norman = Console(app, app.test_client()).log_in("norman")
    for rule in rules_of(app):
        if POLICY[rule.endpoint] in (Access.PUBLIC, Access.PROBE, Access.FIRST):
            continue
        response = norman.client.open(path_of(app, rule), method=method_of(rule))
        answer = response.get_json(silent=True) or {}
        assert response.status_code in (302, 403) or answer.get("code") == 500, rule
    assert norman.get("/account").status_code == 200


def test_a_form_of_a_page_needs_its_token(admin: Console) -> None:
    assert admin.post("/logout").status_code == 200  # a JSON endpoint needs none
    admin.log_in()
    response = admin.post("/account/password", {"old_password": "x"})
    assert response.status_code == 403
