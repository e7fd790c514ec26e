# ruff: noqa: F401, F811 - fixtures of the console
"""Sign-on by OpenID Connect, attacked: state, nonce, PKCE, tokens, names, rights, a provider that is away."""

import json
import re
import ssl
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from flask import Flask
from joserfc.jwk import KeySet
from sqlalchemy import select
from werkzeug.test import TestResponse

from app.clock import now_ms
from app.config import Config
from app.console.account import sign_on as view
from app.console.web.current import COOKIE as LOGIN_COOKIE
from app.db import read_scope, session_scope
from app.domain.enums import Role
from app.domain.permissions import system_actor
from app.errors import Conflict, InvalidInput, ProviderUnreachable, SignOnRefused
from app.models.audit import AuditEntry
from app.models.session import LoginSession
from app.models.user import User
from app.oidc_config import Grant, OidcConfig
from app.services.accounts import passwords, sign_on, users
from app.services.accounts.users import UserDraft
from app.sign_on import provider as provider_module
from app.sign_on.pending import new_pending
from app.sign_on.provider import Provider
from app.store import rights
from app.store import users as user_store
from tests.console.conftest import (
    ADMIN_PASSWORD,
    CONTEXT,
    PASSWORD,
    Console,
    add_group,
    add_user,
    app,
    console,
)
from tests.console.conftest import settings as console_settings
from tests.plan import every_database
from tests.security.fake_provider import CLIENT_ID, CLIENT_SECRET, FakeProvider, rsa_key, serving_provider

ACTOR = system_actor("test")
CALLBACK = f"{CONTEXT}/sign-on/callback"
PUBLIC = "http://localhost/xxl-job-admin"


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with serving_provider() as made:
        yield made


@pytest.fixture
def oidc(provider: FakeProvider) -> OidcConfig:
    return OidcConfig(issuer=provider.issuer, client_id=CLIENT_ID, client_secret=CLIENT_SECRET)


@pytest.fixture
def settings(console_settings: Config, oidc: OidcConfig) -> Config:
    return replace(console_settings, public_url=PUBLIC, oidc=oidc)


@pytest.fixture
def configure(console: Console, settings: Config) -> Callable[..., None]:
    """Return a function that changes the meaning of the claims."""

    def change(**changes: Any) -> None:
        current = console.app.extensions["xxl_job_sign_on"]
        current._config = replace(current._config, **changes)

    return change


def start(console: Console) -> str:
    response = console.get("/sign-on")
    assert response.status_code == 303, response.text
    return response.headers["Location"]


def sign_in(console: Console, provider: FakeProvider, **changes: str) -> TestResponse:
    """Start and finish a sign-on; ``changes`` are put into the answer the browser delivers."""
    answer = provider.authorize(start(console)) | changes
    return console.client.get(CALLBACK, query_string=answer)


def assert_refused(
    console: Console, response: TestResponse, reason: str, *, status: int = 403, count: int = 1
) -> None:
    """The login page with a notice, no login, and an audit entry with the reason: the ``count``-th."""
    assert response.status_code == status, response.text
    assert 'role="alert"' in response.text
    assert f'action="{CONTEXT}/toLogin"' in response.text
    assert LOGIN_COOKIE not in response.headers.get("Set-Cookie", "")
    with read_scope() as session:
        query = select(AuditEntry).where(AuditEntry.action == "login.refused").order_by(AuditEntry.id)
        entries = list(session.scalars(query))
        assert session.scalars(select(LoginSession)).all() == []
    assert len(entries) == count
    assert reason in json.loads(entries[-1].changes or "{}")["sign_on"]
    assert console.get("/account").headers["Location"] == f"{CONTEXT}/toLogin"


def user_named(name: str) -> User | None:
    with read_scope() as session:
        return user_store.find_by_name(session, name)


