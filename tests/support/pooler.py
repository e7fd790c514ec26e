"""PgBouncer in front of a PostgreSQL server of the tests, on a free port."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import NullPool, create_engine, make_url
from sqlalchemy.exc import SQLAlchemyError

from tests.acceptance.programs import free_port
from tests.support.databases import USERS
from tests.support.eventually import eventually

#: environment variable with the path of another PgBouncer, such as a newer one
PROGRAM = "XXL_TEST_PGBOUNCER"


def program() -> str:
    """Return the path of PgBouncer."""
    path = os.environ.get(PROGRAM) or shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    assert path is not None
    return path


def can_follow_statements() -> bool:
    """Whether this PgBouncer has the setting ``max_prepared_statements``."""
    text = subprocess.run([program(), "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"(\d+)\.(\d+)", text)
    assert version is not None
    return (int(version[1]), int(version[2])) >= (1, 21)


@contextmanager
def pooler(
    url: str, folder: Path, *, mode: str, follows_statements: bool = False, **settings: object
) -> Iterator[str]:
    """Start a pooler with a pool mode; yield the URL of the same database through it."""
    server, port = make_url(url), free_port()
    values: dict[str, object] = {"listen_addr": "127.0.0.1", "listen_port": port, "unix_socket_dir": ""}
    values |= {"pool_mode": mode, "auth_type": "any", "default_pool_size": 30, **settings}
    if can_follow_statements():
        values["max_prepared_statements"] = 100 if follows_statements else 0
    lines = ["[databases]", f"* = host={server.host} port={server.port} user={server.username}"]
    lines += ["[pgbouncer]", *(f"{name} = {value}" for name, value in values.items()), ""]
    # PgBouncer does not run as root, and its user cannot enter the folders of the tests
    with (folder / "pgbouncer.ini").open("w+", encoding="utf-8") as file:
        file.write("\n".join(lines))
        file.seek(0)
        process = subprocess.Popen(
            [program(), "-q", "/dev/stdin"],
            stdin=file,
            stderr=subprocess.DEVNULL,
            user=USERS["postgresql"] if os.geteuid() == 0 else None,
        )
    pooled = server.set(port=port).render_as_string(hide_password=False)
    try:
        eventually(lambda: _answers(pooled), message="the pooler answers")
        yield pooled
    finally:
        process.kill()  # newer ones wait at SIGTERM until all clients have left
        process.wait()


def _answers(url: str) -> bool:
    engine = create_engine(url, poolclass=NullPool, connect_args={"prepare_threshold": None})
    try:
        with engine.connect():
            return True
    except SQLAlchemyError:
        return False
