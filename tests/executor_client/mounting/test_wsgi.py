"""Executor mounted on an application: WSGI, ASGI, forks, and what workers pass on."""

import asyncio
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import Client

from executor_client import Executor, ExecutorConfig, HandlerRegistry, StartRefused
from executor_client.mounting.asgi import AsgiMount, Message
from executor_client.mounting.handover import HandoverServer, ask
from executor_client.mounting.wsgi import WsgiMount
from executor_client.service.answers import Answer, Service
from executor_client.service.endpoints import BODY_MAX_BYTES, Request
from executor_client.wire.protocol import SUCCESS, Reply
from tests.executor_client.process import ROOT
from tests.executor_client.stand_in_admin import TOKEN, StandInAdmin
from tests.support.eventually import eventually
from tests.support.truth_table import truth_table

HEADERS = {"XXL-JOB-ACCESS-TOKEN": TOKEN}
MakeConfig = Callable[..., ExecutorConfig]


def site(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"the site"]


@pytest.mark.parametrize(
    ("path", "is_ours"),
    [
        ("/jobs/beat", True),
        ("/jobs/beat/", False),
        ("/jobs/beats", False),
        ("/jobs", False),
        ("/jobs//beat", False),
        ("/beat", False),
        ("/jobsx/beat", False),
        ("/jobs/metrics", False),
    ],
)
def test_only_the_executors_paths_are_taken(
    config: MakeConfig, handlers: HandlerRegistry, path: str, is_ours: bool
) -> None:
    application = Executor(config(), handlers).wsgi_app(site, prefix="jobs/")
    answer = Client(application).post(path, headers=HEADERS)
    assert (answer.text != "the site") is is_ours


@pytest.mark.parametrize(
    ("is_mounted", "settings", "is_replaced"),
    [
        (False, {}, (True, True, True)),
        (True, {}, (False, False, False)),
        (True, {"capture_output": True}, (True, True, True)),
        (True, {"route_logging": True}, (True, True, False)),
        (False, {"capture_output": False, "route_logging": False}, (False, False, False)),
    ],
)
def test_an_application_keeps_its_threads_logging_and_streams(
    config: MakeConfig,
    handlers: HandlerRegistry,
    executors: list[Executor],
    is_mounted: bool,
    settings: dict[str, bool],
    is_replaced: tuple[bool, bool, bool],
) -> None:
    def patchable() -> tuple[Any, Any, Any]:
        return threading.Thread.start, logging.Logger.callHandlers, sys.stdout

    before = patchable()
    executor = Executor(config(**{"route_logging": None, **settings}), handlers)
    if is_mounted:
        executor.wsgi_app(site)
    executors.append(executor)
    executor.start()
    assert tuple(new is not old for new, old in zip(patchable(), before, strict=True)) == is_replaced
    executor.stop()
    assert patchable() == before


def test_the_registered_address_has_the_prefix(
    config: MakeConfig, handlers: HandlerRegistry, executors: list[Executor], admin: StandInAdmin
) -> None:
    executor = Executor(config(port=5000), handlers)
    client = Client(executor.wsgi_app(site, prefix="/jobs"))
    executors.append(executor)
    executor.start()
    assert executor.address == "http://127.0.0.1:5000/jobs/"
    assert client.post("/jobs/beat", headers=HEADERS).get_json()["code"] == 200
    too_long = client.post("/jobs/run", headers=HEADERS, data=b"x" * (BODY_MAX_BYTES + 1))
    assert too_long.status_code == 413


@pytest.mark.parametrize(
    "mount", [lambda executor: executor.wsgi_app(site), lambda executor: executor.blueprint()]
)
def test_a_mounted_executor_needs_the_address_of_its_application(
    config: MakeConfig, handlers: HandlerRegistry, admin: StandInAdmin, mount: Callable[[Executor], Any]
) -> None:
    executor = Executor(config(port=None), handlers)
    mount(executor)
    with pytest.raises(StartRefused, match="set XXL_JOB_EXECUTOR_ADDRESS"):
        executor.start()
    executor.stop()
    assert admin.bodies("registry") == []


@pytest.mark.parametrize("mount", ["wsgi_app", "asgi_app"])
def test_a_mounted_executor_needs_a_token(config: MakeConfig, handlers: HandlerRegistry, mount: str) -> None:
    with pytest.raises(StartRefused, match="no access token is set, and through a proxy"):
        getattr(Executor(config(access_tokens=()), handlers), mount)(site)


