"""Callbacks: results reach admins of every version, also after an outage."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from executor_client import Executor, ExecutorConfig, HandlerRegistry, context
from executor_client.service.admin_client import AdminClient
from executor_client.service.callback import BATCH_MAX_BYTES, send_unstored
from executor_client.wire.callbacks import CallbackItem
from executor_client.wire.lenient_json import dump_json
from executor_client.wire.protocol import SEND_AGAIN, Reply
from tests.executor_client.stand_in_admin import StandInAdmin
from tests.support.eventually import eventually
from tests.support.executor_client import FAST, T0, Caller, MakeExecutor

Result = Callable[[int], tuple[int, str | None]]


@pytest.fixture
def of_version() -> Iterator[Callable[[str], StandInAdmin]]:
    made: list[StandInAdmin] = []

    def make(version: str) -> StandInAdmin:
        made.append(StandInAdmin(version))
        return made[-1]

    yield make
    for stand_in in made:
        stand_in.down()


@pytest.mark.parametrize("version", ["2.2", "2.4", "3.4", "3.5"])
def test_an_admin_of_any_version_gets_results(
    of_version: Callable[[str], StandInAdmin], start: MakeExecutor, version: str
) -> None:
    admin = of_version(version)
    caller = start(admin_addresses=(admin.url,))
    for log_id in (1, 2):
        caller.accepted(log_id, executorHandler="ok")
        eventually(lambda log_id=log_id: log_id in admin.codes(), message=f"no result at {version}")
    assert admin.codes() == {1: 200, 2: 200}
    eventually(lambda: "callback finished" in caller.log(2)["logContent"])


def test_the_callback_form_of_an_admin_is_remembered(
    of_version: Callable[[str], StandInAdmin], start: MakeExecutor
) -> None:
    admin = of_version("3.5")
    caller = start(admin_addresses=(admin.url,))
    for log_id in (1, 2, 3):
        caller.accepted(log_id)
        eventually(lambda log_id=log_id: log_id in admin.codes())
    shapes = [type(body).__name__ for body in admin.bodies("callback")]
    assert shapes == ["list", "dict", "dict", "dict"]


def test_results_are_kept_while_the_admin_is_down(
    caller: Caller, admin: StandInAdmin, handlers: HandlerRegistry
) -> None:
    handlers.job("fail")(lambda: context.fail("no"))
    admin.down()
    for log_id in range(1, 121):
        caller.accepted(log_id, executorHandler="fail" if log_id % 2 else "ok", jobId=log_id % 2)
    eventually(lambda: "callback failed" in caller.log(1)["logContent"])
    admin.up()
    eventually(lambda: len(admin.codes()) == 120, message="results are missing")
    assert admin.codes() == {log_id: 500 if log_id % 2 else 200 for log_id in range(1, 121)}
    assert max(len(body) for body in admin.bodies("callback")) == 50
    assert caller.log(1)["logContent"].count("callback failed") == 1


@pytest.mark.parametrize(
    "refusal",
    [
        {"code": 500, "msg": "database is away"},
        {"code": "x"},
        {"msg": "no code"},
        None,
    ],
)
def test_a_rejected_callback_is_retried(
    caller: Caller, admin: StandInAdmin, result: Result, refusal: dict[str, Any] | None
) -> None:
    tries = []

    def refuse_twice(action: str, body: Any) -> dict[str, Any] | None:
        if action == "callback":
            tries.append(body)
            if len(tries) <= 2:
                return refusal
        return {}

    admin.refuse = refuse_twice
    caller.accepted(1)
    assert result(1) == (200, None)
    assert admin.repeats()[1] == 1


@pytest.mark.parametrize("text", ["the database is busy; send it again", "HTTP status 502: Bad Gateway"])
def test_no_result_waits_longer_for_the_trouble_of_an_admin(
    caller: Caller, admin: StandInAdmin, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """A result that is refused itself is sent again after a minute only."""
    tries: list[int] = []

    def callback(self: AdminClient, items: list[CallbackItem]) -> Reply:
        if len(items) > 1:
            tries.append(len(items))
        return Reply(500, text) if len(tries) < 3 else original(self, items)

    original = AdminClient.callback
    with monkeypatch.context() as patched:
        patched.setattr(AdminClient, "callback", callback)
        for log_id in range(1, 6):
            caller.accepted(log_id)
        eventually(lambda: len(admin.codes()) == 5, 20, message="a result waits")


def test_a_batch_is_limited_in_size(caller: Caller, admin: StandInAdmin, handlers: HandlerRegistry) -> None:
    handlers.job("long")(lambda: "m" * 50_000)
    admin.down()
    for log_id in range(1, 31):
        caller.accepted(log_id, executorHandler="long", jobId=log_id)
    eventually(lambda: all("callback failed" in caller.log(log_id)["logContent"] for log_id in (1, 2)))
    eventually(lambda: not any(caller.is_busy(job_id) for job_id in range(1, 31)))
    admin.up()
    eventually(lambda: len(admin.codes()) == 30, message="results are missing")
    sizes = [len(dump_json(body)) for body in admin.bodies("callback")]
    assert max(sizes) <= BATCH_MAX_BYTES
    assert max(len(body) for body in admin.bodies("callback")) > 1, "sent one by one"


@pytest.mark.parametrize("status", [400, 413])
def test_a_batch_that_a_proxy_refuses_is_sent_one_by_one(
    caller: Caller, admin: StandInAdmin, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    def callback(self: AdminClient, items: list[CallbackItem]) -> Reply:
        refused = len(items) > 1 or items[0].log_id == 3
        return Reply(500, f"HTTP status {status}: <html>") if refused else original(self, items)

    original = AdminClient.callback
    admin.down()
    with monkeypatch.context() as patched:
        for log_id in range(1, 6):
            caller.accepted(log_id)
        eventually(lambda: "callback failed" in caller.log(5)["logContent"])
        patched.setattr(AdminClient, "callback", callback)
        admin.up()
        eventually(lambda: len(admin.codes()) == 4, message="the batch blocks its results")
    assert 3 not in admin.codes()


def test_a_result_that_is_rejected_alone_does_not_delay_the_others(
    start: MakeExecutor, admin: StandInAdmin, result: Result
) -> None:
    def refuse_first(action: str, body: Any) -> dict[str, Any]:
        poisoned = action == "callback" and any(item["logId"] == 1 for item in body)
        return {"code": 500, "msg": "cannot store that"} if poisoned else {}

    admin.refuse = refuse_first
    caller = start(timing=replace(FAST, callback_retry_min_s=60, callback_retry_max_s=60))
    caller.accepted(1)
    eventually(lambda: "cannot store that" in caller.log(1)["logContent"])
    caller.accepted(2)
    assert result(2) == (200, None)


def test_a_rejected_result_does_not_block_the_others(caller: Caller, admin: StandInAdmin) -> None:
    def refuse_first(action: str, body: Any) -> dict[str, Any]:
        poisoned = action == "callback" and any(item["logId"] == 1 for item in body)
        return {"code": 500, "msg": "cannot store that"} if poisoned else {}

    admin.refuse = refuse_first
    for log_id in range(1, 21):
        caller.accepted(log_id)
    eventually(lambda: len(admin.codes()) == 19, message="the rejected result blocks the others")
    assert 1 not in admin.codes()


@pytest.mark.parametrize(
    ("message", "is_given_up"),
    [("cannot store that", True), ("The access token is wrong.", True), (f"busy; {SEND_AGAIN}", False)],
)
def test_a_result_that_is_refused_for_days_is_given_up(
    start: MakeExecutor,
    executors: list[Executor],
    admin: StandInAdmin,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    message: str,
    is_given_up: bool,
) -> None:
    admin.refuse = lambda action, body: {"code": 500, "msg": message} if action == "callback" else {}
    caller = start()
    caller.accepted(1)
    eventually(lambda: len(admin.bodies("callback")) >= 3)
    engine = executors[0]._engine
    assert engine is not None
    assert engine.counters.value("callbacks_given_up") == 0, "it is refused for a moment only"
    monkeypatch.setattr("executor_client.service.callback.GIVE_UP_MS", 1)
    sent = len(admin.bodies("callback"))
    if not is_given_up:
        eventually(lambda: len(admin.bodies("callback")) >= sent + 3)
    else:
        eventually(lambda: engine.counters.value("callbacks_given_up") == 1)
        assert engine._journal.count_unacknowledged() == 0
        lines = [line for line in caplog.messages if line.startswith("results given up")]
        assert lines == [f"results given up after days of refusals log_ids=1 reply={message}"]
    assert engine.counters.value("callbacks_given_up") == int(is_given_up)


def test_many_rejected_results_block_no_others(
    start: MakeExecutor, admin: StandInAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    rejected = set(range(1, 13))

    def refuse(action: str, body: Any) -> dict[str, Any]:
        poisoned = action == "callback" and any(item["logId"] in rejected for item in body)
        return {"code": 500, "msg": "cannot store that"} if poisoned else {}

    monkeypatch.setattr("executor_client.service.callback.BATCH_MAX", 10)
    monkeypatch.setattr("executor_client.service.callback.REFUSED_WAIT_S", 0.01)  # soon due again
    admin.refuse = refuse
    caller = start(timing=replace(FAST, callback_retry_max_s=0.02))
    for log_id in range(1, 18):
        caller.accepted(log_id)
    eventually(lambda: len(admin.codes()) == 5, 30, message="the rejected results block the others")
    rejected.remove(12)
    eventually(lambda: 12 in admin.codes(), 30, message="the rejected results block one another")


def test_a_rejected_result_does_not_block_the_others_while_another_admin_is_down(
    of_version: Callable[[str], StandInAdmin], start: MakeExecutor, admin: StandInAdmin
) -> None:
    def refuse_first(action: str, body: Any) -> dict[str, Any]:
        poisoned = action == "callback" and any(item["logId"] == 1 for item in body)
        return {"code": 500, "msg": "cannot store that"} if poisoned else {}

    admin.refuse = refuse_first
    other = of_version("2.4")
    other.down()
    caller = start(admin_addresses=(admin.url, other.url))
    for log_id in range(1, 6):
        caller.accepted(log_id)
    eventually(lambda: len(admin.codes()) == 4, message="the rejected result blocks the others")
    assert "callback failed, will be retried: cannot store that" in caller.log(1)["logContent"]


def test_an_unstored_result_that_was_accepted_goes_to_no_other_admin(
    of_version: Callable[[str], StandInAdmin], config: Callable[..., ExecutorConfig], admin: StandInAdmin
) -> None:
    other = of_version("2.4")
    admin.refuse = lambda action, body: {} if body[0]["logId"] == 1 else None
    settings = config(admin_addresses=(admin.url, other.url))
    items = [CallbackItem(log_id, T0, 200, None) for log_id in (1, 2, 3)]
    admins = [AdminClient(url, settings, "boot") for url in settings.admin_addresses]
    assert send_unstored(items, admins, drain_s=0) == items
    assert send_unstored(items, admins, drain_s=60) == []
    assert (admin.codes(), other.codes()) == ({1: 200}, {2: 200, 3: 200})


def test_callbacks_fail_over_to_the_second_admin(
    of_version: Callable[[str], StandInAdmin], start: MakeExecutor, admin: StandInAdmin
) -> None:
    other = of_version("3.4")
    caller = start(admin_addresses=(admin.url, other.url))
    eventually(lambda: other.bodies("registry"), message="not registered at every admin")
    eventually(lambda: admin.bodies("registry"))
    caller.accepted(1)
    eventually(lambda: admin.codes() == {1: 200})
    admin.down()
    caller.accepted(2)
    eventually(lambda: other.codes() == {2: 200}, 30)


def test_a_wrong_token_does_not_drop_results(caller: Caller, admin: StandInAdmin, result: Result) -> None:
    right, admin.token = admin.token, "another-token-0123456789"
    caller.accepted(1)
    eventually(lambda: "The access token is wrong" in caller.log(1)["logContent"])
    admin.token = right
    assert result(1) == (200, None)


def test_a_slow_admin_does_not_block_runs(caller: Caller, admin: StandInAdmin, result: Result) -> None:
    release = threading.Event()

    def slow(action: str, body: Any) -> dict[str, Any]:
        release.wait(10)
        return {}

    admin.refuse = slow
    caller.accepted(1)
    eventually(lambda: not caller.is_busy())
    caller.accepted(2)
    eventually(lambda: not caller.is_busy())
    release.set()
    assert result(2) == (200, None)
