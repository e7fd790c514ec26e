"""The runs of a list as a table for a spreadsheet: what the filters show, in the order of the list.

The ids are read at once and the runs piece by piece while the table is sent: no run stands in it twice or is
left out because others begin meanwhile, and memory and transactions are those of one piece.
"""

import csv
import io
from collections.abc import Iterable, Iterator

from flask import Blueprint, Response, stream_with_context

from app.clock import now_ms
from app.console.runs.list_filter import requested_logs
from app.console.ui.filters import absolute, outcome, reader_zone, run_duration
from app.console.web.access import Access
from app.console.web.current import current_actor
from app.db import read_scope
from app.domain.permissions import Actor
from app.services.runs import logs, rows
from app.services.runs.rows import LogRow

blueprint = Blueprint("log_export", __name__)
POLICY = {
    "export": Access.VIEW,
}

#: more rows are not written
ROWS_MAX = 10_000
#: rows read at once
CHUNK = 200
#: longer notes are cut: the page of the run has all of them
NOTE_MAX = 2_000
CUT_MARK = " … [cut]"
FILE_NAME = "runs.csv"
#: spreadsheets take a cell that begins with one of these for a formula, some the full-width ones too
FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\t", "\r")
#: tells spreadsheets that the text is UTF-8
MARK = "\ufeff"
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
    *("handleTime", "handleCode", "result", "durationMs", "handleMsg"),
)


@blueprint.get("/joblog/runs.csv")
def export() -> Response:
    """Return the runs that match the filters, ROWS_MAX at most; times are those of the reader's zone."""
    actor = current_actor()
    with read_scope() as session:
        asked = requested_logs(session, actor=actor, zone=reader_zone(), now_ms=now_ms())
        ids = logs.list_ids(session, asked.wanted, actor=actor, limit=ROWS_MAX)
    response = Response(stream_with_context(_pieces(ids, actor)), content_type="text/csv; charset=utf-8")
    response.headers.set("Content-Disposition", "attachment", filename=FILE_NAME)
    return response


def _pieces(ids: list[int], actor: Actor) -> Iterator[str]:
    yield MARK + _written([HEAD])
    for start in range(0, len(ids), CHUNK):
        with read_scope() as session:
            found = logs.list_listed(session, ids[start : start + CHUNK], actor=actor)
            piece = _written(_cells(row) for row in rows.log_rows(session, found, actor=actor))
        yield piece


def _written(lines: Iterable[Iterable[str]]) -> str:
    file = io.StringIO()
    csv.writer(file).writerows(lines)
    return file.getvalue()


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
        *(absolute(log.handle_time) if log.handle_time else "", str(log.handle_code), outcome(log)),
        *(str(took_ms) if took_ms is not None else "", _short(log.handle_msg or "")),
    ]
    return [_harmless(cell or "") for cell in cells]


def _short(note: str) -> str:
    return note if len(note) <= NOTE_MAX else note[:NOTE_MAX] + CUT_MARK


def _harmless(cell: str) -> str:
    return f"'{cell}" if cell.startswith(FORMULA) else cell
