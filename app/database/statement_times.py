"""Statement times: metrics of durations, and a log of slow statements."""

import logging
import time
from typing import Any

from sqlalchemy import Connection, Engine, ExceptionContext, event

from app.runtime.metrics import STATEMENT_DURATION

logger = logging.getLogger(__name__)

#: key of the time at which a statement was started, in what a connection keeps
_START_KEY = "statement_started"


class _Limit:
    """Seconds above which a statement of this process is logged."""

    slow_s = float("inf")


limit = _Limit()


def watch(engine: Engine) -> None:
    """Measure the statements of an engine; does nothing the second time."""
    if not event.contains(engine, "before_cursor_execute", _note_start):
        event.listen(engine, "before_cursor_execute", _note_start)
        event.listen(engine, "after_cursor_execute", _note_end)
        event.listen(engine, "handle_error", _note_error)


def _observe(connection: Connection, sql: str) -> None:
    """Count the statement that a connection has started, and log it if it was slow."""
    started_s = connection.info.pop(_START_KEY, None)
    if started_s is None:
        return
    took_s = time.monotonic() - started_s
    STATEMENT_DURATION.observe(took_s)
    if took_s > limit.slow_s:
        logger.warning("statement slow took_ms=%d sql=%s", took_s * 1000, " ".join(sql.split())[:200])


def _note_start(
    connection: Connection, _cursor: Any, _sql: str, _parameters: Any, context: Any, _many: bool
) -> None:
    connection.info[_START_KEY] = time.monotonic()


def _note_end(
    connection: Connection, _cursor: Any, sql: str, _parameters: Any, context: Any, _many: bool
) -> None:
    _observe(connection, sql)


def _note_error(context: ExceptionContext) -> None:
    # Without an execution context nothing was sent, and the connection may be gone.
    if context.execution_context is not None and context.connection is not None:
        _observe(context.connection, context.statement or "")
