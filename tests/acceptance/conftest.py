"""Acceptance tests on a ``cluster`` of real processes; a failed test shows their output.

Starting one takes longer than most tests on it: tests that leave it unchanged use one per module, with
``shared``.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.acceptance.cluster import Cluster
from tests.conftest import databases_key, kinds_key
from tests.databases import STARTERS, migrate, missing
from tests.plan import EVERY_KIND

#: lines shown of each program of a failed test
LAST_LINES = 60
clusters_key = pytest.StashKey[list[Cluster]]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "newcomer: installs everything into a clone of this checkout; takes minutes and needs the network",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = str(Path(__file__).parent)
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.acceptance)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server_kind" in metafunc.fixturenames:
        requested = [kind for kind in metafunc.config.getoption("db").split(",") if kind] or EVERY_KIND
        kinds = [kind for kind in STARTERS if kind in requested and missing(kind) is None]
        metafunc.parametrize("server_kind", params_of(metafunc, kinds), scope="module")
    if "shared_kind" in metafunc.fixturenames:
        kinds = metafunc.config.stash[kinds_key]
        metafunc.parametrize("shared_kind", params_of(metafunc, kinds), scope="module")


def params_of(metafunc: pytest.Metafunc, kinds: Sequence[str]) -> list[ParameterSet]:
    """Return the kinds as parameters; for a test marked ``once`` all but the first are extensive."""
    once_only = metafunc.definition.get_closest_marker("once") is not None
    extra = [pytest.mark.extensive] if once_only else []
    return [pytest.param(kind, marks=extra if number else []) for number, kind in enumerate(kinds)]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Add the output of the programs to the report of a failed test."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if not report.failed:
        return
    for cluster in item.config.stash.get(clusters_key, []):
        for name, output in cluster.programs.outputs().items():
            last = "\n".join(output.splitlines()[-LAST_LINES:])
            report.sections.append((f"{name} wrote", last))


@pytest.fixture
def clusters(request: pytest.FixtureRequest) -> Iterator[list[Cluster]]:
    """Clusters that are stopped after the test, however it ends; a program that had to be killed fails it."""
    shown = request.config.stash.setdefault(clusters_key, [])
    others = [*shown]
    shown.clear()
    yield shown
    stubborn = [name for cluster in shown for name in cluster.programs.stop_all()]
    shown[:] = others
    assert stubborn == [], "programs did not end when requested"


@contextmanager
def shared(config: pytest.Config, kind: str, folder: Path) -> Iterator[Cluster]:
    """A cluster on an empty, migrated database of a kind, for several tests; nothing runs yet."""
    url = config.stash[databases_key].empty(kind)
    migrate(url)
    made = Cluster(folder, url)
    alive = config.stash.setdefault(clusters_key, [])
    alive.append(made)
    try:
        yield made
    finally:
        alive.remove(made)
        stubborn = made.programs.stop_all()
    assert stubborn == [], "programs did not end when requested"


@pytest.fixture
def cluster(clusters: list[Cluster], empty_database: str, tmp_path: Path) -> Cluster:
    """A cluster on an empty, migrated database of every kind; nothing runs yet."""
    migrate(empty_database)
    clusters.append(Cluster(tmp_path, empty_database))
    return clusters[0]
