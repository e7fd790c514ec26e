"""Connections of a database server: how they are opened, and what the pool does not ask it again.

SQLAlchemy's pool asks the server whether a connection still works before each use, and sends a ROLLBACK after
each. Both are round trips, as many as a small transaction has statements. Here a connection that worked a
moment ago is used without asking, unless its socket shows that the server has ended it; and only a
transaction that is still open is rolled back. The connection used last is used first, so that few are busy,
whose prepared statements and caches are warm.
"""

import select
import time
from datetime import datetime
from functools import cache
from typing import Any
from weakref import WeakSet

from sqlalchemy import URL, Connection, Dialect, Engine, NullPool, create_engine, event, make_url, text
from sqlalchemy.exc import InvalidatePoolError

from app.errors import NotConfigured
from app.parameter_lists import mysql_encoders, register_with_psycopg

#: a connection that was not used for so long, in seconds, is checked before it is used
CHECK_AFTER_S = 1.0
#: seconds for which a connection is kept
RECYCLE_S = 1_800
#: libpq: a server that is gone without a word, as after a power failure, is noticed after 60 s, not hours
_KEEPALIVES = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
#: libpq takes the encoding from the environment or the role
_ENCODING = {"client_encoding": "utf8"}
#: MySQL's flag of an open transaction, in the status that comes with its answers
_IN_TRANSACTION = 1
#: errors of psycopg that are states of the database: what fails with them is tried again, not dropped
_KINDS = dict.fromkeys(
    ("ReadOnlySqlTransaction", "IdleInTransactionSessionTimeout", "TransactionTimeout"), "OperationalError"
)
#: PostgreSQL: settings of a session, each with the server's default, which it replaces. A random page costs
#: what it does on an SSD; a lock is waited for as long as MySQL does, not for ever
_SETTINGS = {"random_page_cost": ("4", "1.1"), "lock_timeout": ("0", "50s")}
_NAMES = {"mysql": "MySQL", "postgresql": "PostgreSQL"}
#: oldest versions with what the scheduler needs: SKIP LOCKED, on MariaDB RETURNING
_OLDEST = {"MySQL": (8, 0), "MariaDB": (10, 6), "PostgreSQL": (12, 0)}
#: key of the time at which a connection was used last, in what the pool keeps of it
_USED_AT = "used at"


def server_options(backend: str) -> dict[str, Any]:
    """Return the options of ``create_engine`` for a server; ``watch`` completes them."""
    connect: dict[str, Any] = {"connect_timeout": 5}
    if backend == "mysql":
        connect |= {"read_timeout": 60, "write_timeout": 60, "conv": _mysql_conversions()}
    else:
        register_with_psycopg()
        # ``app.parameter_lists`` writes UTF-8
        connect |= _KEEPALIVES | _ENCODING | {"tcp_user_timeout": 60_000}
    return {
        "isolation_level": "READ COMMITTED",
        "pool_recycle": RECYCLE_S,
        "pool_use_lifo": True,
        "pool_reset_on_return": None,
        "connect_args": connect,
    }


def plain_engine(url: URL | str) -> Engine:
    """Return an engine without a pool, also for SQLite: each connection is closed after use."""
    encoding = _ENCODING if make_url(url).get_backend_name() == "postgresql" else {}
    return create_engine(url, poolclass=NullPool, connect_args=encoding)


def require_usable(connection: Connection) -> None:
    """Raise NotConfigured if a server is too old, or a PostgreSQL database lacks characters."""
    dialect = connection.dialect
    name = "MariaDB" if getattr(dialect, "is_mariadb", False) else _NAMES.get(dialect.name, "")
    version, oldest = dialect.server_version_info or (), _OLDEST.get(name, ())
    if version < oldest:
        found, needed = (".".join(map(str, numbers)) for numbers in (version, oldest))
        raise NotConfigured(f"{name} {found} is too old, expected {needed} or later")
    if dialect.name == "postgresql":
        _require_utf8(connection)


