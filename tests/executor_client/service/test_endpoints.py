"""Executor endpoints: requests of admins of every version and the replies they expect."""

import http.client
import json
import socket
import threading
from typing import Any

import pytest
import requests
from flask import Flask

from executor_client import Executor, HandlerRegistry, context
from executor_client.service.endpoints import Request
from tests.executor_client.stand_in_admin import TOKEN, StandInAdmin
from tests.support.eventually import eventually
from tests.support.executor_client import T0, Caller, MakeExecutor, run_fields

METHOD = "invalid request, HttpMethod not support."
BAD_TOKEN = "The access token is wrong."


@pytest.mark.parametrize(
    ("method", "path", "token", "body", "expected"),
    [
        ("GET", "/beat", TOKEN, None, METHOD),
        ("GET", "/nope", "", None, METHOD),
        ("PUT", "/run", TOKEN, b"{}", METHOD),
        ("DELETE", "/", TOKEN, None, METHOD),
        ("OPTIONS", "/run", TOKEN, None, METHOD),
        ("FETCH", "/run", TOKEN, None, METHOD),
        ("GET", "/known?logId=1", "", None, METHOD),
        ("GET", "/known", TOKEN, None, "request error:logId is required"),
        ("GET", "/known?logId=x", TOKEN, None, "request error:logId"),
        ("GET", "/known?logId=-7", TOKEN, None, "request error:logId is required"),
        ("GET", f"/known?logId={2**63}", TOKEN, None, "request error:logId is out of range"),
        ("GET", f"/known?logId={'9' * 5_000}", TOKEN, None, "request error:logId must be a whole number"),
        ("POST", "/known?logId=1", TOKEN, b"", "invalid request, uri-mapping(/known?logId=1) not found."),
        ("POST", "/nope", TOKEN, b"", "invalid request, uri-mapping(/nope) not found."),
        ("POST", "/nope", "wrong", b"", BAD_TOKEN),
        ("POST", "/run", "", b"{}", BAD_TOKEN),
        ("POST", "/beat", TOKEN + "x", b"", BAD_TOKEN),
        ("POST", "/beat", TOKEN.upper(), b"", BAD_TOKEN),
        ("POST", "/run?x=1", TOKEN, b"{}", "invalid request, uri-mapping(/run?x=1) not found."),
        ("POST", "/run/", TOKEN, b"{}", "invalid request, uri-mapping(/run/) not found."),
        ("POST", "/app/run", TOKEN, b"{}", "invalid request, uri-mapping(/app/run) not found."),
        ("POST", "/", TOKEN, b"", "invalid request, uri-mapping(/) not found."),
        ("POST", "/run", TOKEN, b"{", "request error:"),
        ("POST", "/run", TOKEN, b"", "request error:"),
        ("POST", "/run", TOKEN, b"[]", "request error:"),
        ("POST", "/run", TOKEN, b'{"jobId":"x"}', "request error:"),
        ("POST", "/kill", TOKEN, b"", "request error:"),
        ("POST", "/log", TOKEN, b"5", "request error:"),
        (
            "POST",
            "/kill",
            TOKEN,
            b'{"jobId":' + b"9" * 5_000 + b"}",
            "request error:a number has too many digits",
        ),
        (
            "POST",
            "/run",
            TOKEN,
            b'{"jobId":1,"glueType":"BEAN","executorHandler":"ok"}',
            "logId and logDateTime are required",
        ),
    ],
)
def test_a_bad_request_gets_xxl_jobs_reply(
    caller: Caller, method: str, path: str, token: str, body: bytes | None, expected: str
) -> None:
    connection = http.client.HTTPConnection(caller.base.removeprefix("http://"), timeout=10)
    connection.request(method, path, body, {"xxl-job-access-token": token})
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    assert response.status == 200
    assert answer["code"] == 500
    assert answer["msg"].startswith(expected)


def test_the_state_of_a_run_can_be_queried(
    caller: Caller, handlers: HandlerRegistry, admin: StandInAdmin
) -> None:
    release = threading.Event()

    def wait_and_fail() -> None:
        release.wait(30)
        context.result(411)

    handlers.job("wait")(wait_and_fail)

    def known(log_id: int) -> Any:
        reply = caller.session.get(
            f"{caller.base}/known?logId={log_id}", headers={"XXL-JOB-ACCESS-TOKEN": TOKEN}, timeout=10
        ).json()
        return reply["code"], reply["content"]

    caller.accepted(1, executorHandler="wait")
    caller.accepted(2, executorHandler="wait")
    eventually(lambda: known(1) == (200, "running"))
    assert (known(2), known(3)) == ((200, "queued"), (200, "never"))
    release.set()
    eventually(lambda: admin.codes() == {1: 411, 2: 411})
    assert (known(1), known(2)) == ((200, "done(411)"), (200, "done(411)"))


@pytest.mark.parametrize("body", [b'""', b"{}", b"", None])
def test_beat_accepts_any_body(caller: Caller, body: bytes | None) -> None:
    assert (
        caller.session.post(
            caller.base + "/beat", data=body, headers={"XXL-JOB-ACCESS-TOKEN": TOKEN}, timeout=10
        ).json()["code"]
        == 200
    )


