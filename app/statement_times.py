"""Statement times: counts how long statements take, and logs slow ones."""

import logging
import time
from typing import Any

from sqlalchemy import Connection, Engine, event

from app.metrics import STATEMENT_DURATION

logger = logging.getLogger(__name__)


class _Limit:
    """Seconds above which a statement of this process is logged."""

    slow_s = float("inf")


limit = _Limit()


def watch(engine: Engine) -> None:
    """Measure the statements of an engine; does nothing the second time."""
    if not event.contains(engine, "before_cursor_execute", _note_start):
        event.listen(engine, "before_cursor_execute", _note_start)
        event.listen(engine, "after_cursor_execute", _note_end)


def observe(took_s: float, sql: str) -> None:
    """Count a statement, and log a slow one."""
    STATEMENT_DURATION.observe(took_s)
    if took_s > limit.slow_s:
        logger.warning("statement slow took_ms=%d sql=%s", took_s * 1000, " ".join(sql.split())[:200])


def _note_start(
    connection: Connection, _cursor: Any, _sql: str, _parameters: Any, context: Any, _many: bool
) -> None:
    connection.info["statement_started"] = time.monotonic()


def _note_end(
    connection: Connection, _cursor: Any, sql: str, _parameters: Any, context: Any, _many: bool
) -> None:
    observe(time.monotonic() - connection.info.get("statement_started", time.monotonic()), sql)