def _require_utf8(connection: Connection) -> None:
    encoding = connection.scalar(text("SHOW server_encoding"))
    if encoding != "UTF8":
        raise NotConfigured(
            f"the database has the encoding {encoding}, expected UTF8; create it so:"
            " CREATE DATABASE xxl_job OWNER xxl_job ENCODING 'UTF8' TEMPLATE template0"
        )


@cache
def _mysql_conversions() -> dict[Any, Any]:
    """Return PyMySQL's conversions with a DATETIME of our own: theirs takes ten times as long.

    A value that is no date, such as 0000-00-00, is read as NULL; PyMySQL returns its text.
    """
    from pymysql import converters  # here: other databases need no PyMySQL
    from pymysql.constants import FIELD_TYPE

    def read_datetime(text: str) -> datetime | None:
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            return None

    dates = dict.fromkeys((FIELD_TYPE.DATETIME, FIELD_TYPE.TIMESTAMP), read_datetime)
    return converters.conversions | dates | mysql_encoders()


def _setting_statement() -> str:
    """Return the statement that replaces the server's defaults."""
    return " UNION ALL ".join(
        f"SELECT set_config('{name}', '{ours}', false) WHERE current_setting('{name}', true) = '{default}'"
        for name, (default, ours) in _SETTINGS.items()
    )


class _Connections:
    """What is known of the connections of an engine."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        #: when a connection was found to be lost: those used before may be lost too
        self._lost_at = 0.0

    def set_up(self, connection: Any, _record: Any) -> None:
        """Let the server use the index for a list of ids, and end each wait for a lock.

        MariaDB would join a list of 1,000 or more, and so read, and lock, all rows of a table that is not
        much longer. PostgreSQL's default cost of a random page is that of a hard disk: for 100 jobs of 5,000
        it would read all. A transaction that an operator left open must not stop a loop without a word.
        """
        if self._dialect.name == "postgresql":
            connection.execute(_setting_statement())
            connection.commit()  # a ROLLBACK would undo it
        elif "mariadb" in connection.get_server_info().lower():
            with connection.cursor() as cursor:
                cursor.execute("SET SESSION in_predicate_conversion_threshold = 0")

    def check(self, connection: Any, record: Any, _proxy: Any) -> None:
        """Check a connection that may be lost; if it is, all are replaced."""
        used_at = record.info.get(_USED_AT)
        if used_at is None:  # just opened
            return
        is_trusted = used_at > self._lost_at and time.monotonic() - used_at < CHECK_AFTER_S
        if is_trusted and self._is_quiet(connection):
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
        news.register(connection._sock if is_mysql else connection, select.POLLIN)
        return not news.poll(0)

    def end(self, connection: Any, record: Any, _state: Any) -> None:
        """Roll back what is still open; psycopg sends nothing if that is nothing."""
        if self._dialect.name != "mysql" or connection.server_status & _IN_TRANSACTION:
            self._dialect.do_rollback(connection)
        if record is not None:  # it stays in the pool
            record.info[_USED_AT] = time.monotonic()

    def note_lost(self, _connection: Any, _record: Any, _error: Any) -> None:
        """Trust no connection that was used before."""
        self._lost_at = time.monotonic()


_watched: WeakSet[Engine] = WeakSet()


def watch(engine: Engine) -> None:
    """Set up, check and end a server's connections, and sort its errors; once, and not for SQLite."""
    if engine.dialect.name == "sqlite" or engine in _watched:
        return
    _watched.add(engine)
    engine.dialect.dbapi_exception_translation_map = _KINDS
    connections = _Connections(engine.dialect)
    event.listen(engine, "connect", connections.set_up)
    event.listen(engine, "checkout", connections.check)
    event.listen(engine, "reset", connections.end)
    event.listen(engine, "invalidate", connections.note_lost)
