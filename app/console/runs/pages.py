"""Run pages: log list, one run with its rolling log, kill."""

from contextlib import suppress

from flask import Blueprint, Response, jsonify, render_template, request, stream_with_context, url_for
from flask.typing import ResponseReturnValue
from werkzeug.utils import redirect

from app.clock import now_ms
from app.console.runs.export import NO_TABLE, csv_of
from app.console.runs.list_search import read_run_search, run_number
from app.console.runs.log_reader import whole_text
from app.console.runs.progress import progress_text
from app.console.runs.run_context import PLAIN_LINES, run_context
from app.console.runs.run_list import list_values
from app.console.ui.forms.confirm import Question, confirm_page
from app.console.ui.lists.listing import address_with, whole_number
from app.console.ui.lists.search import Search
from app.console.ui.notices import Subject, done, way_back
from app.console.web.access import Access
from app.console.web.current import current_actor, executor_caller, translate, translate_error
from app.console.web.language import _
from app.database.flask_db import read_scope, session_scope
from app.domain.access.permissions import Right
from app.domain.runs.result_tables import cells_of
from app.errors import NotFound, TooManyCalls, XxlJobError
from app.services.auditing import audit
from app.services.executors.groups import visible_groups
from app.services.runs import logs, rows
from app.services.runs.log_ends import Pieces, fetch_end, fetch_range
from app.services.runs.log_lines import Lines, fetch_lines
from app.services.runs.rows import LogRow

blueprint = Blueprint("logs", __name__)
POLICY = {
    "index": Access.LOGIN,
    "show": Access.VIEW,
    "detail_page": Access.VIEW,
    "message": Access.VIEW,
    "lines": Access.VIEW,
    "raw": Access.VIEW,
    "result": Access.VIEW,
    "kill": Access.OPERATE,
}

#: most lines of a log in one answer
LAST_MAX = 2_000

NO_SEARCH = Search({}, "", ())

ONE_LOG = "/joblog/<int(max=9223372036854775807):log_id>"


@blueprint.get("/joblog")
def index() -> ResponseReturnValue:
    """List the runs; without a range, today's. A search text becomes parameters, or leads to a run."""
    text = request.args.get("q", "")
    search = _search(text) if text.strip() else NO_SEARCH
    if isinstance(search, str):
        return redirect(search)
    return render_template("runs/index.html", search=search, **list_values())


def _search(text: str) -> Search | str:
    """Return what a search text means; the URL it leads to, if that is clear."""
    actor = current_actor()
    with read_scope() as session:
        if log_id := run_number(text):
            with suppress(NotFound):
                return url_for("logs.show", log_id=logs.get_log(session, log_id, actor=actor).id)
        search = read_run_search(session, text, visible_groups(session, actor), actor=actor)
    if search.hints:
        return search
    return address_with(page=None, until=None, q=None, **search.parameters)


@blueprint.get(ONE_LOG)
def show(log_id: int) -> ResponseReturnValue:
    """Show one run: its rolling log, its result or its dispatch."""
    context = run_context(log_id)
    tab = request.args.get("tab", "")
    if tab not in context["tabs"] or tab == "compare":
        tab = next(iter(context["tabs"]))
    plain = last_lines(log_id) if tab == "output" and "plain" in request.args else None
    parts = plain.piece.missing if isinstance(plain, Pieces) else ()
    missing = [translate(part.text) for part in parts]
    return render_template("runs/show.html", tab=tab, plain=plain, missing=missing, **context)


@blueprint.get("/joblog/logDetailPage")
def detail_page() -> ResponseReturnValue:
    """Redirect from the original's URL of a run to ours."""
    text = request.args.get("id", "")
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        raise NotFound(logs.MISSING)
    return redirect(url_for("logs.show", log_id=int(text)), 303)


@blueprint.get(f"{ONE_LOG}/note")
def message(log_id: int) -> ResponseReturnValue:
    """Show the dispatch trace of a run and the message of its result."""
    return render_template("runs/message.html", **run_context(log_id))