def test_beat_accepts_a_request_without_content_length(caller: Caller) -> None:
    host, port = caller.base.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(
            f"POST /beat HTTP/1.1\r\nHost: x\r\nXXL-JOB-ACCESS-TOKEN: {TOKEN}\r\n"
            "Connection: close\r\n\r\n".encode()
        )
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert json.loads(body) == {"code": 200, "msg": None, "content": None, "data": None}


def test_every_response_has_the_capabilities_header(caller: Caller) -> None:
    response = requests.post(caller.base + "/beat", headers={"XXL-JOB-ACCESS-TOKEN": TOKEN}, timeout=10)
    assert response.headers["X-Exec-Capabilities"].startswith("durable-dedup,boot=")
    assert response.headers["Content-Type"] == "application/json;charset=UTF-8"


def test_an_oversized_request_is_rejected_unread(caller: Caller) -> None:
    response = requests.post(
        caller.base + "/run",
        data=b"x" * (5 * 1024 * 1024 + 1),
        headers={"XXL-JOB-ACCESS-TOKEN": TOKEN},
        timeout=10,
    )
    assert response.status_code == 413


def without_nulls(fields: dict[str, Any]) -> dict[str, Any]:
    """Omit nulls, as Gson does."""
    return {name: value for name, value in fields.items() if value not in ("", None)}


@pytest.mark.parametrize("path", ["/run", "/trigger"])
@pytest.mark.parametrize(
    "strip", [dict, without_nulls, lambda fields: {**fields, "executorParams": None, "somethingNew": [1]}]
)
def test_a_trigger_of_any_version_is_accepted(
    caller: Caller, admin: StandInAdmin, path: str, strip: Any
) -> None:
    assert caller.post(path, strip(run_fields(5)))["code"] == 200
    eventually(lambda: admin.codes() == {5: 200})


def test_log_accepts_both_spellings_and_fills_both_fields(
    caller: Caller, handlers: HandlerRegistry, admin: StandInAdmin
) -> None:
    handlers.job("talk")(lambda: context.log("hello %s", context.param))
    caller.accepted(7, executorHandler="talk", executorParams="you")
    eventually(lambda: admin.codes() == {7: 200})
    for spelling in ("logDateTim", "logDateTime"):
        reply = caller.post("/log", {"logId": 7, spelling: T0, "fromLineNum": 1})
        assert reply["content"] == reply["data"]
        assert reply["content"]["isEnd"] is False
        assert "hello you\n" in reply["content"]["logContent"]


@pytest.mark.parametrize(
    ("log_id", "time_ms", "text"),
    [
        (404, T0, "readLog fail, logFile not exists"),
        (-1, T0, "readLog fail, logFile not found"),
        (5, 10**18, "readLog fail, logFile not found"),
    ],
)
def test_a_missing_log_is_reported(caller: Caller, log_id: int, time_ms: int, text: str) -> None:
    reply = caller.post("/log", {"logId": log_id, "logDateTim": time_ms, "fromLineNum": 1})
    assert reply["code"] == 200
    assert reply["content"] == {"fromLineNum": 1, "toLineNum": 0, "logContent": text, "isEnd": True}


def test_a_second_token_is_accepted_during_a_token_change(start: MakeExecutor) -> None:
    caller = start(access_tokens=(TOKEN, "the-next-token-012345"))
    caller.token = "the-next-token-012345"
    assert caller.post("/beat")["code"] == 200


def test_without_a_token_only_loopback_is_allowed(start: MakeExecutor) -> None:
    caller = start(access_tokens=())
    caller.token = ""
    assert caller.post("/beat")["code"] == 200


@pytest.mark.parametrize("path", ["/run", "/kill"])
@pytest.mark.parametrize("sent", [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}])
def test_without_a_token_no_page_of_a_browser_on_this_host_is_answered(
    start: MakeExecutor, path: str, sent: dict[str, str]
) -> None:
    caller = start(access_tokens=())
    body = json.dumps({**run_fields(1), "executorHandler": "ok"})
    headers = {"Content-Type": "text/plain", **sent}
    reply = requests.post(f"{caller.base}{path}", body, headers=headers, timeout=10).json()
    assert (reply["code"], reply["msg"]) == (500, BAD_TOKEN)


def test_metrics_are_served_if_enabled(start: MakeExecutor, admin: StandInAdmin) -> None:
    caller = start(metrics=True)
    caller.accepted(1)
    eventually(lambda: admin.codes() == {1: 200})
    text = requests.get(caller.base + "/metrics", timeout=10).text
    assert "xxl_job_executor_runs_accepted_total 1\n" in text
    assert "xxl_job_executor_runs_running 0\n" in text


def test_without_metrics_the_path_is_unknown(caller: Caller) -> None:
    assert requests.get(caller.base + "/metrics", timeout=10).json()["msg"] == METHOD


