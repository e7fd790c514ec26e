"""Fixtures of all tests, and the options of a run.

``database`` gives a test an empty, migrated database with the engine bound, on each kind that
``tests.support.plan`` chooses. Tests commit for real: SQLite is a fresh copy of a migrated file, the servers'
tables are emptied before the next test. Tests that need a program the machine lacks are left out and named in
the summary; with ``XXL_TEST_REQUIRE=all`` (CI) that is an error, and a test that fails is run once more: one
that depends on the load of a shared machine is named in the summary, to be mended, and does not hold up
everything else.
"""

import gc
import itertools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from argon2 import PasswordHasher
from sqlalchemy import Engine, NullPool, create_engine
from sqlalchemy.orm import Session

from app.database.engine import bind_engine, engine_options, session_scope, unbind_engine
from app.services.accounts import passwords
from app.services.answer_cache import AnswerCache
from app.services.auditing import refusals
from app.settings.config import Config
from app.store.calendars import current_book
from tests.support.databases import STARTERS, Server, missing
from tests.support.fake_executor import FakeExecutor
from tests.support.left_out import left_out_key
from tests.support.migrated_databases import (
    TIME_ZONE,
    Databases,
    databases_key,
    kept_engine,
    kinds_key,
)
from tests.support.plan import (
    BROWSERS,
    EVERY_KIND,
    FOREIGN_LAYERS,
    KNOWN_KINDS,
    LONG_LAYERS,
    elsewhere_shown,
    forecast,
    is_long,
    kinds_for,
    layer_of,
)

pytest_plugins = ["tests.support.api_fixtures", "tests.support.console_fixtures"]

#: marker -> programs its tests need, each with alternative names
TOOLS = {
    "browser": (BROWSERS,),
    "java": (("java",), ("mvn",)),
    "go": (("go",),),
    "node": (("node",),),
    "nginx": (("nginx",),),
    "pgbouncer": (("pgbouncer",),),
    "prometheus": (("prometheus",), ("promtool",)),
    "containers": (("podman",), ("runc",), ("mmdebstrap",)),
}
#: markers of extensive tests only
EXTENSIVE_TOOLS = {"containers"}
#: how often a failed test is repeated; 0 by night, where a test that fails now and then fails
RERUNS = int(os.environ.get("XXL_TEST_RERUNS", "1"))
#: tests between two collections of garbage
COLLECTED_EVERY = 25


#: the product's hasher takes 0.1 s and 64 MiB per password by design; used by ``real_hasher``
REAL_HASHER = passwords._hasher
passwords._hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)

# a slow example is no failure: machines are shared and noisy
hypothesis.settings.register_profile("project", deadline=None)
hypothesis.settings.load_profile("project")

_finished = itertools.count(1)
_homes = itertools.count(1)

forecast_key = pytest.StashKey[str]()
#: whether the run leaves out long tests
is_short_key = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--db",
        default="",
        metavar="KIND[,KIND]",
        help=f"run every database test on these of {', '.join(KNOWN_KINDS)} (default: tests/support/plan.py)",
    )
    parser.addoption(
        "--all", action="store_true", help="run every test on every kind of database, extensive ones too"
    )


def in_ci() -> bool:
    """Return whether a missing tool is an error and a failed test is run once more, named in the summary."""
    return os.environ.get("XXL_TEST_REQUIRE") == "all"


