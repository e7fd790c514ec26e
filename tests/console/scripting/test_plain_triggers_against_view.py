"""Plain triggers against the view: odd requests get the answer and the rows that the view alone makes."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from flask import Flask
from sqlalchemy import delete, update
from sqlalchemy.exc import OperationalError

from app.console.scripting import plain_triggers
from app.console.scripting.plain_triggers import PlainTriggers
from app.console.web.current import COOKIE
from app.database.engine import session_scope
from app.models.audit import AuditEntry
from app.models.fire import Fire
from app.models.session import LoginSession
from app.models.user import User
from app.services.auditing import refusals
from app.services.jobs import jobs
from tests.support.console import CONTEXT, Console, add_group, add_job, add_user
from tests.support.factories import all_rows

PATH = "/jobinfo/trigger"
FORM = "application/x-www-form-urlencoded"
#: what differs from request to request
VARYING = re.compile(rb"\d{4}-\d\d-\d\dT[^\"]*|number [0-9a-f]{12}")
BODIES = [
    "id={job}",
    "",
    "id=+{job}",
    "id=%2B{job}",
    "id=000{job}",
    "id=" + 30 * "9",
    "id=-1",
    "id={job}.0",
    "id=%EF%BC%91",
    "id=%C2%A0{job}",
    "id={job}%0A",
    "id={job}\n",
    "ID={job}",
    "%69d={job}",
    "id[]={job}",
    "id={job}&id={job}",
    "id={job}&executorParam=a&executorParam=b",
    "id={job};executorParam=a",
    "&&id={job}&&",
    "a=1&" * 2_000,
    "id={job}&executorParam",
    "id={job}&executorParam=%ED%A0%80",
    "id={job}&executorParam=%ff%fe",
    "id={job}&executorParam=%zz%1",
    "id={job}&executorParam=%00",
    "id={job}&executorParam=%01%0a%0d%7f",
    "id={job}&executorParam=%E2%80%A8%E2%80%AE%EF%BF%BF",
    "id={job}&executorParam=%F0%9F%98%80",
    "id={job}&executorParam=ä",
    "id={job}&executorParam=a+b%2Bc",
    "id={job}&executorParam=" + 2_048 * "%C3%A4",
    "id={job}&executorParam=" + 2_049 * "x",
    "id={job}&executorParam=$%7Bvar.x%7D",
    "id={job}&addressList=+",
    "id={job}&addressList=x",
    "id={job}&csrf_token=x",
    "id=4711",
    "id={foreign}",
]
HOSTS = [
    "",
    "evil.example",
    "user@localhost",
    "localhost/x",
    "localhost?x",
    "localhost#x",
    "localhost:abc",
    "localhost:99999999",
    "localhost:99999",
    "localhost, evil.example",
    "lo\tcalhost",
    "local host",
    "localhos\u017f",
    "localhost.",
    "LOCALHOST:8080",
    "[::1]:80",
    "[::1",
]
HEADERS = [
    {"X-Forwarded-Host": "evil.example", "X-Forwarded-Prefix": "/x", "X-Forwarded-Proto": "https"},
    {"Content-Encoding": "gzip"},
    {"Accept": "text/html", "Accept-Encoding": "gzip", "Accept-Language": "zh-CN"},
    {"Upgrade": "websocket", "Connection": "upgrade"},
    {"X-HTTP-Method-Override": "GET"},
    {"X-Refresh": "auto"},
    {"HX-Request": "true"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "none"},
    {"Cookie": ""},
    {"Cookie": "{token}"},
    {"Cookie": '{cookie}="{token}"; Path=/'},
    {"Cookie": "{cookie}=" + 64 * "0" + "; {cookie}={token}"},
    {"Cookie": "; ".join("{cookie}=" + f"{number:064x}" for number in range(4)) + "; {cookie}={token}"},
    {"Cookie": "{cookie}={token}0"},
    {"Cookie": "\xff;=;;,"},
]
TYPES = [
    f"{FORM}; charset=utf-16",
    f"{FORM};",
    f"{FORM} ;x",
    f"{FORM}, text/plain",
    FORM.upper(),
    "application/json",
    "multipart/form-data",
    "",
]
PATHS = ["/", "//", ";x", "%00", "?", "?id=2", "#x"]
METHODS = ["GET", "HEAD", "PUT", "OPTIONS", "DELETE", "TRACE", "post"]
ENVIRONS = [
    {"CONTENT_LENGTH": length} for length in ("0", "5", "-1", "abc", " 5", "+5", "65536", "65537", "100000")
] + [
    {"wsgi.url_scheme": "https"},
    {"wsgi.url_scheme": "wss"},
    {"HTTP_TRANSFER_ENCODING": "chunked"},
]


class Outcome(NamedTuple):
    """Answer to a request, and the rows it left behind."""

    status: str
    headers: list[tuple[str, str]]
    body: bytes
    fires: list[dict[str, Any]]
    entries: list[dict[str, Any]]


class Both:
    """Client of bea, who may run one of two jobs; each request is sent to both."""

    def __init__(self, app: Flask, console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
        self._app, self._monkeypatch = app, monkeypatch
        self.job_id, self.foreign_id = add_job(group_id := add_group()), add_job(add_group("other-app"))
        self.user_id = add_user("bea", [group_id])
        cookie = console.log_in("bea").client.get_cookie(COOKIE)
        assert cookie is not None
        self._token = cookie.value

    def outcomes(self, body: str = "id={job}&executorParam=a", **options: Any) -> tuple[Outcome, Outcome]:
        """Send a request; return its outcome, and that of the view alone."""
        outcome = self._send(body, **options)
        with self._monkeypatch.context() as patch:
            patch.setattr(PlainTriggers, "_read", lambda *_arguments: None)
            return outcome, self._send(body, **options)

    def _send(
        self,
        body: str,
        *,
        method: str = "POST",
        path: str = "",
        headers: dict[str, str] | None = None,
        **more: Any,
    ) -> Outcome:
        with session_scope() as session:
            for model in (Fire, AuditEntry):
                session.execute(delete(model))
        self._monkeypatch.setattr(refusals, "recorder", refusals.Recorder())
        names = {"cookie": COOKIE, "token": self._token}
        sent = {"Cookie": "{cookie}={token}", **(headers or {})}
        answer = self._app.test_client(use_cookies=False).open(
            CONTEXT + PATH + path,
            method=method,
            data=body.format(job=self.job_id, foreign=self.foreign_id).encode(),
            headers={name: text.format(**names) for name, text in sent.items()},
            **{"content_type": FORM, **more},
        )
        return Outcome(
            answer.status,
            sorted(header for header in answer.headers if header[0] != "X-Request-Id"),
            VARYING.sub(b"", answer.data),
            [_members(fire, "id", "fire_key", "due_time", "logical_ms") for fire in all_rows(Fire)],
            [_members(entry, "id", "at_ms") for entry in all_rows(AuditEntry)],
        )


@pytest.fixture
def both(app: Flask, console: Console, monkeypatch: pytest.MonkeyPatch) -> Both:
    return Both(app, console, monkeypatch)


def _members(row: Any, *left_out: str) -> dict[str, Any]:
    names = [column.name for column in row.__table__.columns if column.name not in left_out]
    return {name: getattr(row, name) for name in names}


def requests() -> Iterator[dict[str, Any]]:
    yield from ({"body": body} for body in BODIES)
    yield from ({"headers": {"Host": host}} for host in HOSTS)
    yield from ({"headers": headers} for headers in HEADERS)
    yield from ({"content_type": content_type} for content_type in TYPES)
    yield from ({"path": path} for path in PATHS)
    yield from ({"method": method} for method in METHODS)
    yield from ({"environ_overrides": environ} for environ in ENVIRONS)


def test_odd_requests_get_the_answer_of_the_view(both: Both) -> None:
    different = []
    for request in requests():
        outcome, of_view = both.outcomes(**request)
        if outcome != of_view:
            different.append((str(request)[:100], outcome.status, of_view.status))
    assert different == []


@pytest.mark.parametrize(
    "statement",
    [
        update(LoginSession).values(expires_ms=1),
        update(LoginSession).values(last_seen_ms=1),
        update(LoginSession).values(remember=1, sign_on=1),
        update(User).values(disabled=1),
        update(User).values(weak_password=1),
        update(User).values(weak_password=2),
        update(User).values(password=""),
    ],
)
def test_other_logins_get_the_answer_of_the_view(both: Both, statement: Any) -> None:
    model = statement.entity_description["entity"]
    column = model.user_id if model is LoginSession else model.id
    with session_scope() as session:
        session.execute(statement.where(column == both.user_id))
    outcome, of_view = both.outcomes()
    assert outcome == of_view


@pytest.mark.parametrize(
    "error",
    [OperationalError("COMMIT", None, Exception("connection lost")), RuntimeError("closed"), TimeoutError()],
)
def test_a_failure_gets_the_answer_of_the_view(
    both: Both, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_arguments: object, **_more: object) -> None:
        raise error

    monkeypatch.setattr(plain_triggers, "trigger_jobs", fail)
    monkeypatch.setattr(jobs, "trigger_job", fail)
    outcome, of_view = both.outcomes()
    assert outcome == of_view
