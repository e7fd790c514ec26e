# ruff: noqa: F401, F811 - fixtures
"""Sign-on by OpenID Connect, attacked: state, nonce, PKCE, tokens, metadata, a provider that is away."""

import json
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from joserfc.jwk import KeySet
from sqlalchemy import select
from werkzeug.test import TestResponse

from app.clock import now_ms
from app.console.account import sign_on as view
from app.database.engine import read_scope
from app.errors import ProviderUnreachable
from app.models.audit import AuditEntry
from app.services.accounts import login_throttle
from app.services.auditing import refusals
from app.settings.oidc import OidcConfig
from app.sign_on import provider as provider_module
from app.sign_on import provider_http
from app.sign_on.pending import new_pending
from app.sign_on.provider import Provider
from tests.security.fake_provider import CLIENT_ID, CLIENT_SECRET, FakeProvider, rsa_key, serving_provider
from tests.security.signing_on import (
    CALLBACK,
    PUBLIC,
    assert_refused,
    configure,
    oidc,
    provider,
    settings,
    sign_in,
    start,
)
from tests.support.console import ADMIN_PASSWORD, CONTEXT, Console


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


def test_a_sign_on_leads_to_the_page_that_was_requested(console: Console, provider: FakeProvider) -> None:
    console.get("/joblog/105", headers={"Accept": "text/html"})
    assert sign_in(console, provider).headers["Location"] == f"{CONTEXT}/joblog/105"


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


@pytest.mark.parametrize("latest_first", [False, True])
def test_two_tabs_log_in_once(console: Console, provider: FakeProvider, latest_first: bool) -> None:
    """Both start a sign-on; the cookie is that of the latest start."""
    earlier, latest = (provider.authorize(start(console)) for _ in range(2))
    answers = (latest, earlier) if latest_first else (earlier, latest)
    responses = [console.client.get(CALLBACK, query_string=answer) for answer in answers]
    assert [each.status_code for each in responses] == ([303, 303] if latest_first else [400, 303])
    assert responses[-1].headers["Location"] == f"{CONTEXT}/"
    assert console.get("/account").status_code == 200


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


def published(*keys: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    return 200, {}, json.dumps({"keys": keys}).encode()


@pytest.mark.parametrize("kid", [None, "one"])
def test_a_key_that_replaces_another_of_its_name_is_read(
    console: Console, provider: FakeProvider, kid: str | None
) -> None:
    first, second = (rsa_key(name).as_dict(private=False) | {"kid": kid} for name in ("one", "two"))
    if kid is None:
        del first["kid"], second["kid"]
        provider.header = {"alg": "RS256"}
    provider.broken["/keys"] = published(first)
    assert sign_in(console, provider).status_code == 303
    provider.broken["/keys"], provider.signing_kid = published(second), "two"
    client = console.app.extensions["xxl_job_sign_on"]._provider
    for seconds, status in ((30, 403), (61, 303)):
        client._clock = lambda at=client._keys_at + seconds: at
        assert sign_in(console.another(), provider).status_code == status


@pytest.mark.parametrize(
    "other",
    [
        {"kty": "EC", "crv": "BP-256", "x": "AA", "y": "AA", "kid": "two"},
        {"kty": "OKP", "crv": "Ed9999", "x": "AA", "kid": "two"},
        {"kty": "RSA", "n": "AQAB", "kid": "two"},
        {"kid": "two"},
        "text",
    ],
)
def test_a_key_that_cannot_be_read_is_left_out(console: Console, provider: FakeProvider, other: Any) -> None:
    provider.broken["/keys"] = published(other, rsa_key("one").as_dict(private=False))
    assert sign_in(console, provider).status_code == 303


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
    ("token_endpoint_auth_methods_supported", 5),
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


def test_an_answer_that_takes_too_long_is_cut(
    console: Console, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_http, "BODY_TIMEOUT_S", 0)
    assert console.get("/sign-on").status_code == 503


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


def test_refusals_count_as_failed_logins_of_their_address(
    console: Console,
    provider: FakeProvider,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(login_throttle, "ADDRESS_FAILURES", 3)
    provider.claims = {"preferred_username": "ann\nx"}
    for _ in range(3):
        assert sign_in(console, provider).status_code == 403
    assert 'login refused address=127.0.0.1 username="ann\\ufffdx" reason=sign-on' in caplog.messages
    response = sign_in(console, provider)
    assert response.status_code == 429
    assert int(response.headers["Retry-After"]) > 0
    with read_scope() as session:
        actions = [entry.action for entry in session.scalars(select(AuditEntry))]
    assert actions == 3 * ["login.refused"] + ["refused.login"]


def test_faults_of_the_provider_cause_no_wait(
    console: Console,
    provider: FakeProvider,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its users behind one address keep their local accounts."""
    monkeypatch.setattr(login_throttle, "ADDRESS_FAILURES", 2)
    error = b'{"error": "invalid_client"}'
    provider.broken["/token"] = (401, {"Content-Type": "application/json"}, error)
    assert_refused(console, sign_in(console, provider), "code: invalid_client")
    provider.broken.clear()
    provider.signing_kid = "foreign"
    assert_refused(console, sign_in(console, provider), "ID token: ", count=2)
    provider.signing_kid = "one"
    provider.claims = {"aud": "another"}
    assert_refused(console, sign_in(console, provider), "ID token: ", count=3)
    assert "login refused" not in caplog.text  # what fail2ban reads
    assert sum("openid provider's answer invalid" in each for each in caplog.messages) == 3
    assert console.log_in("admin", ADMIN_PASSWORD).get("/user").status_code == 200


def test_images_of_another_site_cause_no_wait(console: Console, provider: FakeProvider) -> None:
    """Answers that the browser did not ask for: they guess nothing, and any site can cause them."""
    start(console)
    for _ in range(60):
        query = {"code": "c", "state": "s"}
        assert console.client.get(CALLBACK, query_string=query).status_code == 400
    refusals.recorder.flush(last=True)
    with read_scope() as session:
        assert len(session.scalars(select(AuditEntry)).all()) == 2
    assert sign_in(console, provider).status_code == 303


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
