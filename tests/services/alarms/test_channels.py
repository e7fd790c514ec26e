"""Alarm channels against real servers in this process: SMTP with and without TLS, a webhook."""

import email
import email.policy
import json
import smtplib
import socket
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
import requests
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword, Session

from app.domain.alarms.alarm_urls import SCHEMES, check_urls, label, split_urls
from app.domain.text.texts import Text
from app.errors import InvalidInput
from app.executors import webhook_http
from app.executors.webhook_http import WebhookSession
from app.services.alarms import channels
from app.services.alarms.channels import MAIL_TOTAL_S, OK, Message, send_apprise, send_mail
from app.settings.config import MailConfig
from tests.support.alarms import mail_server
from tests.support.fake_executor import Answer, FakeExecutor, Fault

# Apprise loads all its plugins at the first message, some with old imports
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

MESSAGE = Message("[Duetime] Nächtlicher Bericht:\nfailed", "Log 7\ndisk füll\n")
PASSWORD = "letter-box-5"
#: key of a WeCom group robot
KEY = "693a91f6-7aaa-4bc4-97a0-0ec2sifa5aaa"


def authenticate(
    _server: Any, _session: Session, _envelope: Envelope, _mechanism: str, login: Any
) -> AuthResult:
    right = isinstance(login, LoginPassword) and (login.login, login.password) == (
        b"robot",
        PASSWORD.encode(),
    )
    return AuthResult(success=right, handled=False)


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server context whose certificate, for localhost, this process trusts."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    subprocess.run(
        [*command, "-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)],
        check=True,
        capture_output=True,
    )
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def test_a_mail_without_tls() -> None:
    with mail_server() as (inbox, port):
        config = MailConfig("127.0.0.1", port, sender="jobs@example.com", security="none")
        assert send_mail(config, "ops@example.com", MESSAGE) == OK
    ((envelope, encrypted),) = inbox.mails
    mail = email.message_from_bytes(envelope.content or b"", policy=email.policy.default)
    assert not encrypted
    assert (envelope.mail_from, envelope.rcpt_tos) == ("jobs@example.com", ["ops@example.com"])
    assert mail["Subject"] == "[Duetime] Nächtlicher Bericht: failed", "one line, whatever the title contains"
    assert mail["Date"]
    assert mail.get_content().replace("\r\n", "\n") == MESSAGE.body


@pytest.mark.parametrize(("password", "expected"), [(PASSWORD, OK), ("wrong", "535")])
def test_a_mail_by_starttls_and_login(tls: ssl.SSLContext, password: str, expected: str) -> None:
    with mail_server(
        tls_context=tls, require_starttls=True, authenticator=authenticate, auth_required=True
    ) as (
        inbox,
        port,
    ):
        config = MailConfig("localhost", port, "robot", password, "jobs@example.com", "starttls")
        answer = send_mail(config, "ops@example.com", MESSAGE)
    assert expected in answer
    assert password not in answer or password == "wrong"
    assert [encrypted for _, encrypted in inbox.mails] == ([True] if expected == OK else [])


def test_a_mail_by_tls_from_the_first_byte(tls: ssl.SSLContext) -> None:
    with mail_server(ssl_context=tls) as (inbox, port):
        config = MailConfig("localhost", port, sender="jobs@example.com", security="tls")
        assert send_mail(config, "ops@example.com", MESSAGE) == OK
    assert len(inbox.mails) == 1


