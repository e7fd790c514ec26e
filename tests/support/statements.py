"""Recorder of SQL statements."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, event


@contextmanager
def statements() -> Iterator[list[str]]:
    """Collect the statements that any engine executes."""
    executed: list[str] = []

    def record(_connection: Any, _cursor: Any, sql: str, *_rest: Any) -> None:
        executed.append(sql)

    event.listen(Engine, "before_cursor_execute", record)
    try:
        yield executed
    finally:
        event.remove(Engine, "before_cursor_execute", record)
