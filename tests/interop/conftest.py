"""One installation for all foreign executors; two of each kind, registered, for the tests of that kind."""

from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from tests.acceptance.cluster import TOKEN, Cluster
from tests.acceptance.programs import free_port
from tests.interop.foreign import KINDS, Foreign
from tests.support.acceptance import clusters_key
from tests.support.databases import migrate
from tests.support.interop import Pair


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
                kind,
                id=kind.name,
                marks=marks_of(kind, extensive=kind.is_nightly or (once_only and kind is not KINDS[0])),
            )
            for kind in KINDS
        ]
        metafunc.parametrize("pair", marked, indirect=True, scope="module")


def marks_of(kind: Foreign, *, extensive: bool) -> list[pytest.MarkDecorator]:
    tool = [getattr(pytest.mark, kind.tool)] if kind.tool else []
    return [*tool, pytest.mark.extensive] if extensive else tool


_set_ups = count(1)


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Console and workers on SQLite."""
    folder = tmp_path_factory.mktemp("interop")
    made = Cluster(folder, f"sqlite:///{folder / 'xxl_job.db'}", forks=True)
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
