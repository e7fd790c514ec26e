"""Whole tables: which there are, their rows, removing them all; for backup, restore and promotion.

Works on connections, because the schema may be older than that of the models, or empty.
"""

import secrets
from collections.abc import Collection, Sequence

from sqlalchemy import Connection, func, inspect, select, table, text
from sqlalchemy.engine import URL

from app.clock import Millis
from app.models.node import NODE_DEAD_MS
from app.store.copies.schema import VERSION_TABLE
from app.store.copies.upgrade_lock import table_wait_limit

PREFIX = "xxl_job_"
LOG = "xxl_job_log"
#: names after the prefix of all tables that the migrations create; the last line: which they drop again
_NAMES = """
alarm apply audit channel channel_scope drain favourite fire group group_day idempotency info last_seen lock
log log_report logglue managed mute node registry right session skip start_page tag task task_line throttle
token user version view
once seen
"""
OWN = frozenset(PREFIX + name for name in _NAMES.split())
#: names of scratch databases end so and with a number, so that rights can be granted for them
SCRATCH = "_check_"
#: characters of the name of the database in that of the scratch database; MySQL allows 64 in all
NAME_MAX = 48
_CREATE_VERSION = f"CREATE TABLE IF NOT EXISTS {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"
_DELETE_VERSION = f"DELETE FROM {VERSION_TABLE}"  # nosec B608
_OTHER_SESSIONS = {
    "mysql": "SELECT COUNT(*) FROM information_schema.processlist"
    " WHERE db = DATABASE() AND id <> CONNECTION_ID() AND user = SUBSTRING_INDEX(USER(), '@', 1)",
    "postgresql": "SELECT COUNT(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid() AND usename = session_user",
}


def own_tables(connection: Connection, also: Collection[str] = ()) -> list[str]:
    """Return the names of this program's tables, but for Alembic's, in order; not of others with its prefix.

    ``also``: further names that are taken for its own, such as those in a backup.
    """
    return sorted(OWN.union(also).intersection(inspect(connection).get_table_names()))


def other_tables(connection: Connection, also: Collection[str]) -> list[str]:
    """Return the names of the other tables with this program's prefix, in order; for ``also`` see above."""
    named = {name for name in inspect(connection).get_table_names() if name.startswith(PREFIX)}
    return sorted(named - OWN.union(also))


def is_mysql(connection: Connection) -> bool:
    """Return whether the server is MySQL, not MariaDB."""
    return connection.dialect.name == "mysql" and not getattr(connection.dialect, "is_mariadb", False)


def namespace_of(connection: Connection) -> str:
    """Return the PostgreSQL schema of the tables; empty for other databases."""
    if connection.dialect.name != "postgresql":
        return ""
    return str(connection.scalar(text("SELECT current_schema()")) or "")


def count_rows(connection: Connection, tables: list[str]) -> dict[str, int]:
    """Return table -> number of rows."""
    return {name: connection.scalar(select(func.count()).select_from(table(name))) or 0 for name in tables}


def live_nodes(connection: Connection, *, now_ms: Millis) -> list[str]:
    """Return the nodes with a heartbeat within NODE_DEAD_MS, as ``name (kind)``."""
    if not inspect(connection).has_table("xxl_job_node"):
        return []
    found = text("SELECT name, kind FROM xxl_job_node WHERE heartbeat_ms >= :since ORDER BY name, kind")
    rows = connection.execute(found, {"since": now_ms - NODE_DEAD_MS})
    return [f"{name} ({kind})" for name, kind in rows]


def other_sessions(connection: Connection) -> int:
    """Return how many other connections the user of this one has to the database of a server."""
    found = connection.scalar(text(_OTHER_SESSIONS[connection.dialect.name])) or 0
    connection.rollback()  # PostgreSQL shows one state for the length of a transaction
    return int(found)


def drop_all(connection: Connection, names: Sequence[str]) -> None:
    """Remove tables; while another session uses one of them, MySQL and MariaDB remove none."""
    for statement in _dropping(connection, names):
        connection.exec_driver_sql(statement)


def _dropping(connection: Connection, names: Sequence[str]) -> list[str]:
    quoted = ", ".join(_quoted(connection, name) for name in names)
    return [f"DROP TABLE {quoted}"] if names else []


