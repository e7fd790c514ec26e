"""Test plan: on which databases a test runs, which tests only ``--all`` runs, and how long a run takes.

A database test runs on SQLite. Tests directly in tests/ run on every kind of database, because migrations
differ between them. Those in tests/store, whose subject is SQL, and those marked ``every_database`` run on
SQLite and on one of the servers, which their names choose, so that both get half of them. The marker
``databases`` names the only kinds a test makes sense on. Of a test with parameters, the first set runs on all
its kinds and the others in turn on one each, but in tests/store. ``--all`` runs all database tests on every
kind, and the tests marked ``extensive``. Modules of LONG are left out of a run by hand that names no files;
CI has them on every commit. ``--db`` runs all database tests on the kinds it names. MySQL, which
Debian 12 does not have, runs only if named by ``--db``: its tests are those of MariaDB.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from tests.support.databases import STARTERS

EVERY_KIND = ("sqlite", "mariadb", "postgresql")
#: kinds that ``--db`` can name
KNOWN_KINDS = ("sqlite", *STARTERS)
#: servers that a run starts by itself
STARTED_HERE = ("mariadb", "postgresql")
every_database = pytest.mark.databases(*EVERY_KIND)
TESTS = Path(__file__).parents[1]
#: the layer whose subject is SQL
SQL_LAYER = "store"
#: layers that drive third-party programs; a test that fails there runs once more, and the summary names it
FOREIGN_LAYERS = {"browser", "interop"}
#: layers with tests of several seconds each, the longest last
LONG_LAYERS = ("interop", "browser", "acceptance")
#: programs that browser tests can drive; the headless shell takes three fifths of Chromium's time
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
#: modules of many seconds each: foreign executors, faults, each page, right and odd input, random histories
LONG = frozenset(
    (
        "acceptance/test_blackouts.py",
        "acceptance/test_executor_outage.py",
        "acceptance/test_faults.py",
        "acceptance/test_first_fire.py",
        "acceptance/test_kill_scheduler.py",
        "acceptance/test_make_run.py",
        "acceptance/test_watched.py",
        "api/v1/test_contract.py",
        "browser/test_day.py",
        "browser/test_every_page.py",
        "browser/test_open_parts.py",
        "browser/test_ways.py",
        "domain/backfills/test_scheduled.py",
        "domain/calendars/test_property.py",
        "interop/test_executors.py",
        "security/test_bad_input.py",
        "security/test_matrix.py",
        "services/backfills/test_backfills_property.py",
    )
)
#: average seconds of a test by layer; multiplied by SERVER_FACTOR on a database server
TEST_S = {
    "": 0.06,
    "acceptance": 6.0,
    "api": 0.03,
    "browser": 1.6,
    "console": 0.1,
    "domain": 0.02,
    "executor_client": 0.2,
    "executors": 0.05,
    "interop": 2.0,
    "pipeline": 0.1,
    "security": 0.25,
    "services": 0.1,
    "store": 0.05,
    "workers": 0.2,
}
SERVER_FACTOR = 2
#: seconds until the first test runs: import, collection, database servers
START_S = 30


def layer_of(path: Path) -> str:
    """Return the folder of tests/ a module is in; "" for one directly in tests/."""
    return path.relative_to(TESTS).parts[0] if path.parent != TESTS else ""


def is_long(path: Path) -> bool:
    """Whether a module is left out of a run by hand that names no files."""
    return path.relative_to(TESTS).as_posix() in LONG


def kinds_for(test: pytest.Function, *, every: bool) -> Sequence[str]:
    """Return the kinds of database a test runs on; ``every``: on all that it can."""
    marker, layer = test.get_closest_marker("databases"), layer_of(test.path)
    kinds: Sequence[str] = ("sqlite",)
    if marker is not None:
        kinds = marker.args
    elif every or layer in ("", SQL_LAYER):
        kinds = EVERY_KIND
    if kinds == EVERY_KIND and layer and not every:
        kinds = ("sqlite", server_of(test.nodeid))
    return [*kinds, "mysql"] if "mariadb" in kinds else kinds


def elsewhere_shown(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """Return the tests to leave out: sets of parameters on the kinds of database whose turn it is not."""
    sets: dict[str, dict[str, list[pytest.Item]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec is not None and "database_kind" in callspec.params and layer_of(item.path) != SQL_LAYER:
            sets[item.nodeid.partition("[")[0]][_without_kind(callspec)].append(item)
    left_out: set[pytest.Item] = set()
    for by_parameters in sets.values():
        for number, on_kinds in enumerate([*by_parameters.values()][1:], start=1):
            left_out.update(on_kinds)
            left_out.remove(on_kinds[number % len(on_kinds)])
    return left_out


def _without_kind(callspec: Any) -> str:
    """Return the name of a set of parameters without its kind of database."""
    return "-".join(part for part in callspec._idlist if part != callspec.params["database_kind"])


def server_of(test_id: str) -> str:
    """Return the database server of a test that runs on one of them, by its name without parameters."""
    return STARTED_HERE[crc32(test_id.partition("[")[0].encode()) % len(STARTED_HERE)]


def forecast(node_ids: Iterable[str], workers: int) -> str:
    """Return how many tests run and about how long they take."""
    ids = list(node_ids)
    seconds = START_S + sum(map(_seconds, ids)) / max(workers, 1)
    about = f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
    return f"{len(ids)} tests, about {about} with {workers} worker{'s' if workers > 1 else ''}"


def _seconds(node_id: str) -> float:
    module, _, parameters = node_id.partition("[")
    parts = module.partition("::")[0].split("/")
    on_server = any(kind in parameters for kind in STARTERS)
    return TEST_S.get(parts[1] if len(parts) > 2 else "", 0.1) * (SERVER_FACTOR if on_server else 1)