def test_a_new_user_logs_in_without_rights(console: Console, provider: FakeProvider) -> None:
    response = sign_in(console, provider)
    assert (response.status_code, response.headers["Location"]) == (303, f"{CONTEXT}/")
    login_cookie, start_cookie = sorted(response.headers.getlist("Set-Cookie"))
    assert re.fullmatch(rf"{LOGIN_COOKIE}=[0-9a-f]{{64}}; HttpOnly; Path=/; SameSite=Lax", login_cookie)
    assert start_cookie.startswith(f"{view.COOKIE}=; ")
    assert "Max-Age=0" in start_cookie
    user = user_named("ann")
    assert user is not None
    assert (user.role, user.permission, user.identity) == (Role.NORMAL, "", f"{provider.issuer} subject-1")
    account = console.get("/account")
    assert account.status_code == 200
    assert 'name="old_password"' not in account.text
    with read_scope() as session:
        assert [row.sign_on for row in session.scalars(select(LoginSession))] == [1]
        actions = [entry.action for entry in session.scalars(select(AuditEntry).order_by(AuditEntry.id))]
    assert actions[-2:] == ["user.add", "login"]
    assert sign_in(console.another(), provider).status_code == 303  # the same user again
    with read_scope() as session:
        assert len(session.scalars(select(User)).all()) == 2


def test_the_request_has_fresh_secrets_and_its_cookie_hides_them(
    console: Console,
    provider: FakeProvider,
) -> None:
    first, second = (console.get("/sign-on") for _ in range(2))
    asked, other = (dict(parse_qsl(urlsplit(each.headers["Location"]).query)) for each in (first, second))
    assert asked["redirect_uri"] == f"{PUBLIC}/sign-on/callback"
    assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
    for name in ("state", "nonce", "code_challenge"):
        assert len(asked[name]) == 43
        assert asked[name] != other[name]
    cookie = first.headers["Set-Cookie"]
    assert cookie.endswith(f"Max-Age=600; HttpOnly; Path={CONTEXT}/sign-on; SameSite=Lax")
    assert not any(asked[name] in cookie for name in ("state", "nonce", "code_challenge"))


CHANGED_ANSWERS: list[tuple[dict[str, str], str, int]] = [
    ({"state": "x" * 43}, "state", 400),
    ({"state": ""}, "state", 400),
    ({"state": "ünïcode"}, "state", 400),
    ({"code": ""}, "no code", 400),
    ({"iss": "https://evil.example"}, "issuer", 400),
    ({"code": "", "error": "access_denied"}, "provider: access_denied", 403),
    ({"code": "", "error": "<script>alert(1)</script>"}, "provider: <script>", 403),
    ({"code": "code of another client"}, "code: invalid_grant", 403),
    ({"code": "\x00\r\nX: y"}, "code: invalid_grant", 403),
]


def test_an_answer_that_was_changed_is_refused(console: Console, provider: FakeProvider) -> None:
    for count, (changes, reason, status) in enumerate(CHANGED_ANSWERS, 1):
        response = sign_in(console, provider, **changes)
        assert_refused(console, response, reason, status=status, count=count)
        assert "<script>alert" not in response.text


def test_an_answer_in_another_browser_is_refused(console: Console, provider: FakeProvider) -> None:
    answer = provider.authorize(start(console))
    victim = console.another()
    assert_refused(victim, victim.client.get(CALLBACK, query_string=answer), "no cookie", status=400)


def test_a_state_of_another_browser_is_refused(console: Console, provider: FakeProvider) -> None:
    answer = provider.authorize(start(console))
    victim = console.another()
    start(victim)
    assert_refused(victim, victim.client.get(CALLBACK, query_string=answer), "state", status=400)


def test_a_forged_cookie_is_refused(console: Console, provider: FakeProvider) -> None:
    for count, value in enumerate(["x", "gAAAAA", "ünï", "A" * 4_000], 1):
        answer = provider.authorize(start(console))
        console.client.set_cookie(view.COOKIE, value, path=f"{CONTEXT}/sign-on")
        response = console.client.get(CALLBACK, query_string=answer)
        assert_refused(console, response, "cookie", status=400, count=count)


