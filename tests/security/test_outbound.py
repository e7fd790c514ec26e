"""Attacks on outbound calls: executors, webhooks and addresses that lead elsewhere or never end."""

import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from http.client import HTTPConnection
from ipaddress import ip_address
from pathlib import Path

import pytest
import requests
from werkzeug.test import Client

from app.console.web.current import COOKIE
from app.database.flask_db import db
from app.domain.alarms.alarm_urls import check_urls, split_urls
from app.errors import InvalidInput
from app.executors.permits import RETRY_AFTER_S, Permits
from app.models.registry import Registration
from app.services.alarms.channels import OK, Message, send_apprise, send_mail, send_webhook
from app.services.executors.callers import Caller
from app.settings.config import Config, MailConfig
from app.settings.home import access_tokens
from tests.console.pages import token_of
from tests.support.console import CONTEXT, Console, add_group, add_job
from tests.support.console_runs import add_log
from tests.support.eventually import eventually
from tests.support.factories import all_rows
from tests.support.fake_executor import Answer, FakeExecutor
from tests.support.serving import serving


@pytest.mark.parametrize("end", ["?", "#", "?x=1", "#x", "%3f", "%3F", "%23", "?#", "/?"])
def test_an_executor_address_cannot_choose_the_whole_path(
    console: Console, settings: Config, end: str
) -> None:
    """``join`` would append ``/run`` behind the ``?``, and the token would be sent to ``/internal/admin``."""
    token = access_tokens(settings)[0]
    body = {
        "registryGroup": "EXECUTOR",
        "registryKey": "sample-app",
        "registryValue": f"http://127.0.0.1:9999/internal/admin{end}",
    }
    answer = Client(console.app).post(
        f"{CONTEXT}/api/registry", data=json.dumps(body), headers={"XXL-JOB-ACCESS-TOKEN": token}
    )
    assert answer.get_json()["code"] == 500
    assert "query" in answer.get_json()["msg"]
    assert all_rows(Registration) == []


#: a piece of a log that never ends: it moves on with every request
ENDLESS = Answer.json(content={"logContent": "\n" * 240_000, "isEnd": False})
#: threads of the console in these tests: two calls at a time, one of them a stream
THREADS = 4


@pytest.fixture
def executor() -> Iterator[FakeExecutor]:
    with FakeExecutor() as running:
        running.respond("log", ENDLESS)
        yield running


@pytest.fixture
def log_id(admin: Console, executor: FakeExecutor, monkeypatch: pytest.MonkeyPatch) -> int:
    """A run on the executor, in a console of few threads."""
    monkeypatch.setattr("app.executors.permits.WAIT_S", 0)
    caller: Caller = admin.app.extensions["xxl_job_caller"]
    admin.app.extensions["xxl_job_caller"] = replace(caller, permits=Permits(THREADS))
    group_id = add_group(addresses=executor.address)
    job_id = add_job(group_id)
    return add_log(job_id, group_id, executor_address=executor.address, handle_code=0, handle_time=None)


def permits_of(console: Console) -> Permits:
    permits = console.app.extensions["xxl_job_caller"].permits
    assert isinstance(permits, Permits)
    return permits


