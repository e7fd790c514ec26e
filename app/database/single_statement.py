"""Single-statement transactions for the polling loops.

The statement goes to the driver without a session, which would take several times as long. Statements are
built once, with ``bindparam`` for their variable values.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import CompoundSelect, Engine, Select, Update
from sqlalchemy.exc import DBAPIError

from app.database.dialects.choice import dialect_of
from app.database.driver import Values, Work, count_of, rows_of, run
from app.database.engine import bound_engine, is_transient, lost_connection, transact
from app.database.sql.compilation import compile_statement

T = TypeVar("T")
Parameters = Mapping[str, Any]
Query = Select[Any] | CompoundSelect[Any]


def read(statement: Query, parameters: Parameters) -> Sequence[Sequence[Any]]:
    """Return the rows of a statement."""
    try:
        return _read(bound_engine(), statement, parameters)
    except DBAPIError as exc:  # The server was restarted, or the database has moved.
        if not is_transient(exc) and not lost_connection(exc):
            raise
    return _read(bound_engine(), statement, parameters)


def _read(engine: Engine, statement: Query, parameters: Parameters) -> Sequence[Sequence[Any]]:
    text = compile_statement(statement, engine.dialect)
    work = _transaction(engine, rows_of, is_writing=False)
    with engine.connect() as connection:
        return text.to_python(run(connection, text.sql, text.values(parameters), work))


def write(statement: Update, parameters: Parameters) -> int:
    """Execute a statement and commit; return how many rows it changed. Waits for other writers.

    It is repeated if the connection is lost, even at the commit: the second time must change nothing else.
    """
    try:
        return _write(bound_engine(), statement, parameters)
    except DBAPIError as exc:
        if not is_transient(exc) and not lost_connection(exc):
            raise
    return transact(lambda session: session.connection().execute(statement, parameters).rowcount)


def _write(engine: Engine, statement: Update, parameters: Parameters) -> int:
    text = compile_statement(statement, engine.dialect)
    work = _transaction(engine, count_of, is_writing=True)
    with engine.connect() as connection:
        return run(connection, text.sql, text.values(parameters), work)


def _transaction(engine: Engine, work: Work[T], *, is_writing: bool) -> Work[T]:
    """Return the work of a driver as a transaction."""
    dialect = dialect_of(engine)

    def execute(cursor: Any, sql: str, values: Values) -> T:
        with dialect.single_transaction(cursor.connection, is_writing=is_writing):
            return work(cursor, sql, values)

    return execute
