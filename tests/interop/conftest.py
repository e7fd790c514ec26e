"""One installation for all foreign executors; two of each kind, registered, for the tests of that kind."""

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.acceptance.cluster import TOKEN, Cluster
from tests.acceptance.conftest import clusters_key, pytest_runtest_makereport  # noqa: F401 - a hook here too
from tests.acceptance.console import Console
from tests.acceptance.programs import Program, free_port
from tests.databases import migrate
from tests.eventually import eventually
from tests.interop.foreign import KINDS, Foreign


def pytest_configure(config: pytest.Config) -> None:
    for kind in KINDS:
        if kind.tool:
            config.addinivalue_line(
                "markers", f"{kind.tool}: needs a tool chain, see TOOLS in tests/conftest.py"
            )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = str(Path(__file__).parent)
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.interop)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "pair" in metafunc.fixturenames:
        once_only = metafunc.definition.get_closest_marker("once") is not None
        marked = [
            pytest.param(
                kind, id=kind.name, marks=marks_of(kind, extensive=once_only and kind is not KINDS[0])
            )
            for kind in KINDS
        ]
        metafunc.parametrize("pair", marked, indirect=True, scope="module")


def marks_of(kind: Foreign, *, extensive: bool) -> list[pytest.MarkDecorator]:
    tool = [getattr(pytest.mark, kind.tool)] if kind.tool else []
    return [*tool, pytest.mark.extensive] if extensive else tool


@dataclass
class Pair:
    """Two executors of one kind and their group."""

    kind: Foreign
    console: Console
    group_id: int
    #: registered address -> program
    programs: dict[str, Program]
    #: registered address -> command that starts the program
    starters: dict[str, Callable[[], Program]]

    def start_again(self, address: str) -> None:
        """Start a killed executor again, for later tests."""
        self.programs[address] = self.starters[address]()
        port = urlsplit(address).port
        assert port is not None
        eventually(lambda: is_listening(port), 45, "the executor is back")

    def add_job(self, handler: str, **changes: Any) -> int:
        return self.console.add_job(self.group_id, executorHandler=handler, **changes)

    def run(self, handler: str, param: str = "", **changes: Any) -> dict[str, Any]:
        """Run a new job once manually and return its row when it has ended."""
        job_id = self.add_job(handler, **changes)
        self.console.trigger(job_id, param)
        return self.await_runs(job_id, 1)[0]

    def await_log(self, log_id: int, text: str) -> str:
        """Wait until the log of a run contains a text, and return it.

        Some executors report a result before they create the log file, and answer "not found" until then.
        """

        def found() -> str:
            if self.console.ask("/joblog/logDetailCat", logId=log_id, fromLineNum=1)["code"] != 200:
                return ""
            log = self.console.log_text(log_id)
            return log if text in log else ""

        return eventually(found, 20, f"{text!r} is in the log of run {log_id}")

    def await_runs(self, job_id: int, count: int) -> list[dict[str, Any]]:
        return self.console.await_runs(self.group_id, job_id, count, 45)


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


_set_ups = count(1)


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Console and workers on SQLite."""
    folder = tmp_path_factory.mktemp("interop")
    made = Cluster(folder, f"sqlite:///{folder / 'xxl_job.db'}")
    migrate(made.database_url)
    alive = request.config.stash.setdefault(clusters_key, [])
    alive.append(made)
    console = made.start_console(wait=False)
    made.start_workers()
    made.await_console(console)
    yield made
    stubborn = made.programs.stop_all()
    alive.remove(made)
    assert stubborn == [], "programs did not end when requested"


@pytest.fixture(scope="module")
def pair(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Pair]:
    """Two executors of a kind, registered by themselves."""
    kind: Foreign = request.param
    # a set-up may be repeated, by a rerun or another division of the tests, while the former ones are listed
    appname = f"foreign-{kind.name}-{next(_set_ups)}"
    group_id = cluster.console.add_group(appname)
    starters = {}
    for number in (1, 2):
        port, folder = free_port(), cluster.folder / f"{appname}-{number}"
        folder.mkdir()
        command = kind.command(
            admin=cluster.console.address,
            token=TOKEN,
            appname=appname,
            port=port,
            folder=folder,
        )
        start = partial(cluster.programs.start, f"{appname}-{number}", command, cluster.environ, cwd=folder)
        starters[f"http://127.0.0.1:{port}{kind.path}"] = start
    programs = {address: start() for address, start in starters.items()}
    known = cluster.console.await_addresses(group_id, 2)
    assert set(known) == set(programs)
    yield Pair(kind, cluster.console, group_id, programs, starters)
    for program in programs.values():
        program.kill()  # their exit codes are not tested