def test_an_endless_log_is_sent_piece_by_piece_and_cut(
    admin: Console, executor: FakeExecutor, log_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.console.runs.log_reader.WHOLE_MAX_MIB", 1)
    answer = admin.get(f"/joblog/{log_id}/log.txt", buffered=False)
    pieces = answer.iter_encoded()
    for fetched in range(1, 5):
        assert next(pieces) == b"\n" * 240_000
        assert len(executor.requests) == fetched, "the next piece is fetched when it is wanted"
    assert [piece.decode() for piece in pieces] == ["… [cut: the log is longer than 1 MiB]\n"]


def test_an_endless_log_is_cut_when_its_time_is_up(
    admin: Console, executor: FakeExecutor, log_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.console.runs.log_reader.WHOLE_MAX_S", 0)
    assert admin.get(f"/joblog/{log_id}/log.txt").text.endswith("\n… [cut: the log did not end within 0 s]\n")
    assert len(executor.requests) == 1


def test_a_failure_in_the_middle_is_the_last_line(
    admin: Console, executor: FakeExecutor, log_id: int
) -> None:
    executor.respond("log", ENDLESS, Answer.json(500, msg="disk gone"))
    assert admin.get(f"/joblog/{log_id}/log.txt").text.endswith("/: disk gone]\n")


def test_a_download_ends_with_its_client(admin: Console, executor: FakeExecutor, log_id: int) -> None:
    answer = admin.get(f"/joblog/{log_id}/log.txt", buffered=False)
    assert admin.get(f"/joblog/{log_id}/log.txt").status_code == 503, "one stream at a time"
    answer.close()
    with permits_of(admin).hold(stream=True):
        assert len(executor.requests) == 1
    admin.client.head(f"{CONTEXT}/joblog/{log_id}/log.txt")
    with permits_of(admin).hold(stream=True):
        assert len(executor.requests) == 2, "a HEAD holds nothing either"


def test_slow_executors_leave_threads_to_logins_and_executors(
    admin: Console, executor: FakeExecutor, log_id: int, settings: Config
) -> None:
    answered = threading.Event()
    executor.respond("log", ENDLESS.but(wait=answered))
    cookie = admin.client.get_cookie(COOKIE)
    assert cookie is not None
    headers = {"Cookie": f"{COOKIE}={cookie.value}"}

    def request(path: str, method: str = "GET", **more: str) -> tuple[int, str | None]:
        with closing(HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
            connection.request(method, CONTEXT + path, body="{}" if method == "POST" else None, headers=more)
            response = connection.getresponse()
            return response.status, response.headers["Retry-After"]

    with serving(admin.app, threads=THREADS) as port, ThreadPoolExecutor(8) as pool:
        slow = [pool.submit(request, f"/joblog/{log_id}/lines", **headers) for _ in range(2)]
        try:
            eventually(lambda: len(executor.requests) == 2)
            refused = [pool.submit(request, f"/joblog/{log_id}/log.txt", **headers) for _ in range(6)]
            assert [future.result() for future in refused] == [(503, str(RETRY_AFTER_S))] * 6
            assert request("/toLogin")[0] == 200
            token = {"XXL-JOB-ACCESS-TOKEN": access_tokens(settings)[0]}
            assert request("/api/registry", "POST", **token)[0] == 200
            with admin.app.app_context():
                connections = db.engine.pool.checkedout()  # type: ignore[attr-defined]
            assert connections == 0, "no connection is held meanwhile"
        finally:
            answered.set()
        assert [future.result()[0] for future in slow] == [200, 200]


def test_every_call_of_a_page_shares_the_budget(admin: Console, executor: FakeExecutor, log_id: int) -> None:
    form = {"csrf_token": token_of(admin)}
    with permits_of(admin).hold(), permits_of(admin).hold():
        pages = [
            admin.get(f"/joblog/{log_id}/log.txt"),
            admin.get(f"/joblog/{log_id}/lines"),
            admin.post(f"/joblog/{log_id}/kill", form),
            admin.post("/jobinfo/1/kill", form),
            admin.post("/jobgroup/1/test", form),
            admin.post("/jobgroup/1/test-alarm", form),
        ]
        scripts = [
            admin.post("/joblog/logDetailCat", {"logId": log_id, "fromLineNum": 1}),
            admin.post("/joblog/logKill", {"id": log_id}),
        ]
    for answer in pages:
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, str(RETRY_AFTER_S))
        assert "Too many calls to executors" in answer.text
    for answer in scripts:
        assert (answer.status_code, answer.headers["Retry-After"]) == (200, str(RETRY_AFTER_S))
        assert answer.get_json()["code"] == 500
    assert executor.requests == []


MESSAGE = Message("[Duetime] nightly report", "Log 7 failed")
#: Apprise loads all its plugins at the first message, some with old imports
old_imports = pytest.mark.filterwarnings("ignore::DeprecationWarning")
NEVER = "a link-local or metadata address, to which no alarm is sent"
SECRET = "the secret of the installation"


@old_imports
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_of_a_webhook_is_not_followed(hook: FakeExecutor, status: int) -> None:
    with FakeExecutor() as internal:
        hook.respond("*", Answer(status=status, headers=(("Location", f"{internal.address}admin?x=1"),)))
        result = send_apprise(hook.address.replace("http", "json"), MESSAGE)
        assert result == "the channel answered with a redirect, which is not followed"
        assert (len(hook.requests), internal.requests) == (1, [])


@old_imports
@pytest.mark.parametrize("prefix", ["?template=", "?x=1&Template=", "?x;%74emplate=", "?+x=1&template+="])
@pytest.mark.parametrize("channel", ["discord://1234567890/abcdefghij", "tgram://123456789:abcdefg_hij/12"])
def test_no_template_is_read(
    hook: FakeExecutor, tmp_path: Path, channel: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests.Session, "request", _unexpected)
    (tmp_path / "secret.json").write_text(SECRET, encoding="utf-8")
    for source in (f"{hook.address}secret.json", f"file://{tmp_path}/secret.json", f"{tmp_path}/secret.json"):
        url = f"{channel}{prefix}{source}"
        with pytest.raises(InvalidInput, match="its parameter template= is not allowed") as refused:
            check_urls("alarmUrls", url)
        assert (refused.value.field, "abcdef" in str(refused.value)) == ("alarmUrls", False)
        assert send_apprise(url, MESSAGE) == "its parameter template= is not allowed", "stored before"
    assert hook.requests == []


def _unexpected(*_args: object, **_options: object) -> None:
    pytest.fail("a request was sent")


@pytest.mark.parametrize("name", ["redirect", "attach", "attachment", "config"])
def test_no_parameter_opens_another_way(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"its parameter {name}= is not allowed"):
        check_urls("alarmUrls", f"json://hooks.example.com/?{name}=yes")


@old_imports
def test_a_list_of_channels_hides_none(hook: FakeExecutor) -> None:
    """Apprise itself splits at commas."""
    text = "json://hooks.example.com/?a=1,json://169.254.169.254/"
    assert split_urls(text) == ["json://hooks.example.com/?a=1", "json://169.254.169.254/"]
    with pytest.raises(InvalidInput, match=NEVER):
        check_urls("alarmUrls", text)
    assert send_apprise(f"json://,{hook.address.replace('http', 'json')}", MESSAGE) != OK
    assert hook.requests == []


@old_imports
@pytest.mark.parametrize(
    "host",
    [
        *("169.254.169.254", "169.254.169.254:8080", "user:word@169.254.169.254", "%31%36%39.254.169.254"),
        *("2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518", "169.254.169.254."),
        *("[fd00:ec2::254]", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]"),
        *("[fe80::1]", "100.100.100.200", "0.0.0.0", "metadata.google.internal", "Metadata.Google.Internal."),
    ],
)
def test_no_alarm_goes_to_a_metadata_service(host: str) -> None:
    url = f"json://{host}/latest/meta-data?method=GET"
    with pytest.raises(InvalidInput, match=NEVER):
        check_urls("alarmUrls", url)
    assert NEVER in send_apprise(url, MESSAGE), "stored before"


@pytest.fixture
def misled(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeExecutor]:
    """A server on loopback that stands for a metadata service: names resolve to it."""
    with FakeExecutor() as metadata:
        port = int(metadata.address.rstrip("/").rpartition(":")[2])
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_options: found)
        monkeypatch.setattr("app.domain.executors.networks.METADATA", frozenset({ip_address("127.0.0.1")}))
        yield metadata


@old_imports
def test_a_name_that_resolves_to_a_metadata_service_gets_no_byte(misled: FakeExecutor) -> None:
    result = send_apprise("json://hooks.example.com/", MESSAGE)
    assert result == f"127.0.0.1 is {NEVER}"
    config = MailConfig("mail.example.com", 25, sender="jobs@example.com", security="none")
    for security in ("none", "starttls"):
        assert "127.0.0.1" in send_mail(replace(config, security=security), "ops@example.com", MESSAGE)
    assert misled.requests == []


@old_imports
def test_proxies_of_the_environment_get_no_alarm(hook: FakeExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeExecutor() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.address)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        assert send_apprise(hook.address.replace("http", "json"), MESSAGE) == OK
        assert (len(hook.requests), proxy.requests) == (1, [])


@old_imports
def test_an_endless_answer_of_a_webhook_is_cut(hook: FakeExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.executors.webhook_http.REPLY_MAX", 1_000)
    hook.respond("*", Answer(b"x" * 2_000))
    assert send_apprise(hook.address.replace("http", "json"), MESSAGE) != OK
    hook.respond("*", Answer(b"x" * 2_000, 302, (("Location", "/elsewhere"),)))
    assert send_webhook(hook.address, MESSAGE) == "TooLong", "that of a redirect too"
