"""Connections of PostgreSQL: options of psycopg, and the set-up of a session, also behind a pooler."""

from typing import Any

from sqlalchemy import Connection, Engine, event, make_url, text

from app.database.connections import answer_deadline, servers
from app.database.connections.poolers import Pooling, find_pooling, is_pooled
from app.database.connections.server_checks import require_suitable, require_version
from app.database.driver import rows_of, run
from app.database.list_parameters import register_with_psycopg
from app.errors import NotConfigured
from app.settings.config import Config

#: how often psycopg executes a statement before it prepares it
PREPARE_AFTER = 5
#: libpq: a server that is gone without a word, as after a power failure, is noticed after 60 s, not hours
_KEEPALIVES = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
#: libpq takes the encoding from the environment or the role; ``app.database.list_parameters`` writes UTF-8
_ENCODING = {"client_encoding": "utf8"}
#: arguments of psycopg for connections that are closed after use: none of their statements is prepared
PLAIN_ARGUMENTS = _ENCODING | {"prepare_threshold": None}
#: errors of psycopg that are states of the database: what fails with them is tried again, not dropped
_KINDS = dict.fromkeys(
    ("ReadOnlySqlTransaction", "IdleInTransactionSessionTimeout", "TransactionTimeout"), "OperationalError"
)
#: PostgreSQL's default of a random page, which is that of a hard disk, and an SSD's, which replaces it
_PAGE_COSTS = ("4", "1.1")
#: key of whether a pooler is in front of the server, in what the pool keeps of a connection
_POOL_KEY = "pooled"
_PREPARE = (
    "a pooler in transaction mode mixes up the prepared statements of its clients; set"
    " XXL_JOB_DATABASE_PREPARE=false, or use its session mode, or PgBouncer 1.21 or later with"
    " max_prepared_statements"
)
_SESSION = (
    "a pooler in transaction mode is in front of PostgreSQL, and this needs a connection of its own; run it"
    " with the address of the server, or of a pooler in session mode, in XXL_JOB_DATABASE_URL"
)


def driver_arguments(config: Config) -> dict[str, Any]:
    """Return arguments of psycopg, which writes lists as arrays from then on."""
    register_with_psycopg()
    connect = {"connect_timeout": servers.CONNECT_S, "tcp_user_timeout": 60_000} | _KEEPALIVES | _ENCODING
    return connect | {"prepare_threshold": _prepare_threshold(config)}


def _prepare_threshold(config: Config) -> int | None:
    """Return after how many executions psycopg prepares a statement; None: it never does."""
    value = str(make_url(config.database_url).query.get("prepare_threshold", PREPARE_AFTER))
    return int(value) if config.database_prepare and value.lower() != "none" else None


def require_usable(connection: Connection) -> None:
    """Raise NotConfigured if the server, its database or the pooler in front of it is of no use.

    Opens further connections.
    """
    require_version("PostgreSQL", connection.dialect.server_version_info)
    _require_utf8(connection)
    raw = connection.connection.driver_connection
    if getattr(raw, "prepare_threshold", None) is not None and _pooling(connection) is Pooling.MIXED:
        raise NotConfigured(_PREPARE)


def require_session(connection: Connection) -> None:
    """Raise NotConfigured if the next transaction of a connection may have another server process."""
    if _pooling(connection) is not Pooling.NONE:
        raise NotConfigured(_SESSION)


def _pooling(connection: Connection) -> Pooling:
    if not is_pooled(connection):
        return Pooling.NONE
    try:
        return find_pooling(connection.engine)
    except connection.dialect.loaded_dbapi.Error as exc:
        reason = " ".join(str(exc).split())
        raise NotConfigured(
            f"a pooler is in front of PostgreSQL, which refuses two connections: {reason}"
        ) from exc


def _require_utf8(connection: Connection) -> None:
    encoding = connection.scalar(text("SHOW server_encoding"))
    if encoding != "UTF8":
        raise NotConfigured(
            f"the database has the encoding {encoding}, expected UTF8; create it so:"
            " CREATE DATABASE xxl_job OWNER xxl_job ENCODING 'UTF8' TEMPLATE template0"
        )


class PostgreSqlConnections(servers.ServerConnections):
    """Connections of psycopg."""

    def watch(self, engine: Engine) -> None:
        """Open connections with a deadline, and set up transactions through a pooler."""
        engine.dialect.dbapi_exception_translation_map = _KINDS
        event.listen(engine, "do_connect", self.open)
        event.listen(engine, "begin", self.begin)
        super().watch(engine)

    def open(self, _dialect: Any, _record: Any, args: list[Any], parameters: dict[str, Any]) -> Any:
        """Open a connection whose commands get an answer in time, or end."""
        return answer_deadline.connect(*args, answer_s=self.answer_s, **parameters)

    def set_up(self, connection: Any, record: Any) -> None:
        """Limit waits for locks, and let the server use the index for a list of ids.

        Its default cost of a random page is that of a hard disk: for 100 jobs of 5,000 it would read all.
        """
        version, process = connection.execute("SELECT version(), pg_backend_pid()").fetchone()
        require_suitable(version)
        record.info[_POOL_KEY] = process != connection.info.backend_pid
        if not record.info[_POOL_KEY]:  # Through a pooler another client would inherit the settings.
            connection.execute(self._settings(is_local=False))
        connection.commit()  # A ROLLBACK would undo the settings.

    def begin(self, connection: Connection) -> None:
        """Set up a transaction through a pooler, whose server process may be new to this connection."""
        raw: Any = connection.connection.driver_connection
        if connection.info.get(_POOL_KEY) and not raw.autocommit:
            run(connection, self._settings(is_local=True), (), rows_of)

    def _settings(self, *, is_local: bool) -> str:
        """Return the statement that replaces defaults of the server, for a session or a transaction."""
        wait = f"{self.lock_wait_s * 1000:.0f}ms"
        return (
            f"SELECT {_setting('random_page_cost', *_PAGE_COSTS, is_local=is_local)},"
            f" {_setting('lock_timeout', '0', wait, is_local=is_local)}"
        )

    def readable(self, connection: Any) -> Any:
        """Return the connection, which has the number of its socket."""
        return None if connection.closed else connection

    def may_have_transaction(self, connection: Any) -> bool:
        """Whether to call psycopg's rollback, which sends nothing without a transaction."""
        return True


def _setting(name: str, default: str, value: str, *, is_local: bool) -> str:
    """Return the call that replaces a default, in a SELECT."""
    call = f"set_config('{name}', '{value}', {str(is_local).lower()})"
    return f"CASE WHEN current_setting('{name}', true) = '{default}' THEN {call} END"
