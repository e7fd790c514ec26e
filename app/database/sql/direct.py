"""Hot statements of a session, executed by the driver past SQLAlchemy's compiler."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.database.driver import Values, count_of, fetch_rows, rows_of, run
from app.database.sql.compilation import Statement, compile_statement


def read(session: Session, statement: Statement, parameters: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
    """Return the rows of a statement made once; the list of ``among`` is the parameter WANTED."""
    session.flush()
    text = compile_statement(statement, session.get_bind().dialect)
    return text.to_python(execute(session, text.sql, text.values(parameters)))


def change(session: Session, statement: Statement, parameters: Mapping[str, Any]) -> int:
    """Execute an UPDATE or DELETE made once; return how many rows it changed."""
    text = compile_statement(statement, session.get_bind().dialect)
    return change_text(session, text.sql, text.values(parameters))


def execute(session: Session, sql: str, values: Values) -> Sequence[Sequence[Any]]:
    """Execute a statement; return its rows."""
    return run(session.connection(), sql, values, rows_of)


def execute_literal(session: Session, sql: str, log_text: str) -> Sequence[Sequence[Any]]:
    """Execute a statement whose text has all values; return its rows.

    ``log_text``: for logs, errors and listeners, which cannot change the statement.
    """

    def rows_of_text(cursor: Any, _log_text: str, _none: Values) -> Sequence[Sequence[Any]]:
        cursor.execute(sql)
        return fetch_rows(cursor)

    return run(session.connection(), log_text, (), rows_of_text)


def change_text(session: Session, sql: str, values: Values) -> int:
    """Execute an INSERT, UPDATE or DELETE; return how many rows it changed."""
    return run(session.connection(), sql, values, count_of)


def execute_many(session: Session, sql: str, rows: Sequence[Sequence[Any]]) -> None:
    """Execute an INSERT or UPDATE once for each row of parameters; for SQLite only."""
    run(
        session.connection(),
        sql,
        rows,
        lambda cursor, text, values: cursor.executemany(text, values),
        many=True,
    )
