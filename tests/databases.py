"""Private MariaDB and PostgreSQL servers for tests and benches: own directory, own port on 127.0.0.1, no system service.

    with start_mariadb(directory, durable=False) as server:
        url = server.create_database("one")

``directory`` is created; no folder above it may be closed to others where this runs as root, because the servers refuse root and
are then started as ``mysql`` and ``postgres``.
"""

import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg
import pymysql

#: seconds a server may take to answer after its start, and to end
START_S = 60
STOP_S = 30
#: a free port may be taken between its choice and the server's start
PORT_ATTEMPTS = 3
MARIADB_USER = "mysql"
POSTGRESQL_USER = "postgres"
#: what is lost when the machine dies may be lost: it is a test
FAST_MARIADB = ("--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0", "--innodb-flush-method=nosync", "--sync-frm=0")
FAST_POSTGRESQL = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


class ServerMissing(Exception):
    """The programs of a database server are not installed; the text names the package."""


class ServerFailed(Exception):
    """A server did not start; the text holds the end of its log."""


@dataclass(frozen=True)
class Server:
    """A running server. Use it as a context manager, or call ``stop``."""

    #: SQLAlchemy URL with ``{}`` where the name of a database goes
    url: str
    process: subprocess.Popen[bytes]
    #: the signal after which it closes its files and ends at once, whoever is connected
    stop_signal: signal.Signals
    execute: Callable[[str], None]
    create_options: str

    def create_database(self, name: str) -> str:
        """Create an empty database and return its URL."""
        self.execute(f"CREATE DATABASE {name} {self.create_options}")
        return self.url.format(name)

    def drop_database(self, name: str) -> None:
        """Remove a database nobody is connected to."""
        self.execute(f"DROP DATABASE IF EXISTS {name}")

    def stop(self) -> None:
        """End the server; done twice it does nothing."""
        if self.process.poll() is None:
            self.process.send_signal(self.stop_signal)
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


def start_mariadb(directory: Path, *, durable: bool, options: Sequence[str] = ()) -> Server:
    """Start MariaDB with its data in ``directory``; raises ServerMissing or ServerFailed.

    ``durable``: every commit is on the disk, as in production; otherwise as fast as it goes. ``options``: more for ``mariadbd``.
    """
    install, daemon = _program("mariadb-install-db", "mariadb-server"), _program("mariadbd", "mariadb-server")
    user = _unprivileged(MARIADB_USER)
    _make_directory(directory, user)
    data = directory / "data"
    common = ["--no-defaults", f"--datadir={data}"]
    small = ["--innodb-log-file-size=32M", "--innodb-buffer-pool-size=128M"]
    _run([install, *common, *small, "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"], directory, user)
    local = [f"--socket={directory}/socket", f"--pid-file={directory}/pid", "--bind-address=127.0.0.1", "--skip-name-resolve"]
    text = ["--character-set-server=utf8mb4", "--collation-server=utf8mb4_unicode_ci", "--skip-log-bin", "--max-connections=500"]
    speed = () if durable else FAST_MARIADB

    def connect(port: int) -> pymysql.Connection:
        return pymysql.connect(host="127.0.0.1", port=port, user="root", connect_timeout=5, autocommit=True)

    def execute(port: int, sql: str) -> None:
        with connect(port) as connection, connection.cursor() as cursor:
            cursor.execute(sql)

    def command(port: int) -> list[str]:
        return [daemon, *common, *small, *local, f"--port={port}", *text, *speed, *options]

    process, port = _start(command, directory, user, lambda port: execute(port, "SELECT 1"))
    url = f"mysql+pymysql://root@127.0.0.1:{port}/{{}}?charset=utf8mb4"
    return Server(url, process, signal.SIGTERM, lambda sql: execute(port, sql), "CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci")


