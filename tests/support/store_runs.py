"""Helpers of the tests of store runs, for all that need them."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import event
from sqlalchemy.orm import Session


def plan(session: Session, ask: Callable[[Session], object]) -> list[str]:
    """Return SQLite's query plans of a store function."""
    connection, seen = session.connection(), list[tuple[str, Any]]()

    def keep(_connection: object, _cursor: object, statement: str, parameters: Any, *_rest: object) -> None:
        seen.append((statement, parameters))

    event.listen(connection, "before_cursor_execute", keep)
    ask(session)
    event.remove(connection, "before_cursor_execute", keep)
    ((statement, parameters),) = seen
    return [row.detail for row in connection.exec_driver_sql("EXPLAIN QUERY PLAN " + statement, parameters)]
