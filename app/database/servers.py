"""Server connections: session set-up, liveness check and reset without extra round trips.

SQLAlchemy's pool asks the server whether a connection still works before each use, and sends a ROLLBACK after
each. Both are round trips, as many as a small transaction has statements. Here a connection that worked a
moment ago is used without asking, unless its socket shows that the server has ended it; and only a
transaction that is still open is rolled back. The connection used last is used first, so that few are busy,
whose prepared statements and caches are warm.
"""

import select
import time
from typing import Any
from weakref import WeakSet

from sqlalchemy import URL, Connection, Dialect, Engine, NullPool, create_engine, event, make_url
from sqlalchemy.exc import InvalidatePoolError

from app.database import answer_deadline, mysql_drivers
from app.database.driver import rows_of, run
from app.database.list_parameters import register_with_psycopg
from app.database.server_checks import require_suitable
from app.database.urls import prepare_threshold
from app.settings.config import Config

#: a connection that was not used for so long, in seconds, is checked before it is used
CHECK_AFTER_S = 1.0
#: seconds for which a connection is kept
RECYCLE_S = 1_800
#: libpq: a server that is gone without a word, as after a power failure, is noticed after 60 s, not hours
_KEEPALIVES = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
#: libpq takes the encoding from the environment or the role
_ENCODING = {"client_encoding": "utf8"}
#: errors of psycopg that are states of the database: what fails with them is tried again, not dropped
_KINDS = dict.fromkeys(
    ("ReadOnlySqlTransaction", "IdleInTransactionSessionTimeout", "TransactionTimeout"), "OperationalError"
)
#: PostgreSQL's default of a random page, which is that of a hard disk, and an SSD's, which replaces it
_PAGE_COSTS = ("4", "1.1")
#: longest wait for a lock, in seconds, the default of MySQL; it ends before the wait for an answer does
LOCK_WAIT_S = 50.0
_LOCK_SHARE = 0.8
#: key of the time at which a connection was used last, in what the pool keeps of it
_USED_AT = "used at"
#: key of whether a pooler is in front of the server
_POOLED = "pooled"


def server_options(config: Config) -> dict[str, Any]:
    """Return the options of ``create_engine`` for a server; ``watch`` completes them."""
    connect: dict[str, Any] = {"connect_timeout": 5}
    url = make_url(config.database_url)
    if url.get_backend_name() == "mysql":
        waits = dict.fromkeys(("read_timeout", "write_timeout"), config.database_answer_s)
        connect |= waits | {"conv": mysql_drivers.conversions(url.get_driver_name())}
    else:
        register_with_psycopg()
        # ``app.database.list_parameters`` writes UTF-8
        connect |= _KEEPALIVES | _ENCODING | {"tcp_user_timeout": 60_000}
        prepares = config.database_prepare
        connect["prepare_threshold"] = prepare_threshold(config.database_url) if prepares else None
    return {
        "isolation_level": "READ COMMITTED",
        "pool_recycle": RECYCLE_S,
        "pool_use_lifo": True,
        "pool_reset_on_return": None,
        "connect_args": connect,
    }


def plain_engine(url: URL | str) -> Engine:
    """Return an engine without a pool, also for SQLite: each connection is closed after use.

    Its statements wait for an answer as long as it takes, and none is prepared.
    """
    is_postgresql = make_url(url).get_backend_name() == "postgresql"
    connect: dict[str, Any] = _ENCODING | {"prepare_threshold": None} if is_postgresql else {}
    return create_engine(url, poolclass=NullPool, connect_args=connect)


def _setting(name: str, default: str, value: str, *, is_local: bool) -> str:
    """Return the call that replaces a default of PostgreSQL, in a SELECT."""
    replaced = f"set_config('{name}', '{value}', {str(is_local).lower()})"
    return f"CASE WHEN current_setting('{name}', true) = '{default}' THEN {replaced} END"


