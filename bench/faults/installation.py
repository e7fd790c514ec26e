"""Installation of one scenario: a database and the programs on it, stopped at the end."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from tests.acceptance.cluster import Cluster
from tests.acceptance.database_server import DatabaseServer
from tests.support.databases import migrate, temporary_directory


class CannotRun(Exception):
    """The machine lacks something a scenario needs; the text names it."""


class NotInstalled(Exception):
    """A package that only one scenario needs is not installed; the text names it."""


def clock_ms() -> int:
    return time.time_ns() // 1_000_000


@contextlib.contextmanager
def database(kind: str, folder: Path) -> Iterator[tuple[str, DatabaseServer | None]]:
    """Create a durable, empty database."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'xxl_job.db'}", None
        return
    with temporary_directory() as data:
        server = DatabaseServer(kind, data)
        try:
            yield server.server.create_database("xxl_job"), server
        finally:
            server.stop()


@contextlib.contextmanager
def installation(kind: str, folder: Path, **settings: str) -> Iterator[Cluster]:
    """Create a database of the newest schema; yield a cluster on it and stop its programs in the end."""
    with database(kind, folder) as (url, _):
        migrate(url)
        cluster = Cluster(folder, url, settings)
        try:
            yield cluster
        finally:
            cluster.programs.stop_all()
