"""Columns of another width than the models': as users have changed them in adopted databases."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import text

from app.database.engine import session_scope

ALTER = {"mysql": "ALTER TABLE {} MODIFY {} {}", "postgresql": "ALTER TABLE {} ALTER COLUMN {} TYPE {}"}


@contextmanager
def changed_column(table: str, column: str, kind: str, *, back: str) -> Iterator[None]:
    """Give a column another type during the block; the rows of its table are deleted at the end."""

    def alter(to: str) -> None:
        with session_scope() as session:
            session.execute(text(ALTER[session.get_bind().dialect.name].format(table, column, to)))

    alter(kind)
    try:
        yield
    finally:
        with session_scope() as session:
            session.execute(text(f"DELETE FROM {table}"))
        alter(back)
