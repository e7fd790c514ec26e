"""API: logs of runs, in parts or as a stream, and search of those that are archived."""

import json
from collections.abc import Iterator
from functools import partial

from flask import Response, request
from sqlalchemy.orm import Session

from app.api.v1.cursors import BIG_ID, read_cursor, write_cursor
from app.api.v1.endpoint import Call, Resource
from app.api.v1.long_poll_slots import waits
from app.api.v1.resources.runs import STATUSES
from app.api.v1.schemas.log_search import LogHit, LogHits, LogSearchQuery, Mark
from app.api.v1.schemas.runs import LogLines, LogQuery
from app.blobs.stores import store_of
from app.clock import now_ms
from app.database.engine import read_scope
from app.domain.access.permissions import Actor
from app.domain.archive.missing import MissingLines
from app.domain.runs.outcome import STATES
from app.domain.text.texts import N_
from app.errors import ExecutorUnreachable, RetryLater, TooManyCalls
from app.services.accounts.api_tokens import present_actor
from app.services.archive.search import Hit, LineQuery, Place, search_logs
from app.services.runs.following import End, Event, Line, Trouble, follow
from app.services.runs.log_lines import Lines, fetch_lines
from app.services.runs.logs import LogFilter, LogStatus
from app.services.runs.run_lookup import get_run, row_of

NDJSON, EVENTS = "application/x-ndjson", "text/event-stream"
#: characters of a piece from which another one may follow: executors fill theirs with 254 KiB or more
PIECE_MIN = 32 * 1024
#: Retry-After of a stream that is refused because there are too many, in seconds
RETRY_AFTER_S = 5
#: lines of a log in a cursor
LINE = range(2**31)

resource = Resource("logs", "Logs of runs, and search of those that are archived.")


@resource.get(
    "/runs/<run_id>/log",
    query=LogQuery,
    answer=LogLines,
    transaction=False,
    calls_executors=True,
    streams=(NDJSON, EVENTS),
)
def read_log(call: Call, run_id: str) -> LogLines | Response:
    """Return lines of the log of a run, from the log archive or its executor, or follow them."""
    query: LogQuery = call.query
    with read_scope() as session:
        run = get_run(session, run_id, actor=call.actor)
        if query.follow:
            return _stream(call, run.id, query.from_line)
        row = row_of(run) if run.rows else None
    first = query.from_line
    if row is None:
        return LogLines(
            from_line=first,
            next_line=first,
            lines=[],
            end=False,
            state="waiting",
            message="",
            archived_lines=0,
            missing=[],
        )
    piece = fetch_lines(row.id, first, actor=call.actor, caller=call.executors)
    lines, is_end, missing = piece.lines[: query.limit], piece.is_end, piece.missing
    if lines and len(lines) == len(piece.lines) and run.has_ended and sum(map(len, lines)) < PIECE_MIN:
        is_end, missing = _behind(call, row.id, piece)
    return LogLines.model_validate(
        {
            "from_line": piece.first,
            "next_line": piece.first + len(lines),
            "lines": lines,
            "end": is_end,
            "state": run.state,
            "message": piece.message,
            "archived_lines": piece.archived,
            "missing": [missing_out(part) for part in missing],
        }
    )


def missing_out(part: MissingLines) -> dict[str, object]:
    """Return missing lines as the API describes them."""
    return {
        "from_line": part.first,
        "to_line": part.last or None,
        "reason": part.reason.value,
        "text": str(part.text),
    }


def _behind(call: Call, log_id: int, piece: Lines) -> tuple[bool, tuple[MissingLines, ...]]:
    """Return whether a log has no line behind a piece, which may have been cut, and what is missing."""
    try:
        behind = fetch_lines(log_id, piece.last + 1, actor=call.actor, caller=call.executors)
    except (ExecutorUnreachable, RetryLater):
        return False, piece.missing  # the next request finds out
    return behind.is_end, behind.missing or piece.missing


def _stream(call: Call, run_id: str, first_line: int) -> Response:
    holder = call.caller.holder
    if not waits.take(holder, threads=call.config.threads):
        raise TooManyCalls(
            N_(
                "Too many requests are waiting for runs or following logs; try again in %(seconds)s s",
                seconds=RETRY_AFTER_S,
            ),
            retry_after_s=RETRY_AFTER_S,
        )
    kind = request.accept_mimetypes.best_match([NDJSON, EVENTS], NDJSON)

    def present(session: Session) -> Actor:
        return present_actor(session, call.caller, now_ms=now_ms())

    events = follow(run_id, first_line, actor=call.actor, caller=call.executors, present=present)
    answer = Response(_encode(events, as_events=kind == EVENTS), content_type=f"{kind}; charset=utf-8")
    answer.headers["X-Accel-Buffering"] = "no"  # nginx would keep lines back
    answer.call_on_close(partial(waits.give, holder))
    return answer


def _encode(events: Iterator[Event], *, as_events: bool) -> Iterator[str]:
    for event in events:
        text = json.dumps(_members(event), ensure_ascii=False)
        yield f"data: {text}\n\n" if as_events else f"{text}\n"


def _members(event: Event) -> dict[str, object]:
    match event:
        case Line():
            return {"line": event.number, "text": event.text}
        case Trouble():
            return {"error": event.reason}
        case End():
            end = {"end": event.has_ended, "state": event.state, "next_line": event.next_line}
            # Nothing can be continued, so a program that does not know shards stops here.
            return {**end, "end": True, "shards": list(event.shards)} if event.shards else end
        case _:
            return {"heartbeat": True}


@resource.get("/logs/search", query=LogSearchQuery, answer=LogHits, transaction=False)
def search(call: Call) -> LogHits:
    """Search the archived logs of runs, newest runs first.

    A search takes about 5 seconds at most; `next_cursor` goes on where it has ended, also if it has found
    nothing yet. A line that was redacted is searched as it was stored.
    """
    query: LogSearchQuery = call.query
    position = read_cursor(query.cursor, BIG_ID, LINE)
    page = search_logs(
        LineQuery(
            query.q,
            is_regex=query.regex,
            ignores_case=query.ignore_case,
            runs=LogFilter(
                group_id=query.group_id or 0,
                job_id=query.job_id or 0,
                status=STATUSES[query.state] if query.state else LogStatus.ALL,
                from_ms=query.from_ms,
                to_ms=query.to_ms,
            ),
        ),
        actor=call.actor,
        store=store_of(call.config),
        limit=query.limit,
        after=None if position is None else Place(int(position[0]), int(position[1])),
    )
    return LogHits(
        items=[_item(hit) for hit in page.hits],
        next_cursor=None if page.next is None else write_cursor(*page.next),
        searched_to=page.searched_to_ms,
    )


def _item(hit: Hit) -> LogHit:
    return LogHit.model_validate(
        {
            "run_id": str(hit.log_id),
            "job_id": hit.job_id,
            "group_id": hit.group_id,
            "state": STATES[hit.outcome],
            "started_at": hit.started_ms,
            "line": hit.line,
            "text": hit.match.text,
            "marks": [Mark(start=start, end=end) for start, end in hit.match.marks],
            "cut": hit.match.is_cut,
        }
    )
