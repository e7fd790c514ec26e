"""Fixtures: a stand-in admin, executors in this process, and clients that call them.

Tests marked ``program("php")`` or ``module("django")`` are skipped, and listed at the end, if it is not
installed. Without the packages of the server, as on Python 3.10, the tests run with
``pytest --confcutdir=tests/executor_client tests/executor_client``.
"""

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from executor_client import Executor, ExecutorConfig, HandlerRegistry
from tests.executor_client.stand_in_admin import TOKEN, StandInAdmin
from tests.support.eventually import eventually
from tests.support.executor_client import FAST, Caller, MakeExecutor
from tests.support.left_out import left_out_key

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
