"""Test plan: on which databases a test runs, which tests only ``--all`` runs, and how long a run takes.

A database test runs on SQLite. In tests/store and directly in tests/ it runs on every kind of database,
because SQL, locks and migrations differ between them; elsewhere a test or module about such differences is
marked ``every_database``. The marker ``databases`` names the only kinds a test makes sense on. ``--all``
runs all other database tests on every kind too, and the tests marked ``extensive``. ``--db`` runs all
database tests on the kinds it names. MySQL, which Debian 12 does not have, runs only if named by ``--db``:
its tests are those of MariaDB.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from tests.support.databases import STARTERS

EVERY_KIND = ("sqlite", "mariadb", "postgresql")
#: kinds that ``--db`` can name
KNOWN_KINDS = ("sqlite", *STARTERS)
every_database = pytest.mark.databases(*EVERY_KIND)
TESTS = Path(__file__).parents[1]
#: layers whose subject is SQL; "": modules directly in tests/
SQL_LAYERS = {"", "store"}
#: layers that drive third-party programs; a test that fails there runs once more, and the summary names it
FOREIGN_LAYERS = {"browser", "interop"}
#: layers with tests of several seconds each, the longest last
LONG_LAYERS = ("interop", "browser", "acceptance")
#: programs that browser tests can drive; the headless shell takes three fifths of Chromium's time
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
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


def kinds_for(test: pytest.Function, *, every: bool) -> Sequence[str]:
    """Return the kinds of database a test runs on; ``every``: on all it can."""
    marker = test.get_closest_marker("databases")
    if marker is not None:
        kinds: Sequence[str] = marker.args
    else:
        kinds = EVERY_KIND if every or layer_of(test.path) in SQL_LAYERS else ("sqlite",)
    return [*kinds, "mysql"] if "mariadb" in kinds else kinds


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