def replacing(connection: Connection, names: Sequence[str], revision: str) -> list[str]:
    """Return the statements before a dump, in its transaction, that remove tables and set the revision.

    Of PostgreSQL. No one can read the revision until that transaction has ended, so that no program starts.
    """
    return [
        "SET client_min_messages = warning",
        table_wait_limit("postgresql"),
        _CREATE_VERSION,
        f"LOCK TABLE {VERSION_TABLE}",
        _DELETE_VERSION,
        f"INSERT INTO {VERSION_TABLE} (version_num) VALUES ('{revision}')",  # nosec B608
        *_dropping(connection, names),
    ]


def stamp(connection: Connection, revision: str | None) -> None:
    """Set the revision of the schema, also in a database without one; None: none."""
    connection.execute(text(_CREATE_VERSION))
    connection.execute(text(_DELETE_VERSION))
    if revision is not None:
        insert = text(f"INSERT INTO {VERSION_TABLE} (version_num) VALUES (:revision)")  # nosec B608
        connection.execute(insert, {"revision": revision})


def last_log_id(connection: Connection) -> int:
    """Return the highest id of a run that was given, also of those that are deleted."""
    highest = connection.scalar(text(f"SELECT max(id) FROM {LOG}")) or 0  # nosec B608
    kind = connection.dialect.name
    if kind == "sqlite":
        used = connection.scalar(text("SELECT seq FROM sqlite_sequence WHERE name = :name"), {"name": LOG})
    elif kind == "postgresql":
        sequence = connection.scalar(text("SELECT pg_get_serial_sequence(:name, 'id')"), {"name": LOG})
        used = connection.scalar(text(f"SELECT last_value FROM {sequence}"))  # nosec B608
    else:
        if is_mysql(connection):  # MySQL shows numbers of up to a day ago
            connection.execute(text("SET SESSION information_schema_stats_expiry = 0"))
        following = connection.scalar(
            text(
                "SELECT auto_increment FROM information_schema.tables"
                " WHERE table_schema = database() AND table_name = :name"
            ),
            {"name": LOG},
        )
        used = (following or 1) - 1
    return max(highest, used or 0)


def skip_log_ids(connection: Connection, count: int, *, beyond: int = 0) -> int:
    """Leave out ``count`` ids of runs, and all up to ``beyond``; return the next one.

    The caller commits; PostgreSQL does not take it back.
    """
    last = max(last_log_id(connection), beyond) + count
    kind = connection.dialect.name
    if kind == "sqlite":
        connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), {"name": LOG})
        insert = text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :last)")
        connection.execute(insert, {"name": LOG, "last": last})
    elif kind == "postgresql":
        sequence = connection.scalar(text("SELECT pg_get_serial_sequence(:name, 'id')"), {"name": LOG})
        connection.execute(text("SELECT setval(:sequence, :last)"), {"sequence": sequence, "last": last})
    else:  # a row that is deleted at once: ALTER TABLE would end the transaction
        columns = "id, job_group, job_id, trigger_code, handle_code"
        connection.execute(text(f"INSERT INTO {LOG} ({columns}) VALUES (:last, 0, 0, 0, 0)"), {"last": last})  # nosec B608
        connection.execute(text(f"DELETE FROM {LOG} WHERE id = :last"), {"last": last})  # nosec B608
    return int(last) + 1


def create_scratch(connection: Connection) -> URL:
    """Create an empty database beside the connection's and return its URL; raises DBAPIError without rights.

    The connection commits each statement.
    """
    url = connection.engine.url
    name = f"{(url.database or '')[:NAME_MAX]}{SCRATCH}{secrets.token_hex(4)}"
    is_mysql = connection.dialect.name == "mysql"
    options = " CHARACTER SET utf8mb4" if is_mysql else " ENCODING 'UTF8' TEMPLATE template0"
    connection.exec_driver_sql(f"CREATE DATABASE {_quoted(connection, name)}{options}")
    return url.set(database=name)


def drop_scratch(connection: Connection, url: URL) -> None:
    """Remove a scratch database."""
    connection.exec_driver_sql(f"DROP DATABASE {_quoted(connection, url.database or '')}")


def create_namespace(connection: Connection, name: str) -> None:
    """Create a PostgreSQL schema unless there is one."""
    connection.exec_driver_sql(f"CREATE SCHEMA IF NOT EXISTS {_quoted(connection, name)}")


def _quoted(connection: Connection, name: str) -> str:
    return connection.dialect.identifier_preparer.quote_identifier(name)
