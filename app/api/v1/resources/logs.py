"""API: logs of runs, in parts or as a stream."""

import json
from collections.abc import Iterator
from functools import partial

from flask import Response, request
from sqlalchemy.orm import Session

from app.api.v1.endpoint import Call, Resource
from app.api.v1.long_poll_slots import waits
from app.api.v1.schemas.runs import LogLines, LogQuery
from app.clock import now_ms
from app.database.engine import read_scope
from app.domain.access.permissions import Actor
from app.domain.archive.missing import MissingLines
from app.domain.text.texts import N_
from app.errors import ExecutorUnreachable, RetryLater, TooManyCalls
from app.services.accounts.api_tokens import present_actor
from app.services.runs.following import End, Event, Line, Trouble, follow
from app.services.runs.log_lines import Lines, fetch_lines
from app.services.runs.run_lookup import get_run, row_of

NDJSON, EVENTS = "application/x-ndjson", "text/event-stream"
#: characters of a piece from which another one may follow: executors fill theirs with 254 KiB or more
PIECE_MIN = 32 * 1024
#: Retry-After of a stream that is refused because there are too many, in seconds
RETRY_AFTER_S = 5

resource = Resource("logs", "Logs of runs.")


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
