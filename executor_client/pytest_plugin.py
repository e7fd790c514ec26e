"""Plugin of pytest: fixtures ``executor`` and ``console`` for end-to-end tests of handlers.

def test_report(executor):
    run = executor.run("reportHandler", "2024-05-01")
    assert run.state == "succeeded" and "42 rows" in run.log

The executor is a real one, on a free port. It is called by a stand-in, or, in a test that also uses
``console``, by a real console with workers on SQLite, one for the whole session.
"""

import secrets
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from executor_client.wire.errors import ExecutorError, StartRefused

if TYPE_CHECKING:
    from executor_client.executor import Executor
    from executor_client.pytest_support.admin import StandInAdmin
    from executor_client.pytest_support.console import Console

#: seconds for a run
RUN_S = 60.0
MODULES = "executor_modules"
REQUIRE = "--require-console"
#: name under which the executor registers, unless a test sets another
APP_NAME = "pytest"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the settings of the plugin."""
    parser.addini(MODULES, "modules with the @job handlers that the fixture executor serves", type="args")
    parser.getgroup("executor_client").addoption(
        REQUIRE, action="store_true", help="fail tests that use the fixture console if it cannot be started"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker ``executor``."""
    config.addinivalue_line(
        "markers", "executor(**settings): settings of the fixture executor, the names of ExecutorConfig"
    )


@dataclass(frozen=True)
class RunOutcome:
    """Outcome of a run of the fixture ``executor``."""

    #: succeeded, failed, timed_out; with a console also killed, not_started and unresolved
    state: str
    #: message of the result: the handler's return value or error
    message: str
    log: str


class ExecutorUnderTest:
    """A started executor and its caller, a stand-in admin or a console."""

    def __init__(self, executor: "Executor", admin: "StandInAdmin | None", console: "Console | None") -> None:
        self.executor = executor
        self.app_name = executor.config.appname
        self.address = executor.address
        self._admin = admin
        self._console = console

    def run(self, handler: str, param: str = "", *, timeout: float = RUN_S) -> RunOutcome:
        """Run a handler and return how it ended; raise an error if it does not within ``timeout`` seconds."""
        if self._admin is not None:
            return RunOutcome(*self._admin.run(self.address, handler, param, timeout))
        assert self._console is not None
        job_id = self._console.add_job(self.app_name, handler)
        run = self._console.run(job_id, param, timeout=timeout)
        return RunOutcome(run.state, run.message or run.reason, run.log())


@pytest.fixture(scope="session")
def console(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Console]":
    """Return a real console with workers on SQLite; without an installed server the test is skipped."""
    from executor_client.pytest_support.server import missing_server, running_server

    if reason := missing_server():
        (pytest.fail if request.config.getoption(REQUIRE) else pytest.skip)(reason)
    from executor_client.pytest_support.console import console_at

    with running_server(_cache(request.config, tmp_path_factory)) as (address, home):
        fixture_console = console_at(address, home)
        yield fixture_console
        fixture_console.close()


def _cache(config: pytest.Config, temporary: pytest.TempPathFactory) -> Path:
    """Return the folder for the new database, readable by its owner only."""
    cache = getattr(config, "cache", None)  # absent with -p no:cacheprovider
    folder: Path = cache.mkdir("executor-console") if cache else temporary.mktemp("console")
    folder.chmod(0o700)
    return folder


@pytest.fixture
def executor(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ExecutorUnderTest]:
    """Return a started executor with the imported handlers, and those of the ini setting executor_modules."""
    from executor_client.program.importing import import_handlers
    from executor_client.pytest_support.admin import StandInAdmin

    try:
        import_handlers(request.config.getini(MODULES))
    except StartRefused as exc:
        pytest.fail(f"{MODULES}: {exc}", pytrace=False)
    if "console" in request.fixturenames:
        console: Console = request.getfixturevalue("console")
        with _executor(request, tmp_path, console.url, console.access_token) as instance:
            console.wait_for_executor(instance.config.appname, instance.address)
            yield ExecutorUnderTest(instance, None, console)
        return
    token = secrets.token_hex(16)
    with closing(StandInAdmin(token)) as admin, _executor(request, tmp_path, admin.url, token) as instance:
        yield ExecutorUnderTest(instance, admin, None)


def _executor(request: pytest.FixtureRequest, folder: Path, admin: str, token: str) -> "Executor":
    """Return an executor that starts at its ``with`` block."""
    from executor_client.config.config import ExecutorConfig, Timing
    from executor_client.executor import Executor
    from executor_client.handlers.registry import registry

    mark = request.node.get_closest_marker("executor")
    settings: dict[str, Any] = {
        "appname": APP_NAME,
        "timing": Timing(shutdown_wait_s=1, drain_s=1),
        **(mark.kwargs if mark else {}),
        "admin_addresses": (admin,),
        "access_tokens": (token,),
        "home": folder / "executor",
        "port": 0,
    }
    if not registry.names():
        pytest.fail(
            "the fixture executor has no handler: import a module with @job functions in the test, or name it"
            f" in the configuration of pytest: {MODULES} = myjobs",
            pytrace=False,
        )
    try:
        return Executor(ExecutorConfig(**settings))
    except (ExecutorError, TypeError) as exc:
        pytest.fail(f"the marker executor: {exc}", pytrace=False)
