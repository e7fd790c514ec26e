"""Checks of a database server before it is used: product, version, encoding, pooler."""

import re

from sqlalchemy import Connection, text

from app.database.poolers import Pooling, find_pooling, is_pooled
from app.errors import NotConfigured

_NAMES = {"mysql": "MySQL", "postgresql": "PostgreSQL"}
#: oldest versions with what the scheduler needs: SKIP LOCKED, on MariaDB RETURNING
_OLDEST = {"MySQL": (8, 0), "MariaDB": (10, 6), "PostgreSQL": (12, 0)}
#: products that pass for MySQL or PostgreSQL, by a word of their version -> what they lack
_UNSUITABLE = {
    "TiDB": "it accepts SKIP LOCKED and locks nothing, so that two nodes would send the same run",
    "CockroachDB": "its advisory locks have no effect, so that two upgrades would run at once",
}
_USABLE = "MySQL, MariaDB or PostgreSQL"
_PREPARE = (
    "a pooler in transaction mode mixes up the prepared statements of its clients; set"
    " XXL_JOB_DATABASE_PREPARE=false, or use its session mode, or PgBouncer 1.21 or later with"
    " max_prepared_statements"
)
_SESSION = (
    "a pooler in transaction mode is in front of PostgreSQL, and this needs a connection of its own; run it"
    " with the address of the server, or of a pooler in session mode, in XXL_JOB_DATABASE_URL"
)


def require_suitable(version: str) -> None:
    """Raise NotConfigured for the version text of a server whose locks cannot be relied on.

    ``"8.0.11-TiDB-v8.5.6"``
    """
    for product, reason in _UNSUITABLE.items():
        if re.search(rf"\b{product}\b", version, re.IGNORECASE):
            raise NotConfigured(f"{product} ({version[:40]}) is not supported: {reason}; use {_USABLE}")


def require_usable(connection: Connection) -> None:
    """Raise NotConfigured if a server or the pooler in front of it is of no use; opens further connections.

    The server is too old, no product that can be used, or a PostgreSQL database that lacks characters.
    """
    dialect = connection.dialect
    name = "MariaDB" if getattr(dialect, "is_mariadb", False) else _NAMES.get(dialect.name, "")
    version, oldest = dialect.server_version_info or (), _OLDEST.get(name, ())
    if dialect.name == "mysql":
        require_suitable(connection.scalar(text("SELECT CONCAT(VERSION(), ' ', @@version_comment)")) or "")
    if version < oldest:
        found, needed = (".".join(map(str, numbers)) for numbers in (version, oldest))
        raise NotConfigured(f"{name} {found} is too old, expected {needed} or later")
    if dialect.name == "postgresql":
        _require_utf8(connection)
        _require_own_statements(connection)


def require_session(connection: Connection) -> None:
    """Raise NotConfigured if the next transaction of a connection may have another server process."""
    if _pooling(connection) is not Pooling.NONE:
        raise NotConfigured(_SESSION)


def _require_own_statements(connection: Connection) -> None:
    raw = connection.connection.driver_connection
    if getattr(raw, "prepare_threshold", None) is not None and _pooling(connection) is Pooling.MIXED:
        raise NotConfigured(_PREPARE)


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
