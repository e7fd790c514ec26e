"""Comparison of two runs: their properties, and the difference of their logs."""

import time
from dataclasses import dataclass

from flask import Blueprint, render_template
from flask.typing import ResponseReturnValue

from app.console.runs.run_context import compared_tabs, run_context
from app.console.ui.filters import duration, host, outcome, run_duration
from app.console.ui.lists.listing import whole_number
from app.console.web.access import Access
from app.console.web.current import current_actor, executor_caller, translate, translate_error
from app.console.web.language import _
from app.database.flask_db import read_scope
from app.domain.runs.log_levels import STAMP
from app.domain.runs.outcome import OPEN
from app.domain.text.line_diff import diff_rows
from app.errors import XxlJobError
from app.services.executors.callers import Caller
from app.services.runs import logs, rows
from app.services.runs.log_lines import fetch_lines, has_log
from app.services.runs.rows import LogRow
from app.services.runs.sent_parameters import sent_text

blueprint = Blueprint("run_compare", __name__)
POLICY = {
    "compare": Access.VIEW,
}

#: lines of a log that are compared, and the time to read both logs, in seconds
LINES_COMPARED = 2_000
READ_S = 10


@dataclass(frozen=True, slots=True)
class Fact:
    """A property of both runs, as text."""

    label: str
    old: str
    new: str


@blueprint.get("/joblog/<int(max=9223372036854775807):log_id>/compare")
def compare(log_id: int) -> ResponseReturnValue:
    """Compare a run with the one of ``?old=``."""
    actor = current_actor()
    context = run_context(log_id)
    with read_scope() as session:
        pair = [logs.get_log(session, own_id, actor=actor) for own_id in (whole_number("old", 0), log_id)]
        old, new = rows.log_rows(session, pair, actor=actor)
    notes: list[str] = []
    until_s = time.monotonic() + READ_S
    with executor_caller().permit() as caller:
        texts = [_text_of(row, caller, until_s, notes) for row in (old, new)]
    return render_template(
        "runs/compare.html",
        old=old,
        new=new,
        tab="compare",
        **context | {"tabs": compared_tabs(context["tabs"], old.log.id, new.log.id)},
        facts=_facts(old, new),
        rows=diff_rows(*texts) if not notes else None,
        notes=notes,
        limit=LINES_COMPARED,
    )


def _facts(old: LogRow, new: LogRow) -> list[Fact]:
    labels = (_("Duration"), _("Executor"), "JobHandler", _("Job parameter"), _("Shard"))
    return [Fact(label, *values) for label, *values in zip(labels, _values(old), _values(new), strict=True)]


def _values(row: LogRow) -> tuple[str, ...]:
    log = row.log
    text = sent_text(log)
    return (
        "" if outcome(log) in OPEN else duration(run_duration(log)),
        host(log.executor_address or ""),
        log.executor_handler or "",
        (log.executor_param or "") if text is None else text,
        log.executor_sharding_param or "",
    )


def _text_of(row: LogRow, caller: Caller, until_s: float, notes: list[str]) -> str:
    """Return the first lines of a log without their times; adds to the notes why it cannot be read."""
    lines: list[str] = []
    if not has_log(row.log):
        return ""
    first = 1
    try:
        while (left_s := until_s - time.monotonic()) > 0:
            piece = fetch_lines(row.log.id, first, actor=current_actor(), caller=caller, timeout_s=left_s)
            lines += [f"… [{translate(part.text)}]" for part in piece.absent(first)]
            lines += piece.lines
            first = piece.last + 1
            if not piece.lines or len(lines) >= LINES_COMPARED:
                break
        else:
            notes.append(_("The log of run %(id)s took too long to read.", id=row.log.id))
    except XxlJobError as exc:
        notes.append(
            _("The log of run %(id)s cannot be read: %(reason)s", id=row.log.id, reason=translate_error(exc))
        )
    return "\n".join(STAMP.sub("", line) for line in lines[:LINES_COMPARED])
