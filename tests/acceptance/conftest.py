"""Acceptance tests on a ``cluster`` of real processes; a failed test shows their output.

Starting one takes longer than most tests on it: tests that leave it unchanged use one per module, with
``shared``.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.acceptance.cluster import Cluster
from tests.support.acceptance import clusters_key
from tests.support.databases import STARTERS, migrate, missing
from tests.support.migrated_databases import kinds_key
from tests.support.plan import EVERY_KIND


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


@pytest.fixture
def cluster(clusters: list[Cluster], empty_database: str, tmp_path: Path) -> Cluster:
    """A cluster on an empty, migrated database of every kind; nothing runs yet."""
    migrate(empty_database)
    clusters.append(Cluster(tmp_path, empty_database))
    return clusters[0]