def test_a_second_executor_stands_by_and_takes_over(
    config: MakeConfig, handlers: HandlerRegistry, executors: list[Executor], admin: StandInAdmin
) -> None:
    """Both in this process: a lock belongs to an open file, not to a process."""
    clients = []
    for _ in range(2):
        executor = Executor(config(metrics=True), handlers)
        clients.append(Client(executor.wsgi_app(site)))
        executor.start()
        executors.append(executor)
    answers = [client.post("/beat", headers=HEADERS) for client in clients]
    assert [answer.get_json()["code"] for answer in answers] == [200, 200]
    assert len({answer.headers["X-Exec-Capabilities"] for answer in answers}) == 1
    assert "xxl_job_executor_" in clients[1].get("/metrics").text
    before = answers[0].headers["X-Exec-Capabilities"]
    executors[0].stop()
    assert admin.bodies("registryRemove") == []
    answer = clients[1].post("/beat", headers=HEADERS)
    assert answer.get_json()["code"] == 200
    assert answer.headers["X-Exec-Capabilities"] != before
    executors[1].stop()
    assert len(admin.bodies("registryRemove")) == 1


def test_a_process_of_a_reloader_is_warned_that_it_stands_by(
    config: MakeConfig,
    handlers: HandlerRegistry,
    executors: list[Executor],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for is_reloaded in (False, True):
        assert "reloader" not in caplog.text
        if is_reloaded:
            monkeypatch.setenv("WERKZEUG_RUN_MAIN", "true")
        executor = Executor(config(), handlers)
        executor.wsgi_app(site)
        executor.start()
        executors.append(executor)
    assert "start the executor only if WERKZEUG_RUN_MAIN is set" in caplog.text


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_process_passes_requests_on(
    config: MakeConfig, handlers: HandlerRegistry, executors: list[Executor], admin: StandInAdmin
) -> None:
    executor = Executor(config(), handlers)
    client = Client(executor.wsgi_app(site))
    executor.start()
    executors.append(executor)
    here = client.post("/beat", headers=HEADERS).headers["X-Exec-Capabilities"]
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # ends without pytest's clean-up
        answer = client.post("/beat", headers=HEADERS)
        executor.stop()
        os.write(writer, json.dumps([answer.status_code, dict(answer.headers)]).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        status, headers = json.loads(stream.read())
    os.waitpid(child, 0)
    assert (status, headers["X-Exec-Capabilities"]) == (200, here)
    assert client.post("/beat", headers=HEADERS).get_json()["code"] == 200
    assert admin.bodies("registryRemove") == []


IMPORTS_OF_THREADS = """
import sys, threading

class Finder:
    def find_spec(self, name, *_):
        if threading.current_thread() is not threading.main_thread():
            print("imported by", threading.current_thread().name, name)

sys.meta_path.insert(0, Finder())
from executor_client import Executor
executor = Executor.from_env()
executor.wsgi_app(None)
executor.start()
sys.stdin.read()
executor.stop()
print("stopped")
"""


def test_threads_import_nothing(tmp_path: Path, admin: StandInAdmin) -> None:
    # a process forked during an import of another thread finds the module locked for ever
    with subprocess.Popen(
        [sys.executable, "-c", IMPORTS_OF_THREADS],
        env={
            "PYTHONPATH": str(ROOT),
            "XXL_JOB_ADMIN_ADDRESSES": admin.url,
            "XXL_JOB_EXECUTOR_APPNAME": "test",
            "XXL_JOB_EXECUTOR_ADDRESS": "http://127.0.0.1:9/",
            "XXL_JOB_ACCESS_TOKEN": TOKEN,
            "XXL_JOB_HOME": str(tmp_path),
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        eventually(lambda: admin.bodies("registry"))
        output, _ = process.communicate(timeout=30)
    assert output == "stopped\n"


def test_a_socket_is_not_in_a_folder_with_a_long_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    service = Service()
    server = HandoverServer(tmp_path / "holder", lambda request: service.reply(Reply(SUCCESS)))
    server.start()
    folder = Path((tmp_path / "holder").read_text()).parent
    assert folder.stat().st_mode & 0o777 == 0o700
    request = Request("POST", "/beat", TOKEN, "10.1.2.3", b"{}")
    assert json.loads(ask(tmp_path / "holder", request).body)["code"] == 200
    server.stop()
    assert not folder.exists()
    with pytest.raises(OSError):
        ask(tmp_path / "holder", request)


@dataclass
class Recorded:
    """Service and executor of an ASGI mount, and the messages it sends."""

    events: list[str] = field(default_factory=list)
    sent: list[Message] = field(default_factory=list)
    refusal: str = ""

    def start(self) -> None:
        if self.refusal:
            raise StartRefused(self.refusal)
        self.events.append("start")

    def stop(self) -> None:
        self.events.append("stop")

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    def run(
        self, application: Callable[..., Awaitable[None]], scope: dict[str, Any], *messages: Message
    ) -> None:
        async def call() -> None:
            incoming = iter(messages)

            async def receive() -> Message:
                return next(incoming)

            mount = AsgiMount(Echo(), self, application, "/jobs")
            await mount(scope, receive, self.send)

        asyncio.run(call())


class Echo(Service):
    """Service whose answer is the request."""

    def answer(self, request: Request) -> Answer:
        text = f"{request.method} {request.target} {request.token} {request.peer} {request.body.decode()}"
        return Answer(200, (("X", "y"),), text.encode())


async def other(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "other", "path": scope.get("path")})


def http(path: str, **more: Any) -> dict[str, Any]:
    headers = [(b"xxl-job-access-token", b"token")]
    base = {"type": "http", "method": "POST", "path": path, "headers": headers, "client": ("10.1.2.3", 5)}
    return {**base, "query_string": b"", **more}


@truth_table(
    "scope, expected",
    [
        (http("/jobs/run"), b"POST /run token 10.1.2.3 {}"),
        (http("/jobs/known", query_string=b"logId=7"), b"POST /known?logId=7 token 10.1.2.3 {}"),
        (http("/mnt/jobs/run", root_path="/mnt"), b"POST /run token 10.1.2.3 {}"),
        (http("/jobs/run", client=None), b"POST /run token  {}"),
        (http("/run"), None),
        ({**http("/jobs/run"), "type": "websocket"}, None),
    ],
)
def test_requests_of_asgi(scope: dict[str, Any], expected: bytes | None) -> None:
    recorded = Recorded()
    chunks = [{"type": "http.request", "body": part, "more_body": part == b"{"} for part in (b"{", b"}")]
    recorded.run(other, scope, *chunks)
    if expected is None:
        assert recorded.sent == [{"type": "other", "path": scope["path"]}]
    else:
        assert recorded.sent[0]["status"] == 200
        assert recorded.sent[1]["body"] == expected


def test_a_large_body_of_asgi_is_refused() -> None:
    recorded = Recorded()
    part = {"type": "http.request", "body": b"x" * (BODY_MAX_BYTES // 2 + 1), "more_body": True}
    recorded.run(other, http("/jobs/run"), part, part)
    assert recorded.sent[0]["status"] == 413


STARTUP, SHUTDOWN = {"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}


async def living(scope: Any, receive: Any, send: Any) -> None:
    for _ in range(2):
        await send({"type": (await receive())["type"] + ".complete"})


async def refusing(scope: Any, receive: Any, send: Any) -> None:
    raise ValueError("no lifespan, as Django says")


@truth_table("application", [living, refusing])
def test_the_executor_lives_with_the_server(application: Callable[..., Awaitable[None]]) -> None:
    recorded = Recorded()
    recorded.run(application, {"type": "lifespan"}, STARTUP, SHUTDOWN)
    assert recorded.events[:2] == ["start", "stop"]
    assert [message["type"] for message in recorded.sent] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]


def test_a_refused_start_ends_the_server_with_one_line() -> None:
    recorded = Recorded(refusal="no app name")
    recorded.run(living, {"type": "lifespan"}, STARTUP)
    assert recorded.sent == [{"type": "lifespan.startup.failed", "message": "executor_client: no app name"}]


def test_an_own_port_answers_every_path_as_xxl_job_does() -> None:
    answer = Client(WsgiMount(Service(), None)).get("/nope")
    assert (answer.status_code, answer.get_json()["msg"]) == (200, "the executor is not started")