def start_postgresql(directory: Path, *, durable: bool, options: Sequence[str] = ()) -> Server:
    """Start PostgreSQL with its data in ``directory``; raises ServerMissing or ServerFailed. ``options``: more ``name=value``."""
    initdb, daemon = _program("initdb", "postgresql"), _program("postgres", "postgresql")
    user = _unprivileged(POSTGRESQL_USER)
    _make_directory(directory, user)
    data = directory / "data"
    created = ["-U", "xxl_job", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"]
    _run([initdb, "-D", str(data), *created], directory, user)
    settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=300", *options]
    settings += () if durable else FAST_POSTGRESQL

    def execute(port: int, sql: str) -> None:
        url = f"postgresql://xxl_job@127.0.0.1:{port}/postgres?connect_timeout=5"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(sql.encode())

    def command(port: int) -> list[str]:
        return [daemon, "-D", str(data), "-p", str(port), *(part for setting in settings for part in ("-c", setting))]

    process, port = _start(command, directory, user, lambda port: execute(port, "SELECT 1"))
    url = f"postgresql+psycopg://xxl_job@127.0.0.1:{port}/{{}}"
    return Server(url, process, signal.SIGINT, lambda sql: execute(port, sql), "TEMPLATE template0")


@contextmanager
def temporary_directory() -> Iterator[Path]:
    """Yield a new folder the servers can reach also when this runs as root; removed at the end."""
    with tempfile.TemporaryDirectory(prefix="xxl-job-databases-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o711)
        yield Path(name)


def _program(name: str, package: str) -> str:
    debian = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: float(path.parts[4]), reverse=True)
    found = [str(path) for path in debian] + [path for path in (shutil.which(name), shutil.which(name, path="/usr/sbin:/sbin")) if path]
    if not found:
        raise ServerMissing(f"{name} is not installed (Debian: apt install {package})")
    return found[0]


def _unprivileged(user: str) -> str | None:
    """Return the user to drop to where this runs as root, else None."""
    if os.geteuid() != 0:
        return None
    try:
        pwd.getpwnam(user)
    except KeyError as exc:
        raise ServerMissing(f"this runs as root and there is no user {user} to run the server as") from exc
    return user


def _make_directory(directory: Path, user: str | None) -> None:
    directory.mkdir(parents=True)
    if user:
        shutil.chown(directory, user, pwd.getpwnam(user).pw_gid)


def _popen(command: list[str], directory: Path, user: str | None) -> subprocess.Popen[bytes]:
    with (directory / "log").open("ab") as log:
        return subprocess.Popen(
            command,
            cwd=directory,
            env={**os.environ, "LC_ALL": "C", "TZ": "UTC"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is ours to handle: the tests finish before their database goes
            preexec_fn=_end_with_parent,
            user=user,
            group=pwd.getpwnam(user).pw_gid if user else None,
            extra_groups=[] if user else None,
        )


def _end_with_parent() -> None:
    """In the server's process, before it begins: be told to stop when the tests are killed (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def _run(command: list[str], directory: Path, user: str | None) -> None:
    if _popen(command, directory, user).wait() != 0:
        raise ServerFailed(_account(command[0], directory))


def _start(
    command: Callable[[int], list[str]], directory: Path, user: str | None, probe: Callable[[int], None]
) -> tuple[subprocess.Popen[bytes], int]:
    """Start a server on a free port and return when it answers."""
    for _attempt in range(PORT_ATTEMPTS):
        port = _free_port()
        process = _popen(command(port), directory, user)
        try:
            _await(process, lambda port=port: probe(port))  # type: ignore[misc]
        except BaseException:
            process.kill()
            process.wait()
            raise
        if process.poll() is None:
            return process, port
    raise ServerFailed(_account(command(0)[0], directory))


def _await(process: subprocess.Popen[bytes], probe: Callable[[], None]) -> None:
    """Return when the server answers or has ended."""
    deadline = time.monotonic() + START_S
    while process.poll() is None:
        try:
            return probe()
        except (pymysql.Error, psycopg.Error) as exc:
            if time.monotonic() > deadline:
                raise ServerFailed(f"{process.args!r} did not answer within {START_S} s: {exc}") from exc
        time.sleep(0.02)
    return None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _account(program: str, directory: Path) -> str:
    return f"{program} failed:\n" + "\n".join((directory / "log").read_text(errors="replace").splitlines()[-20:])
