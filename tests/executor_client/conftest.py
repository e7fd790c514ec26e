"""Fixtures: a stand-in admin, executors in this process, and clients that call them.

Tests marked ``program("php")`` or ``module("django")`` are skipped, and listed at the end, if it is not
installed. Without the packages of the server, as on Python 3.10, the tests run with
``pytest --confcutdir=tests/executor_client tests/executor_client``.
"""

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests

from executor_client import Executor, ExecutorConfig, HandlerRegistry
from executor_client.config.config import Timing
from tests.eventually import eventually
from tests.executor_client.stand_in_admin import TOKEN, StandInAdmin
from tests.left_out import left_out_key

#: 2024-05-01 03:04:05.123 UTC
T0 = 1_714_532_645_123

#: short waits for tests
FAST = Timing(
    admin_timeout_s=2,
    registry_period_s=0.2,
    callback_retry_min_s=0.02,
    callback_retry_max_s=0.2,
    cooperative_s=0.05,
    terminate_s=0.3,
    abandon_s=0.3,
    shutdown_wait_s=0.2,
    drain_s=1,
    restore_max_age_s=10**9,
)


collect_ignore = [] if importlib.util.find_spec("sqlalchemy") else ["test_same_as_server.py"]


def pytest_configure(config: pytest.Config) -> None:
    config.stash.setdefault(left_out_key, [])
    config.addinivalue_line("markers", "program(name): needs this program")
    config.addinivalue_line("markers", "module(name): needs this package")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        for name in (mark.args[0] for mark in item.iter_markers("program")):
            if shutil.which(name) is None:
                item.add_marker(pytest.mark.skip(f"{name} is not installed"))
                config.stash[left_out_key].append(f"{item.name}: {name} is not installed")
        for name in (mark.args[0] for mark in item.iter_markers("module")):
            if importlib.util.find_spec(name) is None:
                item.add_marker(pytest.mark.skip(f"{name} is not installed"))
                config.stash[left_out_key].append(f"{item.name}: {name} is not installed")


def run_fields(log_id: int, **changes: Any) -> dict[str, Any]:
    """Return the twelve fields of a trigger, with changes."""
    fields = {
        "jobId": 1,
        "executorHandler": "ok",
        "executorParams": "",
        "executorBlockStrategy": "SERIAL_EXECUTION",
        "executorTimeout": 0,
        "logId": log_id,
        "logDateTime": T0,
        "glueType": "BEAN",
        "glueSource": "",
        "glueUpdatetime": 1_541_254_891_000,
        "broadcastIndex": 0,
        "broadcastTotal": 1,
    }
    return {**fields, **changes}


@dataclass
class Caller:
    """Client that calls an executor as an admin does."""

    base: str
    token: str = TOKEN
    session: requests.Session = field(default_factory=requests.Session)

    def post(self, path: str, body: Any = None, **options: Any) -> dict[str, Any]:
        headers = {"XXL-JOB-ACCESS-TOKEN": self.token, **options.pop("headers", {})}
        response = self.session.post(self.base + path, json=body, headers=headers, timeout=10, **options)
        assert response.status_code == 200, response.text
        return dict(response.json())

    def run(self, log_id: int, **changes: Any) -> dict[str, Any]:
        return self.post("/run", run_fields(log_id, **changes))

    def accepted(self, log_id: int, **changes: Any) -> None:
        reply = self.run(log_id, **changes)
        assert reply["code"] == 200, reply

    def log(self, log_id: int, from_line: int = 1) -> dict[str, Any]:
        return dict(
            self.post("/log", {"logId": log_id, "logDateTim": T0, "fromLineNum": from_line})["content"]
        )

    def is_busy(self, job_id: int = 1) -> bool:
        return self.post("/idleBeat", {"jobId": job_id})["code"] == 500


@pytest.fixture
def admin() -> Iterator[StandInAdmin]:
    stand_in = StandInAdmin()
    yield stand_in
    stand_in.down()


@pytest.fixture
def handlers() -> HandlerRegistry:
    registry = HandlerRegistry()
    registry.job("ok")(lambda: None)
    return registry


MakeExecutor = Callable[..., Caller]


@pytest.fixture
def config(admin: StandInAdmin, tmp_path: Path) -> Callable[..., ExecutorConfig]:
    def make(**settings: Any) -> ExecutorConfig:
        defaults = {
            "admin_addresses": (admin.url,),
            "appname": "test",
            "port": 0,
            "access_tokens": (TOKEN,),
            "home": tmp_path,
            "log_retention_days": 0,  # T0 is long ago
            "route_logging": False,
            "timing": FAST,
        }
        return ExecutorConfig(**{**defaults, **settings})

    return make


@pytest.fixture
def executors() -> Iterator[list[Executor]]:
    """Executors that are stopped after the test."""
    started: list[Executor] = []
    yield started
    for executor in started:
        executor.stop()


@pytest.fixture
def start(
    config: Callable[..., ExecutorConfig], handlers: HandlerRegistry, executors: list[Executor]
) -> MakeExecutor:
    """Return a function that starts an executor in this process and returns its caller."""

    def make(**settings: Any) -> Caller:
        executor = Executor(config(**settings), handlers)
        executor.start()
        executors.append(executor)
        return Caller(executor.address.rstrip("/"))

    return make


@pytest.fixture
def caller(start: MakeExecutor) -> Caller:
    """Caller of an executor with default settings."""
    return start()


@pytest.fixture
def result(admin: StandInAdmin) -> Callable[[int], tuple[int, str | None]]:
    """Return a function that waits for the result of a run and returns code and message."""

    def wait(log_id: int) -> tuple[int, str | None]:
        eventually(lambda: log_id in admin.codes(), message=f"no result for {log_id}")
        return admin.codes()[log_id], admin.message(log_id)

    return wait
