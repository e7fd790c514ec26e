"""``registryCheck``: what a console reports of a registration, and that it calls nothing else."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.api.executor_api import ExecutorApi
from app.domain.enums import AddressType
from app.models.registry import Registration
from app.services.executors import registration_check
from app.services.executors.registration_check import BURST, NO_EXECUTOR, OTHER_TOKEN, TOO_MANY
from app.settings.config import Config
from executor_client import ExecutorConfig
from executor_client.program.check import check as check_settings
from tests.acceptance.programs import free_port
from tests.support.api import CONTEXT, OLD_TOKEN, TOKEN, Executor, console_stub
from tests.support.factories import all_rows, make_group
from tests.support.fake_executor import Answer, FakeExecutor, Fault
from tests.support.plan import every_database
from tests.support.serving import serving


@pytest.fixture
def target() -> Iterator[FakeExecutor]:
    with FakeExecutor() as fake:
        yield fake


def automatic() -> None:
    make_group(app_name="my-app", address_type=AddressType.AUTOMATIC, address_list=None)


def check(executor: Executor, address: str, token: str | None = TOKEN) -> dict[str, Any]:
    body = {"registryGroup": "EXECUTOR", "registryKey": "my-app", "registryValue": address}
    reply: dict[str, Any] = executor.post("registryCheck", json.dumps(body), token=token).get_json()
    return reply


@every_database
def test_the_group_decides_whether_the_address_is_called(executor: Executor, target: FakeExecutor) -> None:
    nothing = {"group": False, "listed": False, "called": False, "problem": ""}
    make_group(app_name="My-App")
    assert check(executor, target.address)["content"] == nothing
    manual = {"address_type": AddressType.MANUAL, "address_list": "http://10.0.0.1:9999"}
    make_group(app_name="my-app", **manual)
    assert check(executor, target.address)["content"] == {**nothing, "group": True}
    assert target.requests == []
    automatic()
    assert check(executor, target.address)["content"] == {
        "group": True,
        "listed": True,
        "called": True,
        "problem": "",
    }
    (request,) = target.requests
    assert (request.action, request.json) == ("beat", {})
    assert all_rows(Registration) == []


def test_a_listed_address_of_a_manual_group_is_called(executor: Executor, target: FakeExecutor) -> None:
    make_group(app_name="my-app", address_type=AddressType.MANUAL, address_list=target.address.rstrip("/"))
    assert check(executor, target.address)["content"]["called"] is True


def test_the_call_has_the_token_of_the_request(executor: Executor, target: FakeExecutor) -> None:
    automatic()
    check(executor, target.address, OLD_TOKEN)
    assert [request.headers["XXL-JOB-ACCESS-TOKEN"] for request in target.requests] == [OLD_TOKEN]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (Answer.json(500, msg="The access token is wrong."), OTHER_TOKEN),
        (Answer.json(500, msg="secret of another service"), NO_EXECUTOR),
        (Answer(b"<title>secret</title>", headers=()), NO_EXECUTOR),
        (Answer(status=302, headers=(("Location", "http://127.0.0.1:1/secret"),)), NO_EXECUTOR),
        (Answer(fault=Fault.CLOSE), NO_EXECUTOR),
    ],
)
def test_nothing_of_a_foreign_answer_is_reported(
    executor: Executor, target: FakeExecutor, answer: Answer, problem: str
) -> None:
    automatic()
    target.respond("beat", answer)
    assert check(executor, target.address)["content"]["problem"] == problem
    assert len(target.requests) == 1


def test_an_unreachable_address_is_reported(executor: Executor) -> None:
    automatic()
    found = check(executor, f"http://127.0.0.1:{free_port()}/")["content"]
    assert found["problem"] == "connection refused: nothing listens on this port"


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("http://169.254.169.254/", "outside the networks"),
        ("http://203.0.113.7:9999/", "outside the networks"),
        ("http://127.0.0.1:22/", "port 22 is not allowed"),
        ("http://127.0.0.1:9999/x?", "must not contain"),
        ("", "Illegal Argument."),
    ],
)
def test_an_address_that_cannot_register_is_refused(executor: Executor, address: str, reason: str) -> None:
    automatic()
    reply = check(executor, address)
    assert (reply["code"], reason in reply["msg"]) == (500, True), reply


@pytest.mark.parametrize("token", [None, "wrong-token-0123456789"])
def test_the_token_comes_first(executor: Executor, target: FakeExecutor, token: str | None) -> None:
    automatic()
    assert "token" in check(executor, target.address, token)["msg"]
    assert target.requests == []


def test_a_group_with_its_own_token_takes_only_that(
    database: str, api_config: Config, target: FakeExecutor
) -> None:
    make_group(app_name="my-app", access_token="a-token-of-the-group-0123")
    api = ExecutorApi(console_stub, api_config)
    assert check(Executor(api), target.address)["msg"] == "The access token is wrong."
    assert target.requests == []
    api.callbacks.close()


def test_calls_are_limited(executor: Executor, target: FakeExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registration_check, "monotonic_ms", lambda: 0)
    automatic()
    replies = [check(executor, target.address) for _ in range(BURST + 2)]
    assert [reply["code"] for reply in replies] == [200] * BURST + [500] * 2
    assert replies[-1]["msg"] == TOO_MANY
    assert len(target.requests) == BURST


@pytest.mark.parametrize(
    ("groups", "settings", "expected"),
    [
        (True, {}, "address http://127.0.0.1:{port}/: the console reaches it"),
        (
            True,
            {"address": "http://127.0.0.1:1/"},
            "token accepted, but address 'http://127.0.0.1:1/' refused: port 1 is not allowed",
        ),
        (
            True,
            {"address": "http://127.0.0.1:{free}/"},
            "address http://127.0.0.1:{free}/: the console cannot use it: connection refused: nothing listens"
            " on this port; set XXL_JOB_EXECUTOR_ADDRESS to a URL that it reaches",
        ),
        (
            False,
            {},
            "group: the console has no executor group with the app name my-app:"
            " add one on its page Executors, or correct the app name",
        ),
    ],
)
def test_check_shows_what_the_console_found(
    executor: Executor, tmp_path: Path, groups: bool, settings: dict[str, str], expected: str
) -> None:
    if groups:
        automatic()
    port, free = free_port(), free_port()
    with serving(executor.api) as console:
        config = ExecutorConfig(
            admin_addresses=(f"http://127.0.0.1:{console}{CONTEXT}",),
            appname="my-app",
            port=port,
            address=settings.get("address", "").format(free=free),
            access_tokens=(TOKEN,),
            home=tmp_path,
        )
        findings = list(check_settings(config))
    texts = [finding.text for finding in findings if not finding.is_fine]
    if not texts:
        texts = [finding.text for finding in findings if finding.text.startswith("address")]
    (text,) = texts
    assert expected.format(port=port, free=free) in text
