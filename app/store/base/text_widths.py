"""Widths of text columns in the database; those of adopted tables may differ from the models'."""

from collections.abc import Mapping
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine, text
from sqlalchemy.orm import Session

from app.database.dialects.choice import dialect_of
from app.domain.runs.log_copies import UNLIMITED, Width
from app.models.base import Base

#: column -> width of those with one
Widths = Mapping[str, Width]

#: by table; a column that is widened later is seen at the next start
_WIDTHS: WeakKeyDictionary[Engine | Connection, dict[str, Widths]] = WeakKeyDictionary()


def width_of(session: Session, model: type[Base], column: str) -> Width:
    """Return the width of a column, which is read once by each process."""
    widths_by_table, table = _WIDTHS.setdefault(session.get_bind(), {}), model.__tablename__
    if table not in widths_by_table:
        widths_by_table[table] = find_widths(session, table)
    return widths_by_table[table].get(column, UNLIMITED)


def find_widths(session: Session, table: str) -> Widths:
    """Return the widths of the text columns of a table; SQLite has none."""
    schema = dialect_of(session).own_schema
    if schema is None:
        return {}
    columns = text(
        "SELECT column_name, character_maximum_length, character_octet_length"
        f" FROM information_schema.columns WHERE table_schema = {schema}"  # nosec B608
        " AND table_name = :table AND character_maximum_length IS NOT NULL"
    )
    rows = session.connection().execute(columns, {"table": table})
    return {name: Width(int(characters), int(octets)) for name, characters, octets in rows}


def find_attributes(session: Session, table: str, column: str) -> str:
    """Return what MODIFY of MySQL needs besides the type of a text column, to leave the rest as it is.

    Empty for PostgreSQL, which changes the type alone. A default is not among it: these columns have none.
    """
    if not dialect_of(session).replaces_attributes:
        return ""
    attributes = text(
        "SELECT character_set_name, collation_name, is_nullable, column_comment"
        " FROM information_schema.columns WHERE table_schema = DATABASE()"
        " AND table_name = :table AND column_name = :column"
    )
    names = {"table": table, "column": column}
    charset, collation, nullable, comment = session.connection().execute(attributes, names).one()
    not_null = "" if nullable == "YES" else " NOT NULL"
    comment_text = f" COMMENT '{_escape(comment)}'" if comment else ""
    return f" CHARACTER SET {charset} COLLATE {collation}{not_null}{comment_text}"


def _escape(comment: str) -> str:
    return comment.replace("\\", "\\\\").replace("'", "''")
