"""Messages of runs for lists: only the parts that contain a reason.

A message has up to 65,535 bytes, and a list a hundred rows.
"""

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, case, func, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.database.rows import bulk
from app.database.sql.in_list import among
from app.domain.runs.reason import Messages
from app.models.log import JobLog

#: characters read of each end; the last line of a trace quotes an executor with up to 2,000
START, END = 600, 2_500


def find_messages(session: Session, log_ids: Collection[int]) -> dict[int, Messages]:
    """Return log id -> the parts of the messages of the runs that exist."""
    if not log_ids:
        return {}
    rows = bulk.read_among(session, _PARTS, sorted(log_ids))
    return {row[0]: Messages(row[1] or "", row[2] or "", row[3] or "") for row in rows}


def _end(column: "InstrumentedAttribute[str | None]") -> ColumnElement[Any]:
    """Return the last END characters; SQLite has no RIGHT(), and negative positions differ."""
    length = func.char_length(column.expression)
    return case((length > END, func.substr(column, length - END + 1)), else_=column)


_PARTS = select(
    JobLog.id,
    _end(JobLog.trigger_msg),
    func.substr(JobLog.handle_msg, 1, START),
    _end(JobLog.handle_msg),
).where(among(JobLog.id))
