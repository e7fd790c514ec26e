"""Export as CSV: the runs of the filtered log list, in its order, and the table of a result.

The ids are read at once, the runs in chunks while the file is sent: runs that start meanwhile cause no
duplicates or gaps, and memory and transactions stay those of one chunk.
"""

from collections.abc import Iterator, Sequence

from flask import Blueprint, Response, stream_with_context

from app.clock import now_ms
from app.console.runs.list_filter import requested_logs
from app.console.ui.csv_cells import BYTE_ORDER_MARK, csv_lines
from app.console.ui.filters import absolute, outcome, reader_zone, run_duration
from app.console.web.access import Access
from app.console.web.current import current_actor
from app.database.flask_db import read_scope
from app.domain.access.permissions import Actor
from app.domain.runs.logical_times import logical_of
from app.domain.text.texts import N_
from app.services.runs import logs, rows
from app.services.runs.rows import LogRow

blueprint = Blueprint("log_export", __name__)
POLICY = {
    "export": Access.VIEW,
}

#: most rows of a file
ROWS_MAX = 10_000
#: rows read at once
CHUNK = 200
#: longer messages are cut; the page of the run shows the whole message
MESSAGE_MAX = 2_000
CUT_MARK = " … [cut]"
FILE_NAME = "runs.csv"
HEAD = (
    *(
        "id",
        "jobId",
        "job",
        "executor",
        "address",
        "handler",
        "parameter",
        "shard",
        "triggerType",
        "triggerTime",
        "triggerCode",
    ),
    "logicalTime",
    *("handleTime", "handleCode", "result", "durationMs", "handleMsg"),
)
NO_TABLE = N_("The result of this run is not a table.")


@blueprint.get("/joblog/runs.csv")
def export() -> Response:
    """Return the runs that match the filters, at most ROWS_MAX; times are in the reader's zone."""
    actor = current_actor()
    with read_scope() as session:
        filters = requested_logs(session, actor=actor, zone=reader_zone(), now_ms=now_ms())
        ids = logs.list_ids(session, filters.filter, actor=actor, limit=ROWS_MAX)
    response = Response(stream_with_context(_chunks(ids, actor)), content_type="text/csv; charset=utf-8")
    response.headers.set("Content-Disposition", "attachment", filename=FILE_NAME)
    return response


def _chunks(ids: list[int], actor: Actor) -> Iterator[str]:
    yield BYTE_ORDER_MARK + csv_lines([HEAD])
    for start in range(0, len(ids), CHUNK):
        with read_scope() as session:
            logs_left = logs.list_existing(session, ids[start : start + CHUNK], actor=actor)
            chunk = csv_lines(_cells(row) for row in rows.log_rows(session, logs_left, actor=actor))
        yield chunk


def _cells(row: LogRow) -> list[str]:
    log, took_ms = row.log, run_duration(row.log)
    cells = [
        *(
            str(log.id),
            str(log.job_id),
            row.job.job_desc if row.job else "",
            row.group.app_name if row.group else str(log.job_group),
        ),
        *(
            log.executor_address,
            log.executor_handler,
            log.executor_param,
            log.executor_sharding_param,
            log.trigger_type,
        ),
        *(absolute(log.trigger_time) if log.trigger_time else "", str(log.trigger_code)),
        absolute(logical_ms) if (logical_ms := logical_of(log)) is not None else "",
        *(absolute(log.handle_time) if log.handle_time else "", str(log.handle_code), outcome(log)),
        *(str(took_ms) if took_ms is not None else "", _short(log.handle_msg or "")),
    ]
    return [cell or "" for cell in cells]


def _short(message: str) -> str:
    return message if len(message) <= MESSAGE_MAX else message[:MESSAGE_MAX] + CUT_MARK


def csv_of(lines: Sequence[Sequence[str]]) -> str:
    """Return lines as a file for spreadsheets."""
    return BYTE_ORDER_MARK + csv_lines(lines)
