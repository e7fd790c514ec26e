"""Database unavailable, full or slow: code 500, so that executors retry; success only after the commit."""

from dataclasses import replace

import pytest

from app.api.executor_api import ExecutorApi
from app.api.tokens import CACHE_MS
from app.database.connections import sqlite
from app.database.engine import bind_engine
from app.database.faults import RETRY_AFTER_S
from app.models.log import JobLog
from app.models.registry import Registration
from app.services.runs.callbacks import CallbackStore
from app.settings.config import Config
from tests.support.api import NOWHERE, Executor, console_stub
from tests.support.databases import write_lock
from tests.support.factories import all_rows, make_job, make_run, only_row

REGISTRATION = (
    b'{"registryGroup":"EXECUTOR","registryKey":"billing-exec","registryValue":"http://10.1.2.3:9999/"}'
)
AWAY = "the database is not available; send it again"


def callback_of(log_id: int) -> str:
    return f'[{{"logId":{log_id},"handleCode":200}}]'


@pytest.mark.parametrize("warm", [True, False], ids=["after some time", "from the start"])
def test_an_unavailable_database_is_a_reply_not_an_error(
    executor: Executor, api_config: Config, database_kind: str, warm: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0]
    monkeypatch.setattr("app.api.tokens.monotonic_ms", lambda: clock[0])
    run = make_run(make_job())
    if warm:
        assert executor.call("callback", "[]") == (200, None)
    bind_engine(replace(api_config, database_url=NOWHERE[database_kind]))
    for _ in range(2):
        for action, body in (
            ("callback", callback_of(run.id)),
            ("registry", REGISTRATION),
            ("registryRemove", REGISTRATION),
        ):
            assert executor.call(action, body) == (500, AWAY)
        clock[0] += CACHE_MS + 1
    bind_engine(api_config)
    assert executor.call("callback", callback_of(run.id)) == (200, None)
    assert executor.call("registry", REGISTRATION) == (200, None)
    assert only_row(JobLog).handle_code == 200
    assert len(all_rows(Registration)) == 1


def test_a_busy_database_is_an_envelope_with_http_503(
    executor: Executor,
    database: str,
    database_kind: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if database_kind != "sqlite":
        pytest.skip("about SQLite")
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 20)
    run = make_run(make_job())
    with write_lock(database):
        for action, body in (("callback", callback_of(run.id)), ("registry", REGISTRATION)):
            response = executor.post(action, body)
            assert (response.status_code, response.headers["Retry-After"]) == (503, str(RETRY_AFTER_S))
            assert (response.get_json()["code"], response.get_json()["msg"]) == (
                500,
                "the database is busy; send it again",
            )
    assert executor.call("callback", callback_of(run.id)) == (200, None)
    assert [
        record.getMessage()
        for record in caplog.records
        if record.exc_info or "not stored" in record.getMessage()
    ] == [
        f"executor request not stored action={action} database_error=database is locked"
        for action in ("callback", "registry")
    ]


def test_tokens_are_checked_without_the_database(
    executor: Executor, api_config: Config, database_kind: str
) -> None:
    executor.call("callback", "[]")
    bind_engine(replace(api_config, database_url=NOWHERE[database_kind]))
    assert executor.call("callback", "[]", token="wrong") == (500, "The access token is wrong.")


def test_a_write_timeout_is_a_failure(
    database: str, api_config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_slow(_self: CallbackStore, _items: object) -> int:
        raise TimeoutError

    monkeypatch.setattr(CallbackStore, "store", too_slow)
    assert Executor(ExecutorApi(console_stub, api_config)).call("callback", callback_of(1))[0] == 500


def test_an_internal_error_is_an_envelope_too(
    database: str, api_config: Config, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An unexpected error is HTTP 200 with code 500; executors take an HTTP error for a network failure.

    Source: docs/reference/protocol.md, section 2.4.
    """

    def broken(_self: CallbackStore, _items: object, _scope: object) -> int:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(CallbackStore, "store", broken)
    code, message = Executor(ExecutorApi(console_stub, api_config)).call("callback", callback_of(1))
    assert code == 500
    assert "secret detail" not in (message or "")
    assert "ZeroDivisionError" in caplog.text


def test_a_stopped_console_refuses_callbacks(executor: Executor) -> None:
    run = make_run(make_job())
    executor.api.callbacks.close()
    assert executor.call("callback", callback_of(run.id))[0] == 500
    assert only_row(JobLog).handle_code == 0
