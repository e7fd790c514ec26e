"""Whole tables of the program: names, row counts and removal; for backup, restore and promotion.

Works on connections, because the schema may be older than that of the models, or empty.
"""

import secrets
from collections.abc import Collection, Sequence

from sqlalchemy import Connection, func, inspect, select, table, text
from sqlalchemy.engine import URL

from app.clock import Millis
from app.database.dialects.choice import dialect_of
from app.models.node import NODE_DEAD_MS
from app.store.copies.schema import VERSION_TABLE
from app.store.copies.upgrade_lock import TABLE_WAIT_S

PREFIX = "xxl_job_"
LOG = "xxl_job_log"
#: names after the prefix of all tables that the migrations create; the last line: which they drop again
_NAMES = """
after alarm apply arrival audit backfill backfill_instant blackout blackout_job calendar calendar_version
channel channel_scope check day drain favourite fire group group_day idempotency incident incident_message
info last_seen limit limit_use lock log log_archive log_archive_day log_report logglue managed mute node
promise registry right round rule_change seal session setting skip span start_page tag task task_line throttle
token user variable variable_version version view
once seen
"""
OWN = frozenset(PREFIX + name for name in _NAMES.split())
#: names of scratch databases end so and with a number, so that rights can be granted for them
SCRATCH = "_check_"
#: characters of the name of the database in that of the scratch database; MySQL allows 64 in all
NAME_MAX = 48
_CREATE_VERSION = f"CREATE TABLE IF NOT EXISTS {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"
_DELETE_VERSION = f"DELETE FROM {VERSION_TABLE}"  # nosec B608
#: values of the columns of a run that have no default
_RUN = {"job_group": 0, "job_id": 0, "trigger_code": 0, "handle_code": 0}


def own_tables(connection: Connection, also: Collection[str] = ()) -> list[str]:
    """Return the names of this program's tables, but for Alembic's, in order; not of others with its prefix.

    ``also``: further names that are taken for its own, such as those in a backup.
    """
    return sorted(OWN.union(also).intersection(inspect(connection).get_table_names()))


def other_tables(connection: Connection, also: Collection[str]) -> list[str]:
    """Return the names of the other tables with this program's prefix, in order; for ``also`` see above."""
    names = {name for name in inspect(connection).get_table_names() if name.startswith(PREFIX)}
    return sorted(names - OWN.union(also))


def namespace_of(connection: Connection) -> str:
    """Return the PostgreSQL schema of the tables; empty for other databases."""
    statement = dialect_of(connection).namespace_statement
    return str(connection.scalar(text(statement)) or "") if statement is not None else ""


def count_rows(connection: Connection, tables: list[str]) -> dict[str, int]:
    """Return table -> number of rows."""
    return {name: connection.scalar(select(func.count()).select_from(table(name))) or 0 for name in tables}


def live_nodes(connection: Connection, *, now_ms: Millis) -> list[str]:
    """Return the nodes with a heartbeat within NODE_DEAD_MS, as ``name (kind)``."""
    if not inspect(connection).has_table("xxl_job_node"):
        return []
    query = text("SELECT name, kind FROM xxl_job_node WHERE heartbeat_ms >= :since ORDER BY name, kind")
    rows = connection.execute(query, {"since": now_ms - NODE_DEAD_MS})
    return [f"{name} ({kind})" for name, kind in rows]


def other_sessions(connection: Connection) -> int:
    """Return how many other connections the user of this one has to the database of a server."""
    statement = dialect_of(connection).other_sessions_statement
    count = connection.scalar(text(statement)) or 0 if statement is not None else 0
    connection.rollback()  # PostgreSQL shows one state for the length of a transaction
    return int(count)


def drop_all(connection: Connection, names: Sequence[str]) -> None:
    """Remove tables; while another session uses one of them, MySQL and MariaDB remove none."""
    for statement in _dropping(connection, names):
        connection.exec_driver_sql(statement)


def _dropping(connection: Connection, names: Sequence[str]) -> list[str]:
    name_list = ", ".join(_quote(connection, name) for name in names)
    return [f"DROP TABLE {name_list}"] if names else []


def replacing(connection: Connection, names: Sequence[str], revision: str) -> list[str]:
    """Return the statements before a dump, in its transaction, that remove tables and set the revision.

    Of PostgreSQL. No one can read the revision until that transaction has ended, so that no program starts.
    """
    limit = dialect_of(connection).table_wait_limit(TABLE_WAIT_S)
    return [
        "SET client_min_messages = warning",
        *filter(None, [limit]),
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
    return max(highest, dialect_of(connection).last_id(connection, LOG))


def skip_log_ids(connection: Connection, count: int, *, beyond: int = 0) -> int:
    """Leave out ``count`` ids of runs, and all up to ``beyond``; return the next one.

    The caller commits; PostgreSQL does not take it back.
    """
    last = max(last_log_id(connection), beyond) + count
    dialect_of(connection).skip_ids(connection, LOG, last, _RUN)
    return int(last) + 1


def create_scratch(connection: Connection) -> URL:
    """Create an empty database beside the connection's and return its URL; raises DBAPIError without rights.

    The connection commits each statement.
    """
    url = connection.engine.url
    name = f"{(url.database or '')[:NAME_MAX]}{SCRATCH}{secrets.token_hex(4)}"
    options = dialect_of(connection).create_options
    connection.exec_driver_sql(f"CREATE DATABASE {_quote(connection, name)}{options}")
    return url.set(database=name)


def drop_scratch(connection: Connection, url: URL) -> None:
    """Remove a scratch database."""
    connection.exec_driver_sql(f"DROP DATABASE {_quote(connection, url.database or '')}")


def create_namespace(connection: Connection, name: str) -> None:
    """Create a PostgreSQL schema unless there is one."""
    connection.exec_driver_sql(f"CREATE SCHEMA IF NOT EXISTS {_quote(connection, name)}")


def _quote(connection: Connection, name: str) -> str:
    return connection.dialect.identifier_preparer.quote_identifier(name)