class _Connections:
    """What is known of the connections of an engine."""

    def __init__(self, dialect: Dialect, answer_s: float) -> None:
        self._dialect = dialect
        self._answer_s = answer_s
        self._lock_wait_s = min(LOCK_WAIT_S, answer_s * _LOCK_SHARE)
        #: when a connection was found to be lost: those used before may be lost too
        self._lost_at = 0.0

    def open(self, _dialect: Any, _record: Any, args: list[Any], parameters: dict[str, Any]) -> Any:
        """Open a connection of PostgreSQL; those of MySQL have time-outs among their parameters."""
        return answer_deadline.connect(*args, answer_s=self._answer_s, **parameters)

    def set_up(self, connection: Any, record: Any) -> None:
        """Let the server use the index for a list of ids, and end each wait for a lock.

        MariaDB would join a list of 1,000 or more, and so read, and lock, all rows of a table that is not
        much longer. PostgreSQL's default cost of a random page is that of a hard disk: for 100 jobs of 5,000
        it would read all. A transaction that an operator left open must not stop a loop without a word. An
        unsuitable server is refused before SQLAlchemy, which parses its version, sees it.
        """
        if self._dialect.name == "postgresql":
            version, process = connection.execute("SELECT version(), pg_backend_pid()").fetchone()
            require_suitable(version)
            record.info[_POOLED] = process != connection.info.backend_pid
            if not record.info[_POOLED]:  # else it would stay behind, for another client of the pooler
                connection.execute(self._settings(is_local=False))
            connection.commit()  # a ROLLBACK would undo it
            return
        version = connection.get_server_info()
        require_suitable(version)
        names = ("innodb_lock_wait_timeout", "lock_wait_timeout")
        settings = [f"{name} = LEAST(@@{name}, {max(self._lock_wait_s, 1):.0f})" for name in names]
        if "mariadb" in version.lower():
            settings.append("in_predicate_conversion_threshold = 0")
        with connection.cursor() as cursor:
            cursor.execute(f"SET SESSION {', '.join(settings)}")

    def begin(self, connection: Connection) -> None:
        """Set up a transaction through a pooler, whose server process may be new to this connection."""
        raw: Any = connection.connection.driver_connection
        if not connection.info.get(_POOLED) or raw.autocommit:
            return
        run(connection, self._settings(is_local=True), (), rows_of)

    def _settings(self, *, is_local: bool) -> str:
        """Return the statement that replaces defaults of PostgreSQL, for a session or a transaction."""
        wait = f"{self._lock_wait_s * 1000:.0f}ms"
        return (
            f"SELECT {_setting('random_page_cost', *_PAGE_COSTS, is_local=is_local)},"
            f" {_setting('lock_timeout', '0', wait, is_local=is_local)}"
        )

    def check(self, connection: Any, record: Any, _proxy: Any) -> None:
        """Check a connection that may be lost; if it is, all are replaced."""
        used_at = record.info.get(_USED_AT)
        if used_at is None:  # just opened
            return
        if used_at <= self._lost_at:  # a check would wait for the answer of a server that hangs
            raise InvalidatePoolError
        if time.monotonic() - used_at < CHECK_AFTER_S and self._is_quiet(connection):
            return
        try:
            self._dialect.do_ping(connection)
        except self._dialect.loaded_dbapi.Error as exc:
            raise InvalidatePoolError from exc

    def _is_quiet(self, connection: Any) -> bool:
        """Whether a connection is open, and the server has sent nothing unasked, such as its end."""
        is_mysql = self._dialect.name == "mysql"
        is_open = connection.open if is_mysql else not connection.closed
        if not is_open:
            return False
        news = select.poll()
        news.register(mysql_drivers.socket_of(connection) if is_mysql else connection, select.POLLIN)
        return not news.poll(0)

    def end(self, connection: Any, record: Any, _state: Any) -> None:
        """Roll back what is still open; psycopg sends nothing if that is nothing.

        If that fails, as on a node of Galera without a quorum, the pool opens another connection, and what
        had failed before has been reported.
        """
        try:
            if self._dialect.name != "mysql" or mysql_drivers.may_have_transaction(connection):
                self._dialect.do_rollback(connection)
        except self._dialect.loaded_dbapi.Error as exc:
            if record is None:
                raise
            record.invalidate(exc)
            return
        if record is not None:  # it stays in the pool
            record.info[_USED_AT] = time.monotonic()

    def note_lost(self, _connection: Any, _record: Any, _error: Any) -> None:
        """Trust no connection that was used before."""
        self._lost_at = time.monotonic()


_watched: WeakSet[Engine] = WeakSet()


def watch(engine: Engine, answer_s: float) -> None:
    """Set up, check and end a server's connections, and sort its errors; once, and not for SQLite."""
    if engine.dialect.name == "sqlite" or engine in _watched:
        return
    _watched.add(engine)
    engine.dialect.dbapi_exception_translation_map = _KINDS
    connections = _Connections(engine.dialect, answer_s)
    if engine.dialect.name == "postgresql":
        event.listen(engine, "do_connect", connections.open)
        event.listen(engine, "begin", connections.begin)
    event.listen(engine, "connect", connections.set_up, insert=True)
    event.listen(engine, "checkout", connections.check)
    event.listen(engine, "reset", connections.end)
    event.listen(engine, "invalidate", connections.note_lost)