def test_an_untrusted_server_gets_no_password(tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with mail_server(tls_context=tls, require_starttls=True) as (inbox, port):
        config = MailConfig("localhost", port, "robot", PASSWORD, "jobs@example.com", "starttls")
        assert "certificate" in send_mail(config, "ops@example.com", MESSAGE).lower()
    assert inbox.mails == []


def test_refused_addresses_and_missing_servers_return_the_error() -> None:
    with mail_server() as (inbox, port):
        config = MailConfig("127.0.0.1", port, sender="jobs@example.com", security="none")
        receiver = "nobody@example.com"
        assert send_mail(config, receiver, MESSAGE) == f"550 no such user (receiver {receiver})"
        assert send_mail(config, "no\r\naddress", MESSAGE) != OK
    assert "refused" in send_mail(config, "ops@example.com", MESSAGE)
    assert inbox.mails == []


@pytest.mark.parametrize("stored", ["Ops <ops@example.com>", "<ops@example.com>", " ops@example.com "])
def test_a_mail_address_may_have_a_name(stored: str) -> None:
    with mail_server() as (inbox, port):
        config = MailConfig("127.0.0.1", port, sender="jobs@example.com", security="none")
        assert send_mail(config, stored, MESSAGE) == OK
    ((envelope, _),) = inbox.mails
    assert envelope.rcpt_tos == ["ops@example.com"]


@pytest.mark.parametrize(
    ("stored", "receiver"),
    [
        ("root", "root"),
        ("ops@mail_host.local", "ops@mail_host.local"),
        ("ops@[127.0.0.1]", "ops@[127.0.0.1]"),
        ('"on call"@example.com', '"on call"@example.com'),
        ("ops@example.com (Ops)", "ops@example.com"),
    ],
)
def test_a_stored_address_of_a_form_no_longer_accepted_is_still_used(stored: str, receiver: str) -> None:
    with mail_server() as (inbox, port):
        config = MailConfig("127.0.0.1", port, sender="jobs@example.com", security="none")
        assert send_mail(config, stored, MESSAGE) == OK
    ((envelope, _),) = inbox.mails
    assert envelope.rcpt_tos == [receiver]


@pytest.mark.parametrize(
    "stored",
    [
        "ops@example.com;dev@example.com",
        "ops@example.com; dev@example.com",
        "ops@example.com dev@example.com",
        "ops@example.com; Dev <dev@example.com>",
        "Ops <ops@example.com> Dev <dev@example.com>",
        "ops@example.com\uff0cdev@example.com",
        "Team: ops@example.com;",
        "undisclosed:;",
        "ops@",
        "<>",
        "",
    ],
)
def test_a_text_that_is_not_one_mail_address_is_an_error(stored: str) -> None:
    with mail_server() as (inbox, port):
        config = MailConfig("127.0.0.1", port, sender="jobs@example.com", security="none")
        answer = send_mail(config, stored, MESSAGE)
    assert str(answer) == f'"{stored}" is not one mail address; separate several by commas'
    assert inbox.mails == []


@pytest.mark.parametrize("farewell", ["421 closing", "502 what?", "not a code"])
def test_a_mail_that_was_accepted_is_sent_however_the_session_ends(farewell: str) -> None:
    with mail_server() as (inbox, port):
        inbox.farewell = farewell
        config = MailConfig("127.0.0.1", port, sender="jobs@example.com", security="none")
        assert send_mail(config, "ops@example.com", MESSAGE) == OK
    assert len(inbox.mails) == 1


def test_a_server_may_examine_a_mail_until_the_time_for_it_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    timeouts, data = list[float | None](), smtplib.SMTP.data

    def noting_timeout(server: smtplib.SMTP, text: Any) -> Any:
        assert server.sock is not None
        timeouts.append(server.sock.gettimeout())
        return data(server, text)

    monkeypatch.setattr(smtplib.SMTP, "data", noting_timeout)
    with mail_server() as (_, port):
        config = MailConfig("127.0.0.1", port, sender="jobs@example.com", security="none")
        assert send_mail(config, "ops@example.com", MESSAGE) == OK
    assert timeouts == [MAIL_TOTAL_S]


def test_a_webhook_gets_title_and_text() -> None:
    with FakeExecutor() as hook:
        assert send_apprise(f"{hook.address.replace('http', 'json')}some/path", MESSAGE) == OK
    (request,) = hook.requests
    assert request.target.startswith("/some/path")
    assert (request.json["message"].strip(), "Nächtlicher Bericht" in request.json["title"]) == (
        MESSAGE.body.strip(),
        True,
    )


@pytest.mark.parametrize(
    "answer", [Answer(status=500), Answer(status=404), Answer(fault=Fault.CLOSE), Answer(fault=Fault.SILENCE)]
)
def test_a_failing_webhook_returns_the_error(answer: Answer) -> None:
    with FakeExecutor() as hook:
        hook.respond("*", answer)
        result = send_apprise(f"{hook.address.replace('http', 'json')}s3cret?rto=0.3", MESSAGE)
    assert result == "the channel refused the message or did not answer"


def test_an_unknown_channel_is_named_without_its_secret() -> None:
    result = send_apprise("nonsense://s3cret", MESSAGE)
    assert result == "Apprise does not recognise nonsense://…"


@pytest.mark.parametrize("scheme", sorted(SCHEMES))
def test_allowed_schemes_are_accepted(scheme: str) -> None:
    check_urls("alarmUrls", f"{scheme}://some-secret/\n  {scheme.upper()}://other ")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "syslog://",
        "dbus://",
        "windows://",
        "http://127.0.0.1/",
        "s3cret",
        "x-y",
        "mailto://a:b@c.d/",
    ],
)
def test_other_schemes_are_refused_without_naming_the_secret(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_urls("alarmUrls", f"json://fine\n{url}?s3cret")
    assert refused.value.field == "alarmUrls"
    assert "?s3cret" not in str(refused.value)
    assert isinstance(refused.value.message, Text), "shown in the reader's language"


def test_a_scheme_alone_is_refused() -> None:
    with pytest.raises(InvalidInput, match="refused"):
        check_urls("alarmUrls", "json://")


def test_urls_are_separated_by_lines_or_blanks() -> None:
    assert split_urls(" a://b\r\n\tc://d e://f\n") == ["a://b", "c://d", "e://f"]
    assert split_urls(None) == []
    assert label("json://user:pass@host") == "json://…"


@pytest.mark.parametrize(
    ("url", "host", "answer", "expected"),
    [
        (
            "dingtalk://" + "a" * 64,
            "oapi.dingtalk.com",
            {"errcode": 310000, "errmsg": "keyword"},
            "310000",
        ),
        ("wecombot://" + KEY, "qyapi.weixin.qq.com", {"errcode": 93000, "errmsg": "invalid url"}, "93000"),
        ("feishu://" + "a" * 36, "open.feishu.cn", {"code": 19024, "msg": "Key Words Not Found"}, "19024"),
        ("lark://" + "a" * 36, "open.larksuite.com", {"code": 9499, "msg": "Bad Request"}, "9499"),
        ("dingtalk://" + "a" * 64, "oapi.dingtalk.com", {"errcode": 0, "errmsg": "ok"}, OK),
        ("feishu://" + "a" * 36, "open.feishu.cn", {"StatusCode": 0, "code": 0, "msg": "success"}, OK),
    ],
)
def test_a_service_that_refuses_with_the_status_200(
    hook: FakeExecutor,
    monkeypatch: pytest.MonkeyPatch,
    url: str,
    host: str,
    answer: dict[str, Any],
    expected: str,
) -> None:
    hook.respond("*", Answer(body=json.dumps(answer).encode()))
    request = WebhookSession.request

    def to_hook(session: WebhookSession, method: str, target: str, **options: Any) -> requests.Response:
        assert host in target
        return request(session, method, target.replace(f"https://{host}", hook.address), **options)

    monkeypatch.setattr(WebhookSession, "request", to_hook)
    monkeypatch.setitem(webhook_http.CODES, "127.0.0.1", webhook_http.CODES[host])
    # Apprise's plugin for Lark waits before its first message as well
    monkeypatch.setattr("apprise.plugins.base.NotifyBase.request_rate_per_sec", 0)
    result = send_apprise(url, MESSAGE)
    assert result == OK if expected == OK else expected in result
    assert len(hook.requests) == 1


@pytest.mark.parametrize(
    ("url", "characters", "of", "longest"),
    [
        ("tgram://123456789:abcdefg_hijklmnop/1231554/", 5_000, "<", 4_096),
        ("wecombot://" + KEY, 900, "错", 2_048),
    ],
)
def test_a_message_is_cut_to_what_a_service_takes(
    hook: FakeExecutor,
    monkeypatch: pytest.MonkeyPatch,
    url: str,
    characters: int,
    of: str,
    longest: int,
) -> None:
    request = WebhookSession.request

    def to_hook(session: WebhookSession, method: str, target: str, **options: Any) -> requests.Response:
        return request(session, method, hook.address, **options)

    monkeypatch.setattr(WebhookSession, "request", to_hook)
    send_apprise(url, Message("Nightly report: 1 run failed", "Run 7\n" + of * characters))
    (received,) = hook.requests
    text = received.json.get("text") or received.json["text"]["content"]
    text = text["content"] if isinstance(text, dict) else text
    assert longest * 0.9 < (len(text.encode()) if of == "错" else len(text)) <= longest
    assert "Run 7" in text
    assert text.rstrip().endswith("…")


@pytest.mark.parametrize("of", ["x", '"', "错", "🔥"])
def test_a_long_message_to_ntfy_stays_a_message(hook: FakeExecutor, of: str) -> None:
    """Longer ones become files, which a server may refuse."""
    url = f"{hook.address.replace('http', 'ntfy', 1)}alarms"
    assert send_apprise(url, Message(f"1 run failed {of * 150}", "Run 7\n" + of * 13_000)) == OK
    (request,) = hook.requests
    text = request.json["message"]
    assert request.json["title"].startswith("1 run failed")
    assert len(text.encode()) <= 4_096
    assert len(request.body) <= 8_000
    assert len(text.encode()) > 4_000 or len(request.body) > 7_000, "no shorter than it has to be"
    assert text.startswith("Run 7\n")
    assert text.endswith("…")


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("discord://" + "1" * 18 + "/" + "a" * 64 + "?format=markdown", ""),
        ("https://discord.com/api/webhooks/" + "1" * 18 + "/" + "a" * 64, ""),
        ("feishu://" + "a" * 36, "to ops@example.com"),
        (f"https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={KEY}", "to ops@example.com"),
    ],
)
def test_a_text_of_an_executor_notifies_no_user_of_a_chat(
    hook: FakeExecutor, monkeypatch: pytest.MonkeyPatch, url: str, kept: str
) -> None:
    request = WebhookSession.request

    def to_hook(session: WebhookSession, method: str, target: str, **options: Any) -> requests.Response:
        return request(session, method, hook.address, **options)

    monkeypatch.setattr(WebhookSession, "request", to_hook)
    named = '@everyone, @here <@&12> <at user_id="all">all</at>'
    send_apprise(url, Message("@all", f"{named} a@everyone x@here.example to ops@example.com"))
    sent = json.dumps(hook.requests[-1].json, ensure_ascii=False)
    assert kept in sent
    for mention in ("@all", "@everyone", "@here", "<@", "<at "):
        assert mention not in sent


def test_a_mail_server_that_takes_too_long_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "MAIL_TOTAL_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = MailConfig("127.0.0.1", silent.getsockname()[1], sender="a@example.com", security="none")
        answer = send_mail(config, "ops@example.com", MESSAGE)
    assert str(answer) == "the mail server took over 0.2 s"
