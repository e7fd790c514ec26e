"""Heartbeat: registration, deregistration, address, and failures that do not stop the executor."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from executor_client import Executor, ExecutorConfig, StartRefused
from executor_client.service.engine import registered_address
from executor_client.wire.version import VERSION
from tests.executor_client.stand_in_admin import TOKEN, Answer, StandInAdmin
from tests.support.eventually import eventually
from tests.support.executor_client import Caller, MakeExecutor


@pytest.fixture
def others() -> Iterator[list[StandInAdmin]]:
    """Further admins."""
    admins = [StandInAdmin() for _ in range(2)]
    yield admins
    for each in admins:
        each.down()


def test_an_executor_registers_periodically_and_deregisters(
    start: MakeExecutor, executors: list[Executor], admin: StandInAdmin
) -> None:
    caller = start()
    eventually(lambda: len(admin.bodies("registry")) >= 3)
    expected = {"registryGroup": "EXECUTOR", "registryKey": "test", "registryValue": caller.base + "/"}
    assert all(body == expected for body in admin.bodies("registry"))
    headers = {name.lower(): value for name, value in admin.headers("registry").items()}
    assert headers["xxl-job-access-token"] == TOKEN
    assert headers["xxl-job-appname"] == "test"
    assert headers["content-type"] == "application/json;charset=UTF-8"
    assert headers["x-exec-capabilities"].startswith("durable-dedup,boot=")
    words = {"run-state", "last-lines", "logical-time", f"version={VERSION}"}
    assert words <= set(headers["x-exec-capabilities"].split(","))
    assert headers["x-exec-handlers"] == "ok"
    assert "transfer-encoding" not in headers
    executors.pop().stop()
    assert admin.bodies("registryRemove") == [expected]
    assert admin.requests[-1][0].endswith("/registryRemove"), "it is registered again"


def test_headers_are_spelt_as_in_xxl_job(caller: Caller, admin: StandInAdmin) -> None:
    eventually(lambda: admin.bodies("registry"))
    assert {"XXL-JOB-ACCESS-TOKEN", "XXL-JOB-APPNAME", "Content-Length"} <= set(admin.headers("registry"))


def test_without_a_token_the_header_is_empty(start: MakeExecutor, admin: StandInAdmin) -> None:
    admin.token = ""
    start(access_tokens=())
    eventually(lambda: admin.bodies("registry"))
    assert admin.headers("registry")["XXL-JOB-ACCESS-TOKEN"] == ""


def test_user_and_password_of_an_admin_address_are_not_logged(
    start: MakeExecutor, executors: list[Executor], admin: StandInAdmin, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    with_user = admin.url.replace("//", "//ann:secret-7@")
    admin.refuse = lambda action, body: {"code": 500, "msg": "wait"}
    start(admin_addresses=(with_user, "http://ann:secret-7@127.0.0.1:1/x"))
    eventually(lambda: caplog.text.count("registration failed") >= 2)
    admin.refuse = lambda action, body: {}
    eventually(lambda: f"registered admin={admin.url} " in caplog.text)
    assert "executor started" in caplog.text
    executors.pop().stop()
    assert "secret-7" not in caplog.text


@pytest.mark.parametrize("refusal", [{"code": 500, "msg": "address not allowed"}, None])
def test_a_rejected_registration_does_not_stop_the_executor(
    start: MakeExecutor, admin: StandInAdmin, refusal: Any
) -> None:
    admin.refuse = lambda action, body: refusal
    caller = start()
    eventually(lambda: len(admin.bodies("registry")) >= 2)
    assert caller.post("/beat")["code"] == 200
    admin.refuse = lambda action, body: {}
    caller.accepted(1)
    eventually(lambda: admin.codes() == {1: 200})


def test_a_missing_group_is_one_warning_with_the_link(
    start: MakeExecutor, admin: StandInAdmin, caplog: pytest.LogCaptureFixture
) -> None:
    admin.console = lambda action: "run-state,no-group"
    start(appname="my app")
    eventually(lambda: len(admin.bodies("registry")) >= 3)
    link = f"{admin.url}/connect?appname=my%20app"
    warnings = [record.getMessage() for record in caplog.records if "no executor group" in record.message]
    assert [text.endswith(link) for text in warnings] == [True]


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ((), "reason=no access token given: set XXL_JOB_ACCESS_TOKEN"),
        (("x" * 20,), "reason=the access token is wrong: "),
    ],
)
def test_a_missing_token_and_a_wrong_one_are_distinguished(
    start: MakeExecutor,
    admin: StandInAdmin,
    caplog: pytest.LogCaptureFixture,
    tokens: tuple[str, ...],
    expected: str,
) -> None:
    start(access_tokens=tokens)
    eventually(lambda: expected in caplog.text)


@pytest.mark.parametrize(
    ("away", "expected"), [(False, "deregistered admin="), (True, "deregistration failed admin=")]
)
def test_a_failed_deregistration_is_logged(
    start: MakeExecutor,
    executors: list[Executor],
    admin: StandInAdmin,
    caplog: pytest.LogCaptureFixture,
    away: bool,
    expected: str,
) -> None:
    caplog.set_level("INFO", "executor_client.service.heartbeat")
    start()
    eventually(lambda: "registered admin=" in caplog.text)
    if away:
        admin.down()
    executors.pop().stop()
    assert [
        record.getMessage().startswith(expected)
        for record in caplog.records
        if "dereg" in record.getMessage()
    ] == [True]


def test_admins_that_took_the_last_registration_are_deregistered_first(
    start: MakeExecutor, executors: list[Executor], admin: StandInAdmin, others: list[StandInAdmin]
) -> None:
    removals: list[StandInAdmin] = []

    def recording(each: StandInAdmin, reply: dict[str, Any]) -> Answer:
        def answer(action: str, body: Any) -> dict[str, Any]:
            if action == "registryRemove":
                removals.append(each)
            return reply

        return answer

    refusing, taking = others
    refusing.refuse = recording(refusing, {"code": 500, "msg": "wait"})
    for each in (admin, taking):
        each.refuse = recording(each, {})
    start(admin_addresses=(refusing.url, admin.url, taking.url))
    eventually(lambda: taking.bodies("registry"))
    executors.pop().stop()
    assert (set(map(id, removals[:2])), removals[2:]) == ({id(admin), id(taking)}, [refusing])


def test_an_admin_that_hangs_does_not_hold_up_the_deregistration_from_others(
    start: MakeExecutor, executors: list[Executor], admin: StandInAdmin, others: list[StandInAdmin]
) -> None:
    removed = threading.Event()

    def hang(action: str, body: Any) -> dict[str, Any]:
        if action == "registryRemove":
            removed.wait(30)
        return {}

    def note(action: str, body: Any) -> dict[str, Any]:
        if action == "registryRemove":
            removed.set()
        return {}

    admin.refuse, others[0].refuse = hang, note
    start(admin_addresses=(admin.url, others[0].url))
    eventually(lambda: others[0].bodies("registry"))
    executors.pop().stop()
    assert removed.is_set()


def test_an_executor_that_stops_registers_no_more(
    start: MakeExecutor, executors: list[Executor], admin: StandInAdmin, others: list[StandInAdmin]
) -> None:
    """As when admins before this one do not answer in time, one after the other."""
    stopping: list[threading.Thread] = []
    calls: list[str] = []

    def stop_meanwhile(action: str, body: Any) -> dict[str, Any]:
        if executors and others[0].bodies("registry") and not stopping:
            engine = executors[0]._engine
            assert engine is not None
            thread = threading.Thread(target=executors[0].stop)
            thread.start()
            stopping.append(thread)
            engine._heartbeat._stopping.wait(30)
            calls.clear()
        return {}

    def record(action: str, body: Any) -> dict[str, Any]:
        calls.append(action)
        return {}

    admin.refuse, others[0].refuse = stop_meanwhile, record
    start(admin_addresses=(admin.url, others[0].url))
    eventually(lambda: stopping)
    stopping[0].join(30)
    assert calls == ["registryRemove"]


def test_a_run_that_an_admin_sends_while_it_is_told_of_the_stop_is_finished(
    start: MakeExecutor, executors: list[Executor], admin: StandInAdmin
) -> None:
    caller = start()
    eventually(lambda: admin.bodies("registry"))

    def send(action: str, body: Any) -> dict[str, Any]:
        if action == "registryRemove":
            caller.accepted(1)
        return {}

    admin.refuse = send
    executors.pop().stop()
    assert admin.codes() == {1: 200}


def test_an_admin_that_starts_later_is_found(start: MakeExecutor, admin: StandInAdmin) -> None:
    admin.down()
    caller = start()
    caller.accepted(1)
    admin.up()
    eventually(lambda: admin.bodies("registry") and admin.codes() == {1: 200})


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"host": "127.0.0.1"}, "http://127.0.0.1:9000/"),
        ({"host": "::1"}, "http://[::1]:9000/"),
        ({"host": "jobs.example"}, "http://jobs.example:9000/"),
        ({"host": "0.0.0.0"}, "http://127.0.0.1:9000/"),
        ({"address": "https://jobs.example/x"}, "https://jobs.example/x/"),
        ({"address": "http://10.1.2.3:9999/"}, "http://10.1.2.3:9999/"),
    ],
)
def test_the_registered_address(settings: dict[str, Any], expected: str, tmp_path: Path) -> None:
    config = ExecutorConfig(("http://127.0.0.1:8080/xxl-job-admin",), "test", **settings)
    assert registered_address(config, 9000) == expected


def test_a_prefix_belongs_to_the_port_and_not_to_a_given_address() -> None:
    admins = ("http://127.0.0.1:8080/",)
    assert registered_address(ExecutorConfig(admins, "test"), 5000, "/jobs") == "http://127.0.0.1:5000/jobs/"
    given = ExecutorConfig(admins, "test", address="http://10.1.2.3/x")
    assert registered_address(given, None, "/jobs") == "http://10.1.2.3/x/"


def test_an_admin_without_a_route_does_not_prevent_the_start() -> None:
    admins = ("http://nowhere.invalid:8080/", "http://" + "a" * 64 + "/", "http://127.0.0.1:8080/")
    assert (
        registered_address(ExecutorConfig(admins, "test", host="0.0.0.0"), 9000) == "http://127.0.0.1:9000/"
    )


def test_an_unknown_outward_address_must_be_configured() -> None:
    config = ExecutorConfig(("http://nowhere.invalid:8080/",), "test", host="0.0.0.0")
    with pytest.raises(StartRefused, match="XXL_JOB_EXECUTOR_ADDRESS"):
        registered_address(config, 9000)
