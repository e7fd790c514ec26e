"""Private MariaDB, MySQL and PostgreSQL servers for tests and benchmarks: own directory and port, no service.

    with start_mariadb(directory, durable=False) as server:
        url = server.create_database("one")
        migrate(url)

``directory`` is created. As root the servers run as ``mysql`` and ``postgres``, so all parent folders must be
accessible to them.
"""

import os
import pwd
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from alembic.command import upgrade
from alembic.config import Config as AlembicConfig
from sqlalchemy import NullPool, create_engine, make_url
from sqlalchemy.exc import SQLAlchemyError

from app.runtime.program import end_with_parent

ROOT = Path(__file__).resolve().parents[2]

#: seconds for a server to answer after its start, and to end
START_S = 60
STOP_S = 30
#: seconds the holder of a write lock waits for it
LOCK_WAIT_S = 30
#: a free port may be taken between its choice and the server's start
PORT_ATTEMPTS = 3
#: an in-memory file system, and the bytes that must be free there
MEMORY = Path("/dev/shm")
MEMORY_NEEDED = 2 * 1024**3
#: programs of a kind of server, its user when started as root, and the Debian package of both
PROGRAMS = {
    "mariadb": ("mariadb-install-db", "mariadbd"),
    "mysql": ("mysqld",),
    "postgresql": ("initdb", "postgres"),
}
USERS = {"mariadb": "mysql", "mysql": "mysql", "postgresql": "postgres"}
PACKAGES = {"mariadb": "mariadb-server", "mysql": "mysql-server", "postgresql": "postgresql"}
#: databases that always exist
SYSTEM_DATABASES = {"mysql": "mysql", "postgresql": "postgres"}
#: durability is not needed in tests
FAST_INNODB = ("--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0", "--innodb-flush-method=nosync")
FAST_MARIADB = (*FAST_INNODB, "--sync-frm=0", "--innodb-log-file-size=32M")
FAST_MYSQL = (*FAST_INNODB, "--innodb-redo-log-capacity=64M")
#: options of MariaDB and MySQL
MYSQL_OPTIONS = (
    "--bind-address=127.0.0.1",
    "--skip-name-resolve",
    "--character-set-server=utf8mb4",
    "--collation-server=utf8mb4_unicode_ci",
    "--skip-log-bin",
    "--max-connections=500",
)
MYSQL_ROOT = """\
CREATE USER IF NOT EXISTS root@127.0.0.1;
GRANT ALL ON *.* TO root@127.0.0.1 WITH GRANT OPTION;
"""
#: mysqldb: tests on MariaDB and MySQL use mysqlclient, which has to be installed
MYSQL_DRIVER = os.environ.get("XXL_TEST_MYSQL_DRIVER") or "pymysql"
#: PyMySQL reads all system certificates for each connection that could be encrypted: 18 ms
MYSQL_URL = f"mysql+{MYSQL_DRIVER}://root@127.0.0.1:{{port}}/{{}}?charset=utf8mb4" + (
    "&ssl_disabled=true" if MYSQL_DRIVER == "pymysql" else ""
)
FAST_POSTGRESQL = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


