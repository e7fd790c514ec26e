"""The runs of a list as a table for a spreadsheet: what the filters show, newest first."""

import csv
import io
from collections.abc import Iterator

from flask import Blueprint, Response

from app.clock import now_ms
from app.console.current import current_actor
from app.console.filters import absolute, outcome, reader_zone, run_duration
from app.console.log_filter import asked_logs
from app.db import read_scope
from app.services import logs, rows
from app.services.rows import LogRow

blueprint = Blueprint("log_export", __name__)

#: more rows are not written
ROWS_MAX = 10_000
#: rows read at once
CHUNK = 1_000
FILE_NAME = "runs.csv"
#: spreadsheets take a cell that begins with one of these for a formula
FORMULA = ("=", "+", "-", "@", "\t", "\r")
#: tells spreadsheets that the text is UTF-8
MARK = "\ufeff"
HEAD = (
    *("id", "jobId", "job", "executor", "address", "handler", "parameter", "shard", "triggerType", "triggerTime", "triggerCode"),
    *("handleTime", "handleCode", "result", "durationMs", "handleMsg"),
)


@blueprint.get("/joblog/runs.csv")
def export() -> Response:
    """Return the runs that match the filters, ROWS_MAX at most; times are those of the reader's zone."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(HEAD)
    writer.writerows(_cells(row) for row in _rows())
    response = Response(MARK + file.getvalue(), content_type="text/csv; charset=utf-8")
    response.headers.set("Content-Disposition", "attachment", filename=FILE_NAME)
    return response


def _rows() -> Iterator[LogRow]:
    actor = current_actor()
    with read_scope() as session:
        asked = asked_logs(session, actor=actor, zone=reader_zone(), now_ms=now_ms())
        for start in range(0, ROWS_MAX, CHUNK):
            page = logs.list_logs(session, asked.wanted, actor=actor, start=start, length=CHUNK)
            yield from rows.log_rows(session, page.rows, actor=actor)
            if len(page.rows) < CHUNK:
                return


def _cells(row: LogRow) -> list[str]:
    log, took_ms = row.log, run_duration(row.log)
    cells = [
        *(str(log.id), str(log.job_id), row.job.job_desc if row.job else "", row.group.app_name if row.group else str(log.job_group)),
        *(log.executor_address, log.executor_handler, log.executor_param, log.executor_sharding_param, log.trigger_type),
        *(absolute(log.trigger_time) if log.trigger_time else "", str(log.trigger_code)),
        *(absolute(log.handle_time) if log.handle_time else "", str(log.handle_code), outcome(log)),
        *(str(took_ms) if took_ms is not None else "", log.handle_msg),
    ]
    return [_harmless(cell or "") for cell in cells]


def _harmless(cell: str) -> str:
    return f"'{cell}" if cell.startswith(FORMULA) else cell