def pytest_configure(config: pytest.Config) -> None:
    requested = [kind for kind in config.getoption("db").split(",") if kind] or list(EVERY_KIND)
    if unknown := sorted(set(requested) - set(KNOWN_KINDS)):
        raise pytest.UsageError(f"--db: unknown kind {', '.join(unknown)}; known: {', '.join(KNOWN_KINDS)}")
    lacking = {kind: reason for kind in requested if kind in STARTERS and (reason := missing(kind))}
    needed = TOOLS.keys() - (set() if config.getoption("all") else EXTENSIVE_TOOLS)
    without = {marker: reason for marker in sorted(needed) if (reason := missing_tool(marker))}
    if in_ci() and (lacking or without):
        raise pytest.UsageError(
            "XXL_TEST_REQUIRE=all, but " + "; ".join([*lacking.values(), *without.values()])
        )
    config.stash[kinds_key] = [kind for kind in requested if kind not in lacking]
    config.stash[left_out_key] = [
        *(f"tests on {kind}: {reason}" for kind, reason in lacking.items()),
        *(f"tests on {kind}: not named by --db" for kind in EVERY_KIND if kind not in requested),
        *(f"{marker} tests: {reason}" for marker, reason in without.items()),
    ]
    if not config.getoption("all"):
        config.stash[left_out_key].append("extensive tests and further databases: see make test-all")
    names_files = config.args_source is pytest.Config.ArgsSource.ARGS
    is_short = not (in_ci() or config.getoption("all") or names_files)
    worker_input = getattr(config, "workerinput", {"workerid": "one", "servers": {}, "is_short": is_short})
    config.stash[is_short_key] = worker_input["is_short"]
    if config.stash[is_short_key]:
        config.stash[left_out_key].append("long tests, which CI runs: name their files, or see make test-all")
    # otherwise each program started by tests compiles the sources again: 0.5 s of CPU time
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    config.stash[databases_key] = Databases(
        worker_input["workerid"], {kind: Server(url) for kind, url in worker_input["servers"].items()}
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return two workers a processor (pytest -n logical): tests of real processes mostly wait."""
    return 2 * (os.cpu_count() or 1)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: object) -> None:
    """Start one server of each kind for all workers (pytest -n), in the process that starts them."""
    config = node.config  # type: ignore[attr-defined]
    servers = {
        kind: config.stash[databases_key].server(kind).url
        for kind in config.stash[kinds_key]
        if kind in STARTERS
    }
    node.workerinput["servers"] = servers  # type: ignore[attr-defined]
    node.workerinput["is_short"] = config.stash[is_short_key]  # type: ignore[attr-defined]


def pytest_unconfigure(config: pytest.Config) -> None:
    if databases_key in config.stash:
        config.stash[databases_key].close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "database_kind" in metafunc.fixturenames:
        every = metafunc.config.getoption("all") or bool(metafunc.config.getoption("db"))
        kinds = kinds_for(metafunc.definition, every=every)
        metafunc.parametrize(
            "database_kind", [kind for kind in metafunc.config.stash[kinds_key] if kind in kinds]
        )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("all"):
        is_short = config.stash[is_short_key]
        left_out = {
            item
            for item in items
            if item.get_closest_marker("extensive") or (is_short and is_long(item.path))
        }
        if not config.getoption("db"):
            left_out |= elsewhere_shown(item for item in items if item not in left_out)
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]
    for item in items:
        if RERUNS and (in_ci() or layer_of(item.path) in FOREIGN_LAYERS):
            item.add_marker(pytest.mark.flaky(reruns=RERUNS))
    if hasattr(config, "workerinput"):
        items.sort(key=weight, reverse=True)
    for marker in TOOLS:
        reason = missing_tool(marker)
        for item in items if reason else ():
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason))


def pytest_report_collectionfinish(items: list[pytest.Item]) -> str:
    return forecast((item.nodeid for item in items), 1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: list[str]) -> None:
    """Print the forecast once, in the process that starts the workers."""
    if node.config.stash.get(forecast_key, ""):
        return
    node.config.stash[forecast_key] = forecast(ids, len(node.config.option.tx))
    node.config.get_terminal_writer().line("\n" + node.config.stash[forecast_key])


def pytest_collection_finish(session: pytest.Session) -> None:
    """Freeze all imports: a full collection stops every thread for up to a second."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], 1_000_000)


def pytest_runtest_logfinish() -> None:
    """Collect garbage after every 25th test; freeze the remaining long-lived objects."""
    if next(_finished) % COLLECTED_EVERY == 0:
        gc.collect()
        gc.freeze()


def weight(item: pytest.Item) -> int:
    """Workers that share the tests (pytest -n) run the longest first, so that none waits in the end.

    Tests on the running ``site`` of tests/security come after them together, so that few workers start one.
    """
    layer = layer_of(item.path)
    if layer in LONG_LAYERS:
        return LONG_LAYERS.index(layer) + 2
    return int("site" in getattr(item, "fixturenames", ()))


#: characters of the end of the error of a test that was run again
RERUN_REASON_MAX = 3_000


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    lines = config.stash.get(left_out_key, [])
    if lines:
        terminalreporter.section("left out", sep="-")
    for line in lines:
        terminalreporter.line(f"left out: {line}")
    reruns = terminalreporter.stats.get("rerun", [])
    if reruns:
        terminalreporter.section(f"why {len(reruns)} tests were run again", sep="-")
    for report in reruns:
        terminalreporter.line(f"{report.nodeid} ({report.when}): {report.longreprtext[-RERUN_REASON_MAX:]}")


def missing_tool(marker: str) -> str | None:
    """Return the missing program of tests with this marker, if any."""
    for names in TOOLS[marker]:
        # Debian keeps servers in /usr/sbin, off the PATH of users
        if not any(shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin") for name in names):
            return f"{names[0]} is not installed"
    return None


@pytest.fixture
def real_hasher(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the product's hasher, for tests of the cost of a hash."""
    monkeypatch.setattr(passwords, "_hasher", REAL_HASHER)


@pytest.fixture
def empty_database(request: pytest.FixtureRequest, database_kind: str) -> str:
    """The URL of a new database without a table, for tests of migrations."""
    return request.config.stash[databases_key].empty(database_kind)


@pytest.fixture
def engine(empty_database: str) -> Iterator[Engine]:
    """An engine of the empty database, which a test may also bind."""
    made = create_engine(empty_database, poolclass=NullPool)
    yield made
    unbind_engine()
    made.dispose()


@pytest.fixture
def database_url(request: pytest.FixtureRequest, database_kind: str) -> str:
    """The URL of an empty migrated database."""
    return request.config.stash[databases_key].migrated(database_kind)


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("homes")


@pytest.fixture
def config(database_url: str, homes: Path) -> Config:
    """Settings of a program on the test's database, with a home of its own, which does not exist yet."""
    return Config(home=homes / str(next(_homes)), database_url=database_url, time_zone=TIME_ZONE)


@pytest.fixture
def database(config: Config) -> Iterator[str]:
    """An empty migrated database that ``session_scope`` works on; the value is its URL."""
    bind_engine(config, kept_engine(url=config.database_url, **engine_options(config)))
    current_book.reset()
    yield config.database_url
    unbind_engine()


@pytest.fixture(autouse=True)
def no_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the refusals of earlier tests, which would only be counted."""
    monkeypatch.setattr(refusals, "recorder", refusals.Recorder())


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a page show at once what a test has changed."""
    monkeypatch.setattr(AnswerCache, "is_on", False)
    monkeypatch.setattr(current_book, "CHECK_S", 0)


@pytest.fixture
def session(database: str) -> Iterator[Session]:
    """A writing session for tests that need only one; committed at the end."""
    with session_scope() as opened:
        yield opened


@pytest.fixture
def hook() -> Iterator[FakeExecutor]:
    """A webhook that answers with success."""
    with FakeExecutor() as server:
        yield server
