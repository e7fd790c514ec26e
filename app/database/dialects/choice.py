"""Choice of the dialect: the implementation for the database of a URL, session or engine."""

from typing import Final

from sqlalchemy import Connection, Engine, NullPool, create_engine, make_url
from sqlalchemy.engine import URL
from sqlalchemy.orm import Session

from app.database.dialects.base import Dialect
from app.database.dialects.mysql import MySql
from app.database.dialects.postgresql import PostgreSql
from app.database.dialects.sqlite import Sqlite

_DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (Sqlite(), MySql(), PostgreSql())}


#: what SQLAlchemy connects with
_BINDS: Final = (Connection, Engine)


def dialect_of(database: Session | Connection | Engine) -> Dialect:
    """Return the dialect of a session, a connection or an engine; MariaDB has that of MySQL."""
    bind = database if isinstance(database, _BINDS) else database.get_bind()
    return _DIALECTS[bind.dialect.name]


def dialect_of_url(url: str | URL) -> Dialect:
    """Return the dialect of the database at a URL."""
    return _DIALECTS[make_url(url).get_backend_name()]


def plain_engine(url: str | URL) -> Engine:
    """Return an engine without a pool: each connection is closed after use.

    Its statements wait for an answer as long as it takes.
    """
    arguments = dict(dialect_of_url(url).plain_arguments)
    return create_engine(url, poolclass=NullPool, connect_args=arguments)