def test_a_start_expires_after_ten_minutes(
    console: Console,
    provider: FakeProvider,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = provider.authorize(start(console))
    monkeypatch.setattr(view, "now_ms", lambda: now_ms() + 602_000)
    assert_refused(console, console.client.get(CALLBACK, query_string=answer), "cookie", status=400)


def test_a_replayed_answer_is_refused(console: Console, provider: FakeProvider) -> None:
    location = start(console)
    kept = console.client.get_cookie(view.COOKIE, path=f"{CONTEXT}/sign-on")
    assert kept is not None
    answer = provider.authorize(location)
    assert console.client.get(CALLBACK, query_string=answer).status_code == 303
    assert console.client.get_cookie(view.COOKIE, path=f"{CONTEXT}/sign-on") is None
    again = console.another()
    assert again.client.get(CALLBACK, query_string=answer).status_code == 400
    again.client.set_cookie(view.COOKIE, kept.value, path=f"{CONTEXT}/sign-on")
    assert again.client.get(CALLBACK, query_string=answer).status_code == 403  # the code was used


def test_a_code_stolen_before_its_use_needs_the_verifier(console: Console, provider: FakeProvider) -> None:
    """PKCE: the attacker injects the victim's code into a sign-on of their own."""
    stolen = provider.authorize(start(console))["code"]
    attacker = console.another()
    assert_refused(attacker, sign_in(attacker, provider, code=stolen), "code: invalid_grant")


#: seconds of 2001 and of 2096
PAST_S, FUTURE_S = 1_000_000_000, 4_000_000_000


WRONG_CLAIMS: list[tuple[dict[str, Any], str]] = [
    ({"nonce": "another"}, "nonce"),
    ({"nonce": None}, "nonce"),
    ({"iss": "https://evil.example"}, "iss"),
    ({"iss": None}, "iss"),
    ({"aud": "another-client"}, "aud"),
    ({"aud": [CLIENT_ID, "another-client"]}, "azp"),
    ({"aud": []}, "aud"),
    ({"aud": None}, "aud"),
    ({"azp": "another-client"}, "azp"),
    ({"exp": PAST_S}, "expired"),
    ({"exp": "tomorrow"}, "exp"),
    ({"exp": None}, "exp"),
    ({"nbf": FUTURE_S}, "not yet"),
    ({"at_hash": "of another access token"}, "at_hash"),
    ({"sub": None}, "sub"),
    ({"sub": ""}, "sub"),
    ({"sub": 7}, "sub"),
    ({"sub": "x" * 300}, "subject"),
    ({"sub": "trailing "}, "subject"),
    ({"sub": "line\nend"}, "subject"),
    ({"sub": "\ud800"}, "subject"),
]


def test_a_wrong_claim_is_refused(console: Console, provider: FakeProvider) -> None:
    for count, (claims, reason) in enumerate(WRONG_CLAIMS, 1):
        provider.claims = claims
        assert_refused(console, sign_in(console, provider), reason, count=count)


#: header, and the key id of an RSA key or the key of an HMAC
WRONG_SIGNATURES: list[tuple[dict[str, Any], str | bytes]] = [
    ({"alg": "none"}, b""),
    ({"alg": "HS256", "kid": "one"}, CLIENT_SECRET.encode()),
    ({"alg": "HS256", "kid": "one"}, rsa_key("one").as_pem(private=False)),
    ({"alg": "RS256", "kid": "one"}, "foreign"),
    ({"alg": "RS256", "kid": "foreign"}, "foreign"),
    ({"alg": "RS256", "kid": "one", "jwk": rsa_key("foreign").as_dict(private=False)}, "foreign"),
    ({"alg": "RS256", "kid": "one", "jku": "http://127.0.0.1:1/keys"}, "foreign"),
]


def test_a_signature_that_is_not_the_providers_is_refused(console: Console, provider: FakeProvider) -> None:
    for count, (header, key) in enumerate(WRONG_SIGNATURES, 1):
        provider.header = header
        provider.hmac_key = key if isinstance(key, bytes) else b""
        provider.signing_kid = key if isinstance(key, str) else "one"
        assert_refused(console, sign_in(console, provider), "ID token", count=count)


def test_a_new_key_is_read_at_most_once_a_minute(console: Console, provider: FakeProvider) -> None:
    assert sign_in(console, provider).status_code == 303
    provider.header, provider.signing_kid = {"alg": "RS256", "kid": "two"}, "two"
    provider.published_kids = ["one", "two"]
    client = console.app.extensions["xxl_job_sign_on"]._provider
    for seconds, status in ((30, 403), (61, 303), (62, 303)):
        client._clock = lambda at=client._keys_at + seconds: at
        assert sign_in(console.another(), provider).status_code == status
    assert provider.requests.count("/keys") == 2
    assert provider.requests.count("/.well-known/openid-configuration") == 1


def test_a_name_that_is_taken_is_never_taken_over(console: Console, provider: FakeProvider) -> None:
    provider.claims = {"preferred_username": "Admin"}
    response = sign_in(console, provider)
    assert_refused(console, response, f"name taken, identity {provider.issuer} subject-1")
    assert "An administrator can link it" in response.text


def test_an_unusable_user_name_is_refused(console: Console, provider: FakeProvider) -> None:
    names: list[Any] = [None, "", "a b", "<b>", 'x"', "x" * 51, 7, ["ann"], "a\x00b", "a\ud800"]
    for count, name in enumerate(names, 1):
        provider.claims = {"preferred_username": name}
        assert_refused(console, sign_in(console, provider), "user name", count=count)


def test_a_renamed_user_stays_the_same_user(console: Console, provider: FakeProvider) -> None:
    assert sign_in(console, provider).status_code == 303
    provider.claims = {"preferred_username": "admin"}
    assert sign_in(console.another(), provider).status_code == 303
    assert user_named("ann") is not None


def test_a_disabled_user_is_refused(console: Console, provider: FakeProvider) -> None:
    assert sign_in(console, provider).status_code == 303
    user = user_named("ann")
    assert user is not None
    with session_scope() as session:
        users.update_user(session, user.id, UserDraft(disabled=True), actor=ACTOR, now_ms=now_ms())
    assert_refused(console, sign_in(console.another(), provider), "disabled")


def test_rights_follow_the_claim_at_every_login(
    console: Console,
    provider: FakeProvider,
    configure: Callable[..., None],
) -> None:
    payments, orders = add_group("payments"), add_group("orders")
    configure(
        rights=(
            Grant("ops", "payments", frozenset({"operate", "edit"})),
            Grant("viewers", "*", frozenset({"view"})),
            Grant("ops", "no-such-app", frozenset({"glue"})),
        )
    )

    def granted(groups: Any) -> tuple[str | None, dict[int, str]]:
        provider.claims = {"groups": groups}
        assert sign_in(console.another(), provider).status_code == 303
        user = user_named("ann")
        assert user is not None
        assert user.role == Role.NORMAL
        with read_scope() as session:
            return user.permission, rights.rights_of(session, user.id)

    assert granted(["ops"]) == (f"{payments}", {payments: "view,operate,edit"})
    assert granted(["ops", "viewers"]) == (
        f"{payments},{orders}",
        {payments: "view,operate,edit", orders: "view"},
    )
    assert granted("viewers") == (f"{payments},{orders}", {payments: "view", orders: "view"})
    for nothing in (["OPS", "op", "ops "], [], None, 7, {"ops": True}, [["ops"]]):
        assert granted(nothing) == ("", {})


def test_an_administrator_by_claim_is_one_until_the_claim_ends(
    console: Console,
    provider: FakeProvider,
    configure: Callable[..., None],
) -> None:
    configure(admin_values=("job-admins",), groups_claim="realm_access.roles")
    provider.claims = {"realm_access": {"roles": ["job-admins", "x"]}}
    assert sign_in(console, provider).status_code == 303
    assert console.get("/user").status_code == 200
    provider.claims = {"realm_access": {"roles": ["x"]}}
    assert sign_in(console.another(), provider).status_code == 303
    assert console.get("/user").status_code == 302  # the administrator's login ended
    user = user_named("ann")
    assert user is not None
    assert user.role == Role.NORMAL


@pytest.mark.parametrize("first_admin", ["subject-1", "ann"])
def test_the_first_administrator_is_one_at_the_first_login_only(
    console: Console,
    provider: FakeProvider,
    configure: Callable[..., None],
    first_admin: str,
) -> None:
    configure(first_admin=first_admin)
    assert sign_in(console, provider).status_code == 303
    user = user_named("ann")
    assert user is not None
    assert user.is_admin
    with session_scope() as session:
        users.update_user(session, user.id, UserDraft(role=0), actor=ACTOR, now_ms=now_ms())
    assert sign_in(console.another(), provider).status_code == 303
    user = user_named("ann")
    assert user is not None
    assert not user.is_admin


def test_userinfo_fills_in_claims_of_the_same_subject_only(
    console: Console,
    provider: FakeProvider,
    configure: Callable[..., None],
) -> None:
    configure(admin_values=("job-admins",))
    provider.claims = {"preferred_username": None, "groups": None}
    provider.userinfo = {"sub": "subject-2", "preferred_username": "eve", "groups": ["job-admins"]}
    assert_refused(console, sign_in(console, provider), "userinfo of another subject")
    provider.userinfo["sub"] = "subject-1"
    assert sign_in(console, provider).status_code == 303
    user = user_named("eve")
    assert user is not None
    assert user.is_admin


def test_a_user_of_the_provider_has_no_password(console: Console, provider: FakeProvider) -> None:
    assert sign_in(console, provider).status_code == 303
    user = user_named("ann")
    assert user is not None
    for guess in (passwords.UNUSABLE, user.identity):
        answer = console.another().call("/login", userName="ann", password=guess)
        assert (answer["code"], answer["msg"]) == (500, "Wrong user name or password")
    with pytest.raises(InvalidInput, match="identity provider"), session_scope() as session:
        users.update_user(session, user.id, UserDraft(password=PASSWORD), actor=ACTOR, now_ms=now_ms())
    draft = UserDraft(username="ann", password=PASSWORD)
    with pytest.raises(Conflict, match="identity provider"), session_scope() as session:
        users.set_password(session, draft, actor=ACTOR, now_ms=now_ms())
    page = console.another().log_in().get(f"/user/{user.id}/edit").text
    assert 'name="password"' not in page
    assert f"{provider.issuer} subject-1" in page


def test_linking_gives_a_local_user_to_the_provider(
    console: Console,
    provider: FakeProvider,
    oidc: OidcConfig,
) -> None:
    user_id = add_user("ann")

    def link(username: str, subject: str) -> None:
        with session_scope() as session:
            sign_on.link(session, oidc, username, subject, actor=ACTOR, now_ms=now_ms())

    local = console.another().log_in("ann")
    link("ann", "subject-1")
    assert local.get("/account").status_code == 302
    assert console.call("/login", userName="ann", password=PASSWORD)["code"] == 500
    assert sign_in(console, provider).status_code == 303
    user = user_named("ann")
    assert user is not None
    assert user.id == user_id
    with pytest.raises(Conflict, match="last administrator with a password"):
        link("admin", "subject-2")
    add_user("bert")
    with pytest.raises(Conflict, match="belongs to the user ann"):
        link("bert", "subject-1")
    with pytest.raises(Conflict, match="not linked"):
        link("bert", "")
    with pytest.raises(SignOnRefused):
        link("bert", " x")
    link("ann", "")
    assert sign_in(console.another(), provider).status_code == 403


def test_logout_ends_the_sessions_here_and_at_the_provider(console: Console, provider: FakeProvider) -> None:
    assert sign_in(console, provider).status_code == 303
    token = re.search(r'name="csrf_token" value="(\w+)"', console.get("/account").text)
    assert token is not None
    response = console.post("/account/logout", {"csrf_token": token[1]})
    onward = (
        f"{provider.issuer}/logout?client_id={CLIENT_ID}&amp;post_logout_redirect_uri=http%3A%2F%2Flocalhost"
    )
    assert f'content="0; url={onward}' in response.text
    assert LOGIN_COOKIE in response.headers["Set-Cookie"]
    assert console.get("/account").headers["Location"] == f"{CONTEXT}/toLogin"


AWAY: list[tuple[int, dict[str, str], bytes]] = [
    (500, {}, b""),
    (200, {}, b"<html>"),
    (200, {}, b"[]"),
    (200, {}, b"[" * 200_000),
    (302, {"Location": "/elsewhere"}, b""),
]
PATHS = ["/.well-known/openid-configuration", "/keys", "/token"]


def finish(console: Console, provider: FakeProvider) -> TestResponse:
    """Start a sign-on and finish it unless the start is refused."""
    response = console.get("/sign-on")
    if response.status_code != 303:
        return response
    answer = provider.authorize(response.headers["Location"])
    return console.client.get(CALLBACK, query_string=answer)


@pytest.fixture
def unpaused(console: Console, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function that makes the client forget what it has read and what failed."""
    monkeypatch.setattr(provider_module, "PAUSE_S", 0)

    def forget() -> None:
        client = console.app.extensions["xxl_job_sign_on"]._provider
        client._metadata, client._keys = {}, KeySet([])

    return forget


@pytest.mark.parametrize("path", PATHS)
def test_a_provider_that_answers_nonsense_stops_no_local_login(
    console: Console, provider: FakeProvider, unpaused: Callable[[], None], path: str
) -> None:
    for answer in AWAY:
        unpaused()
        provider.broken = {path: answer}
        response = finish(console, provider)
        assert response.status_code in (403, 503), answer
        assert 'role="alert"' in response.text
        assert "/elsewhere" not in provider.requests
    provider.broken.clear()
    unpaused()
    provider.padding = {path: 600_000}
    assert finish(console, provider).status_code == 503
    provider.requests.clear()
    assert "/sign-on" in console.get("/toLogin").text
    assert console.log_in("admin", ADMIN_PASSWORD).get("/user").status_code == 200
    assert provider.requests == []


UNSAFE: list[tuple[str, Any]] = [
    ("authorization_endpoint", "javascript:alert(1)"),
    ("authorization_endpoint", "https://evil.example/"),
    ("authorization_endpoint", "http://evil.example/"),
    ("token_endpoint", "http://u:p@{host}/token"),
    ("jwks_uri", "file:///etc/passwd"),
    ("jwks_uri", "http://u:p@{host}/keys"),
    ("jwks_uri", 7),
    ("issuer", "https://evil.example"),
]


def test_unsafe_metadata_are_not_used(
    console: Console, provider: FakeProvider, unpaused: Callable[[], None]
) -> None:
    host = urlsplit(provider.issuer).netloc
    for name, address in UNSAFE:
        unpaused()
        provider.metadata = {name: address.format(host=host) if isinstance(address, str) else address}
        assert finish(console, provider).status_code == 503, (name, address)


def test_proxies_of_the_environment_are_not_used(
    console: Console, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert sign_in(console, provider).status_code == 303


def test_tls_needs_a_trusted_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, key = tmp_path / "made.pem", tmp_path / "key.pem"
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=x -addext subjectAltName=IP:127.0.0.1"
    )
    subprocess.run([*command.split(), "-keyout", key, "-out", made], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(made, key)
    with serving_provider(tls) as provider:
        config = OidcConfig(issuer=provider.issuer, client_id=CLIENT_ID)
        redirect_uri = f"{PUBLIC}/sign-on/callback"
        with pytest.raises(ProviderUnreachable):
            Provider(config, redirect_uri=redirect_uri).authorization_url(new_pending())
        assert provider.requests == []
        monkeypatch.setenv("SSL_CERT_FILE", str(made))  # an authority of the system
        url = Provider(config, redirect_uri=redirect_uri).authorization_url(new_pending())
        assert url.startswith(f"{provider.issuer}/auth?")


def test_the_command_links_and_unlinks(console: Console, provider: FakeProvider) -> None:
    add_user("ann")
    runner = console.app.test_cli_runner()
    assert "expected a SUBJECT" in runner.invoke(args=["link-identity", "ann"]).output
    assert runner.invoke(args=["link-identity", "ann", "subject-1"]).output == "user ann: linked\n"
    assert sign_in(console, provider).status_code == 303
    assert runner.invoke(args=["link-identity", "ann", "--remove"]).output == "user ann: unlinked\n"
    assert runner.invoke(args=["link-identity", "eve", "x"]).output == "Error: There is no user eve\n"


def test_calls_in_flight_are_bounded(console: Console, provider: FakeProvider) -> None:
    client = console.app.extensions["xxl_job_sign_on"]._provider
    for _ in range(provider_module.CALLS_MAX):
        client._calls.acquire()
    assert console.get("/sign-on").status_code == 503
    assert provider.requests == []


def test_after_a_failure_the_provider_is_left_alone(console: Console, provider: FakeProvider) -> None:
    provider.broken["/.well-known/openid-configuration"] = AWAY[0]
    assert [console.get("/sign-on").status_code for _ in range(3)] == [503, 503, 503]
    assert len(provider.requests) == 1


def test_refusals_count_as_failed_logins_of_their_address(console: Console, provider: FakeProvider) -> None:
    for _ in range(50):
        assert console.client.get(CALLBACK).status_code == 400
    response = console.client.get(CALLBACK)
    assert response.status_code == 429
    assert int(response.headers["Retry-After"]) > 0
    with read_scope() as session:
        assert len(session.scalars(select(AuditEntry)).all()) == 50


def test_secrets_reach_neither_log_nor_audit_nor_page(
    console: Console,
    provider: FakeProvider,
    caplog: pytest.LogCaptureFixture,
) -> None:
    provider.claims = {"nonce": "another"}
    location = start(console)
    answer = provider.authorize(location)
    page = console.client.get(CALLBACK, query_string=answer).text
    with read_scope() as session:
        audited = "".join(entry.changes or "" for entry in session.scalars(select(AuditEntry)))
    asked = dict(parse_qsl(urlsplit(location).query))
    for secret in (CLIENT_SECRET, answer["code"], asked["state"], asked["nonce"], "eyJ"):
        assert secret not in caplog.text + audited + page


@every_database
def test_an_identity_is_compared_exactly(app: Flask, oidc: OidcConfig) -> None:
    with session_scope() as session:
        for number, subject in enumerate(("abc", "ABC", "äbc")):
            user = User(username=f"user{number}", password=passwords.UNUSABLE, role=0, permission="")
            user.identity = sign_on.identity_of(oidc, subject)
            session.add(user)
    with session_scope() as session:
        for subject, name in (("abc", "user0"), ("ABC", "user1"), ("äbc", "user2")):
            found = user_store.lock_by_identity(session, sign_on.identity_of(oidc, subject))
            assert found is not None
            assert found.username == name
        for subject in ("abc ", "Abc", "âbc"):
            assert user_store.lock_by_identity(session, f"{oidc.issuer} {subject}") is None


def test_without_a_provider_there_is_no_sign_on(console_settings: Config, database: str) -> None:
    from app.factory import create_app

    client = create_app(console_settings).test_client()
    assert "/sign-on" not in client.get(f"{CONTEXT}/toLogin").text
    for path in ("/sign-on", "/sign-on/callback"):
        assert client.get(CONTEXT + path).headers["Location"] == f"{CONTEXT}/toLogin"