@blueprint.get(f"{ONE_LOG}/lines")
def lines(log_id: int) -> ResponseReturnValue:
    """Return the log lines from ``?from=`` on as JSON, or an ``error`` if the executor is unreachable.

    With ``?last=`` only so many of the end of the log, with ``?to=`` those up to that line.
    """
    try:
        pieces = _pieces(log_id)
    except NotFound:
        raise
    except TooManyCalls as exc:
        return jsonify(error=translate_error(exc)), 503, {"Retry-After": str(exc.retry_after_s)}
    except XxlJobError as exc:
        return jsonify(error=translate_error(exc))
    piece = pieces.piece
    now = piece.progress
    text = progress_text(now, piece.elapsed_ms) if now is not None else ""
    progress = {"progress": {"percent": now.percent, "text": text}} if now is not None else {}
    return jsonify(
        {
            "from": pieces.first,
            "to": pieces.last,
            "lines": pieces.lines,
            "end": piece.is_end and not pieces.has_more,
            "outcome": piece.outcome,
            "note": piece.message,
            **({"more": True} if pieces.has_more else {}),
            **({"errors": pieces.errors} if pieces.errors is not None else {}),
            **_missing(piece),
            **progress,
        }
    )


def _missing(piece: Lines) -> dict[str, object]:
    """Return what is missing of a log as the page shows it."""
    parts = [{"from": part.first, "to": part.last, "text": translate(part.text)} for part in piece.missing]
    return {"missing": parts} if parts else {}


def last_lines(log_id: int) -> Pieces | str:
    """Return the last lines of a log for a page without scripts, or why it cannot be read."""
    try:
        return fetch_end(log_id, 1, PLAIN_LINES, actor=current_actor(), caller=executor_caller())
    except NotFound:
        raise
    except XxlJobError as exc:
        return translate_error(exc)


@blueprint.get(f"{ONE_LOG}/result.csv")
def result(log_id: int) -> ResponseReturnValue:
    """Return the table of a result as CSV."""
    lines = cells_of(_row(log_id).log.handle_msg)
    if lines is None:
        raise NotFound(NO_TABLE)
    response = Response(csv_of(lines), content_type="text/csv; charset=utf-8")
    response.headers.set("Content-Disposition", "attachment", filename=f"run-{log_id}.csv")
    return response


def _pieces(log_id: int) -> Pieces:
    """Return the lines that the query of the request names."""
    first, last = max(1, whole_number("from", 1)), whole_number("to", 0)
    actor, caller = current_actor(), executor_caller()
    if count := min(whole_number("last", 0), LAST_MAX):
        return fetch_end(log_id, first, count, actor=actor, caller=caller)
    if last >= first:
        return fetch_range(log_id, first, min(last, first + LAST_MAX - 1), actor=actor, caller=caller)
    piece = fetch_lines(log_id, first, actor=actor, caller=caller)
    return Pieces(piece.first, piece.last, piece.lines, piece)


@blueprint.get(f"{ONE_LOG}/log.txt")
def raw(log_id: int) -> ResponseReturnValue:
    """Return the whole log as text, sent while it is fetched."""
    actor = current_actor()
    pieces = whole_text(log_id, actor=actor, caller=executor_caller())
    next(pieces)  # An error of the first call becomes an error page.
    with session_scope() as session:
        audit.record(session, "log.download", actor=actor, now_ms=now_ms(), target=("log", log_id))
    return Response(stream_with_context(pieces), content_type="text/plain; charset=utf-8")


@blueprint.route(f"{ONE_LOG}/kill", methods=["GET", "POST"])
def kill(log_id: int) -> ResponseReturnValue:
    """Kill a run."""
    row = _row(log_id, Right.OPERATE)
    name = row.job.job_desc if row.job is not None else ""
    if request.method == "POST":
        logs.kill_log(log_id, actor=current_actor(), caller=executor_caller(), now_ms=now_ms())
        return done("killed", way_back("logs.show", log_id=log_id), of=Subject("run", log_id, name))
    subject = f"{log_id} · {row.job.job_desc if row.job is not None else row.log.job_id}"
    consequences = [
        _(
            "The executor ends all runs of this job on its instance, including queued ones."
            " Work already done is not rolled back."
        )
    ]
    question = Question(
        _("Kill the run?"), subject, consequences, _("Kill the run"), kind="danger", glyph="x-octagon"
    )
    return confirm_page(question, back=way_back("logs.show", log_id=log_id))


def _row(log_id: int, right: Right = Right.VIEW) -> LogRow:
    with read_scope() as session:
        log = logs.get_log(session, log_id, actor=current_actor(), right=right)
        return rows.log_rows(session, [log], actor=current_actor())[0]
