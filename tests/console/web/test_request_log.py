"""Requests: their ids in answers, logs and runs, and the access log."""

import logging
import re
from typing import Any

import pytest

from app.console.web.request_log import RequestLog
from app.domain.runs.request_ids import is_request_id, request_of
from app.models.fire import Fire
from app.models.log import JobLog
from app.runtime.logging import fields_of
from app.settings.config import Config
from tests.console.pages import submit
from tests.pipeline.steps import claim_fires
from tests.support.console import Console, add_group, add_job
from tests.support.factories import only_row

GIVEN = "0af7651916cd43dd8448eb211c80319c"


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        (GIVEN, True),
        ("3f2b8d0e-5c1a-4e6b-9d7f-0123456789ab", True),
        ("short-1", False),
        ("x" * 51, False),
        ("-leading-hyphen", False),
        ("with space 1", False),
        ("line\nbreak-1", False),
        ("a:b:c:d:e:f", False),
        ("", False),
    ],
)
def test_ids_of_requests(text: str, valid: bool) -> None:
    assert is_request_id(text) is valid


@pytest.mark.parametrize(
    ("key", "request_id"),
    [
        (f"manual:1700000000000-{GIVEN}@{GIVEN}", GIVEN),
        (f"manual:1700000000000-{GIVEN}@{GIVEN}:12", GIVEN),
        (f"manual:1700000000000-{GIVEN}", ""),
        ("cron:7:1700000000000", ""),
        ("child:7:1@2", ""),
    ],
)
def test_the_request_in_the_key_of_a_fire(key: str, request_id: str) -> None:
    assert request_of(key) == request_id


def call(
    config: Config, environ: dict[str, Any], *, caplog: pytest.LogCaptureFixture
) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Send a request through the middleware; return the headers and the lines of the access log."""

    def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        environ["PATH_INFO"] = "/changed"
        environ["xxl_job.user"] = 'ann"'
        start_response("404 Not Found", [("Content-Type", "text/plain")])
        return [b"12345", b"67"]

    headers: dict[str, str] = {}
    with caplog.at_level(logging.INFO, logger="access"):
        answer = RequestLog(application, config)(
            {"REQUEST_METHOD": "GET", "PATH_INFO": "/a b\n\xe4", "QUERY_STRING": "token=secret"} | environ,
            lambda _status, given: headers.update(given),
        )
        assert b"".join(answer) == b"1234567"
        getattr(answer, "close", lambda: None)()
    return headers, [fields_of(record) for record in caplog.records if record.name == "access"]


def test_each_request_has_a_line_without_its_query(caplog: pytest.LogCaptureFixture) -> None:
    headers, lines = call(Config(access_log=True), {"REMOTE_ADDR": "10.0.0.9"}, caplog=caplog)
    assert len(lines) == 1
    assert lines[0].pop("ms") < 5_000
    assert lines[0] == {
        "method": "GET",
        "path": "/a%20b%0A%E4",
        "status": 404,
        "bytes": 7,
        "user": 'ann"',
        "address": "10.0.0.9",
    }
    assert "secret" not in caplog.text
    assert re.fullmatch("[0-9a-f]{32}", headers["X-Request-Id"])


def test_an_answer_that_no_one_reads_is_closed_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    closed = []

    class Answer(list[bytes]):
        def close(self) -> None:
            closed.append(True)

    def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        return Answer([b"not sent"])

    with caplog.at_level(logging.INFO, logger="access"):
        answer = RequestLog(application, Config(access_log=True))(
            {"REQUEST_METHOD": "GET"}, lambda *_given: None
        )
        answer.close()  # type: ignore[attr-defined]
    assert closed
    assert [fields_of(record)["bytes"] for record in caplog.records] == [0]


@pytest.mark.parametrize(
    ("proxies", "given", "accepted"), [(1, GIVEN, True), (0, GIVEN, False), (1, "a b c d e f", False)]
)
def test_only_a_proxy_names_the_id(
    proxies: int, given: str, accepted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    headers, lines = call(Config(proxy_count=proxies), {"HTTP_X_REQUEST_ID": given}, caplog=caplog)
    assert (headers["X-Request-Id"] == given) is accepted
    assert lines == []


def test_a_run_carries_the_id_of_the_request_that_triggered_it(admin: Console) -> None:
    answer = submit(admin, f"/jobinfo/{add_job(add_group())}/run", executor_param="")
    request_id = answer.headers["X-Request-Id"]
    fire = only_row(Fire)
    assert request_of(fire.fire_key) == request_id
    claim_fires([fire], now_ms=fire.due_time)
    trace = only_row(JobLog).trigger_msg
    page = admin.get(f"/joblog/{only_row(JobLog).id}").text
    assert f"Request: {request_id}" in (trace or "")
    assert request_id in page