@contextmanager
def write_lock(url: str) -> Iterator[None]:
    """Hold the write lock of an SQLite database with a connection of its own."""
    other = sqlite3.connect(make_url(url).database or "", timeout=LOCK_WAIT_S, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        yield
    finally:
        other.close()


class ServerMissing(Exception):
    """The programs of a database server are not installed; the text names the package."""


class ServerFailed(Exception):
    """A server did not start; the text contains the end of its log."""


@dataclass(frozen=True)
class Server:
    """A running server. Use it as a context manager, or call ``stop``."""

    #: SQLAlchemy URL with ``{}`` for the name of a database
    url: str
    #: None: started and stopped by another process
    process: subprocess.Popen[bytes] | None = None

    def create_database(self, name: str) -> str:
        """Create an empty database and return its URL."""
        text = (
            " CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"
            if self.url.startswith("mysql")
            else " TEMPLATE template0"
        )
        self._execute(f"CREATE DATABASE {name}{text}")
        return self.url.format(name)

    def drop_database(self, name: str) -> None:
        """Remove a database without connections."""
        self._execute(f"DROP DATABASE IF EXISTS {name}")

    def _execute(self, sql: str) -> None:
        engine = create_engine(
            self.url.format(SYSTEM_DATABASES[self.url.partition("+")[0]]),
            isolation_level="AUTOCOMMIT",
            poolclass=NullPool,
        )
        with engine.connect() as connection:
            connection.exec_driver_sql(sql)

    def stop(self) -> None:
        """Stop the server; a second call does nothing."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT if self.url.startswith("postgresql") else signal.SIGTERM)
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def check(self) -> None:
        """Raise SQLAlchemyError if the server does not answer."""
        self._execute("SELECT 1")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def start_mariadb(directory: Path, *, durable: bool, options: Sequence[str] = ()) -> Server:
    """Start MariaDB with its data in ``directory``; raises ServerMissing or ServerFailed.

    ``durable``: commits are on disk and the redo log has its default size, as in production; otherwise as
    fast as possible. ``options``: further ones for ``mariadbd``.
    """
    install, daemon = _programs("mariadb")
    user = _unprivileged(USERS["mariadb"])
    _make_directory(directory, user)
    data = directory / "data"
    common = ["--no-defaults", f"--datadir={data}"]
    speed = () if durable else FAST_MARIADB
    _run(
        [
            install,
            *common,
            *speed,
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--skip-name-resolve",
        ],
        directory,
        user,
    )
    # a server that starts deletes what it takes for leftovers of an earlier one in the common folder
    local = [*_files_in(directory), f"--tmpdir={data}", *MYSQL_OPTIONS]

    def command_at(port: int) -> list[str]:
        return [daemon, *common, *local, f"--port={port}", *speed, *options]

    return _start(MYSQL_URL, command_at, directory, user)


def start_mysql(directory: Path, *, durable: bool, options: Sequence[str] = ()) -> Server:
    """Start MySQL with its data in ``directory``; raises ServerMissing or ServerFailed.

    ``options``: further ones for ``mysqld``.
    """
    (daemon,) = _programs("mysql")
    user = _unprivileged(USERS["mysql"])
    _make_directory(directory, user)
    common = ["--no-defaults", f"--datadir={directory / 'data'}", "--secure-file-priv="]
    _run([daemon, *common, "--initialize-insecure"], directory, user)
    grants = directory / "init.sql"  # its root may log in on the socket only
    grants.write_text(MYSQL_ROOT, encoding="utf-8")
    local = [*_files_in(directory), "--mysqlx=OFF", f"--init-file={grants}", *MYSQL_OPTIONS]
    speed = () if durable else FAST_MYSQL

    def command_at(port: int) -> list[str]:
        return [daemon, *common, *local, f"--port={port}", *speed, *options]

    return _start(MYSQL_URL, command_at, directory, user)


def _files_in(directory: Path) -> list[str]:
    return [f"--socket={directory}/socket", f"--pid-file={directory}/pid"]


def start_postgresql(directory: Path, *, durable: bool, options: Sequence[str] = ()) -> Server:
    """Start PostgreSQL with its data in ``directory``; raises ServerMissing or ServerFailed.

    ``options``: further ``name=value`` settings.
    """
    initdb, daemon = _programs("postgresql")
    user = _unprivileged(USERS["postgresql"])
    _make_directory(directory, user)
    data = directory / "data"
    created = ["-U", "xxl_job", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"]
    _run([initdb, "-D", str(data), *created], directory, user)
    settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=300", *options]
    settings += () if durable else FAST_POSTGRESQL

    def command_at(port: int) -> list[str]:
        return [
            daemon,
            "-D",
            str(data),
            "-p",
            str(port),
            *(part for setting in settings for part in ("-c", setting)),
        ]

    return _start("postgresql+psycopg://xxl_job@127.0.0.1:{port}/{}", command_at, directory, user)


#: start function of each kind of server
STARTERS: dict[str, Callable[..., Server]] = {
    "mariadb": start_mariadb,
    "mysql": start_mysql,
    "postgresql": start_postgresql,
}


def missing(kind: str) -> str | None:
    """Return why a kind of server cannot be started here, or None."""
    try:
        _programs(kind)
        _unprivileged(USERS[kind])
    except ServerMissing as exc:
        return str(exc)
    return None


def migrate(url: str) -> None:
    """Upgrade a database to the newest schema, as ``flask db upgrade`` does."""
    config = AlembicConfig(ROOT / "migrations" / "alembic.ini")
    config.attributes["url"] = url
    upgrade(config, "head")


def run_script(url: str, name: str) -> None:
    """Run a script of tests/data on an empty database."""
    script = (ROOT / "tests" / "data" / name).read_text(encoding="utf-8")
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        for statement in re.split(r";\n", script):
            if re.sub(r"--.*", "", statement).strip():
                connection.exec_driver_sql(statement.replace("%", "%%"))
    engine.dispose()


@contextmanager
def temporary_directory(*, in_memory: bool = False) -> Iterator[Path]:
    """Yield a new folder that the servers can access also if started as root; finally removed.

    ``in_memory``: in an in-memory file system, if it has space; tests mostly wait for the disk.
    """
    parent = (
        MEMORY if in_memory and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_NEEDED else None
    )
    with tempfile.TemporaryDirectory(
        prefix="xxl-job-databases-", dir=parent, ignore_cleanup_errors=True
    ) as name:
        Path(name).chmod(0o711)
        yield Path(name)


def _programs(kind: str) -> list[str]:
    """Return the paths of a kind's programs, newest version first: Debian keeps PostgreSQL's off PATH."""
    folders = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: float(folder.parent.name), reverse=True
    )
    search_path = os.pathsep.join([*map(str, folders), os.environ.get("PATH", ""), "/usr/sbin"])
    found = {name: shutil.which(name, path=search_path) for name in PROGRAMS[kind]}
    for name, path in found.items():
        if path is None:
            raise ServerMissing(f"{name} is not installed (Debian: apt install {PACKAGES[kind]})")
        if kind == "mysql" and _is_of_mariadb(path):
            raise ServerMissing(f"{path} is MariaDB's")
    return [path for path in found.values() if path]


def _is_of_mariadb(daemon: str) -> bool:
    ended = subprocess.run([daemon, "--no-defaults", "--version"], capture_output=True, check=False)
    return b"MariaDB" in ended.stdout


def _unprivileged(user: str) -> str | None:
    """Return the user to switch to if this runs as root, else None."""
    if os.geteuid() != 0:
        return None
    try:
        pwd.getpwnam(user)
    except KeyError as exc:
        raise ServerMissing(f"started as root, but there is no user {user} for the server") from exc
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
            start_new_session=True,  # Ctrl-C is handled here: the tests finish before their database stops
            preexec_fn=end_with_parent,
            user=user,
            group=pwd.getpwnam(user).pw_gid if user else None,
            extra_groups=[] if user else None,
        )


def _run(command: list[str], directory: Path, user: str | None) -> None:
    if _popen(command, directory, user).wait() != 0:
        raise ServerFailed(_account(command[0], directory))


def _start(url: str, command_at: Callable[[int], list[str]], directory: Path, user: str | None) -> Server:
    """Start a server on a free port and return when it answers."""
    for _attempt in range(PORT_ATTEMPTS):
        port = _free_port()
        server = Server(url.replace("{port}", str(port)), _popen(command_at(port), directory, user))
        try:
            if _answers(server):
                return server
        except BaseException:
            server.stop()
            raise
    raise ServerFailed(_account(command_at(0)[0], directory))


def _answers(server: Server) -> bool:
    """Wait until a server answers; False if it has ended."""
    deadline = time.monotonic() + START_S
    while server.process is not None and server.process.poll() is None:
        try:
            server.check()
            return True
        except SQLAlchemyError as exc:
            if time.monotonic() > deadline:
                raise ServerFailed(f"{server.url} did not answer within {START_S} s: {exc}") from exc
        time.sleep(0.02)
    return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _account(program: str, directory: Path) -> str:
    return f"{program} failed:\n" + "\n".join(
        (directory / "log").read_text(errors="replace").splitlines()[-20:]
    )