def test_a_blueprint_serves_its_own_paths_only(
    config: Any, handlers: HandlerRegistry, executors: list[Executor]
) -> None:
    executor = Executor(config(port=5000), handlers)
    app = Flask(__name__)
    app.register_blueprint(executor.blueprint())
    app.add_url_rule("/mine", view_func=lambda: "mine")
    client = app.test_client()
    headers = {"XXL-JOB-ACCESS-TOKEN": TOKEN}
    assert client.post("/beat", headers=headers).get_json() == {
        "code": 500,
        "msg": "the executor is not started",
        "content": None,
        "data": None,
    }
    executor.start()
    executors.append(executor)
    assert executor.address == "http://127.0.0.1:5000/"
    assert client.post("/beat", headers=headers).get_json()["code"] == 200
    assert client.get("/beat").get_json()["msg"] == METHOD
    assert client.post("/run", headers=headers, json=run_fields(3)).get_json()["code"] == 200
    assert client.get("/mine").text == "mine"
    assert client.post("/nope", headers=headers).status_code == 404


def test_a_blueprint_can_have_a_prefix(
    config: Any, handlers: HandlerRegistry, executors: list[Executor]
) -> None:
    executor = Executor(config(address="http://127.0.0.1:5000/jobs"), handlers)
    app = Flask(__name__)
    app.register_blueprint(executor.blueprint(), url_prefix="/jobs")
    executor.start()
    executors.append(executor)
    assert executor.address == "http://127.0.0.1:5000/jobs/"
    assert (
        app.test_client().post("/jobs/beat", headers={"XXL-JOB-ACCESS-TOKEN": TOKEN}).get_json()["code"]
        == 200
    )


def test_a_blueprint_without_token_rejects_other_hosts(
    config: Any, handlers: HandlerRegistry, executors: list[Executor]
) -> None:
    executor = Executor(config(access_tokens=()), handlers)
    app = Flask(__name__)
    app.register_blueprint(executor.blueprint())
    executor.start()
    executors.append(executor)
    reply = app.test_client().post("/beat", environ_overrides={"REMOTE_ADDR": "10.1.2.3"}).get_json()
    assert reply["msg"] == BAD_TOKEN
    proxied = app.test_client().post("/beat", headers={"X-Forwarded-For": "127.0.0.1"})
    assert proxied.get_json()["msg"] == BAD_TOKEN
    browser = app.test_client().post("/beat", headers={"Origin": "https://evil.example"})
    assert browser.get_json()["msg"] == BAD_TOKEN


@pytest.mark.parametrize("name", ["Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "Via"])
def test_an_own_port_without_token_rejects_what_a_proxy_forwards(start: MakeExecutor, name: str) -> None:
    caller = start(access_tokens=())
    caller.token = ""
    assert caller.post("/beat")["code"] == 200
    assert caller.post("/beat", headers={name: "203.0.113.9"})["msg"] == BAD_TOKEN
    forwarded = caller.post("/run", run_fields(1), headers={name: "203.0.113.9"})
    assert forwarded["msg"] == BAD_TOKEN


def run_request(log_id: int, *, token: str = TOKEN, **changes: Any) -> Request:
    body = json.dumps(run_fields(log_id, **changes)).encode()
    return Request("POST", "/run", token, "127.0.0.1", body)


def test_what_cannot_be_accepted_together_is_left_to_a_single_reply(
    caller: Caller, executors: list[Executor], admin: StandInAdmin
) -> None:
    endpoints = executors[0]._service.endpoints
    assert endpoints is not None
    sent = [
        run_request(1, jobId=1),
        run_request(2, jobId=1),
        run_request(3, jobId=2, executorHandler="unknown"),
        run_request(4, jobId=3, token="wrong"),
        run_request(0, jobId=4),
        Request("POST", "/run", TOKEN, "127.0.0.1", b"{"),
        run_request(5, jobId=5),
    ]
    replies = endpoints.run_together(sent)
    assert [reply and reply.code for reply in replies] == [200, None, None, None, None, None, 200]
    eventually(lambda: admin.codes() == {1: 200, 5: 200})
    assert [endpoints.handle(sent[at]).code for at in (1, 2, 3, 4, 5)] == [200, 500, 500, 500, 500]
    assert [reply and reply.msg for reply in endpoints.run_together(sent[:1])] == [
        "duplicate: logId 1 was accepted before"
    ]


def test_a_stopping_executor_accepts_nothing_together(caller: Caller, executors: list[Executor]) -> None:
    endpoints = executors[0]._service.endpoints
    assert endpoints is not None
    executors[0].stop()
    assert endpoints.run_together([run_request(1)]) == [None]


def test_runs_sent_by_many_at_once_are_each_accepted_and_run_once(
    caller: Caller, handlers: HandlerRegistry, admin: StandInAdmin
) -> None:
    started: list[int] = []
    handlers.job("note")(lambda: started.append(context.log_id))

    def send(first: int) -> None:
        own = Caller(caller.base)
        for log_id in range(first, first + 10):
            own.accepted(log_id, executorHandler="note", jobId=log_id % 3 + 1)
        own.session.close()

    threads = [threading.Thread(target=send, args=(first,)) for first in range(1, 81, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    eventually(lambda: len(admin.codes()) == 80)
    assert sorted(started) == list(range(1, 81))
