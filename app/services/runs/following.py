"""Follow the log of a run: its lines as they are written, until it has ended."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.database.engine import read_scope
from app.domain.access.permissions import Actor
from app.errors import ExecutorUnreachable, RetryLater, XxlJobError
from app.runtime.interruptible_wait import pause
from app.services.executors.callers import Caller
from app.services.runs.log_lines import Lines, fetch_lines
from app.services.runs.run_lookup import FoundRun, get_run

#: seconds without another event after which a heartbeat is sent
HEARTBEAT_S = 15.0
#: pauses between two reads without a new line, in seconds: the first, the factor, the longest
PAUSE_S, SLOWER, PAUSE_MAX_S = 0.2, 1.3, 1.0
#: reads of the log of an ended run that may fail in a row
FAILURES_MAX = 3
#: the stream ends after this long, or when the console stops, though the run goes on, in seconds
FOLLOW_MAX_S = 3_600.0


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the log."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Heartbeat: nothing new."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """The log cannot be read at the moment."""

    reason: str


@dataclass(frozen=True, slots=True)
class End:
    """The last event; ``has_ended`` False: the run goes on, and another stream continues at ``next_line``.

    A broadcast has no log but those of its ``shards``: the ids of their runs, further ones may follow.
    """

    state: str
    has_ended: bool
    next_line: int
    shards: tuple[str, ...] = ()


Event = Line | Heartbeat | Trouble | End
#: returns an actor with the rights of this moment
Present = Callable[[Session], Actor]


def follow(
    run_id: str,
    first_line: int,
    *,
    actor: Actor,
    caller: Caller,
    present: Present | None = None,
) -> Iterator[Event]:
    """Yield the lines from ``first_line`` on, then End.

    Waits for a run that has not started. Opens short transactions and holds a permit for a single read only.
    ``present`` returns the actor with the rights of this moment, or raises; without it ``actor`` keeps its
    rights. A run that is deleted, or may not be seen any more, ends the events with the reason.
    """
    started_s = spoken_s = time.monotonic()
    next_line, pause_s, reason, failures, state = first_line, PAUSE_S, "", 0, "waiting"
    while True:
        try:
            actor, run = _find(run_id, actor, present)
            state = run.state
            if run.is_broadcast:
                yield End(state, run.has_ended, next_line, tuple(str(log.id) for log in run.rows))
                return
            piece, is_over = _read(run, next_line, actor, caller)
            reason, failures = "", 0
        except (ExecutorUnreachable, RetryLater) as exc:
            failures += isinstance(exc, ExecutorUnreachable)
            piece = _nothing(next_line, run)
            is_over = run.has_ended and failures >= FAILURES_MAX
            if str(exc) != reason:
                reason = str(exc)
                yield Trouble(reason)
                spoken_s = time.monotonic()
        except XxlJobError as exc:  # Another request would be answered with the status of this error.
            yield Trouble(str(exc))
            yield End(state, False, next_line)
            return
        yield from _events(piece, next_line)
        next_line = piece.first + len(piece.lines)
        now_s = time.monotonic()
        if is_over or now_s - started_s >= FOLLOW_MAX_S or pause(0 if piece.lines else pause_s):
            yield End(state, is_over, next_line)
            return
        if piece.lines:
            spoken_s, pause_s = now_s, PAUSE_S
            continue
        if now_s - spoken_s >= HEARTBEAT_S:
            yield Heartbeat()
            spoken_s = now_s
        pause_s = min(pause_s * SLOWER, PAUSE_MAX_S)


def _find(run_id: str, actor: Actor, present: Present | None) -> tuple[Actor, FoundRun]:
    with read_scope() as session:
        actor = present(session) if present is not None else actor
        return actor, get_run(session, run_id, actor=actor)


def _read(run: FoundRun, first_line: int, actor: Actor, caller: Caller) -> tuple[Lines, bool]:
    """Return new lines, and whether there are none and the run had ended before they were read."""
    if not run.rows:
        return _nothing(first_line, run), run.has_ended
    lines = fetch_lines(run.rows[0].id, first_line, actor=actor, caller=caller)
    return lines, lines.is_end and run.has_ended and not lines.lines


def _nothing(first_line: int, run: FoundRun) -> Lines:
    return Lines(first_line, first_line - 1, [], run.has_ended, run.state)


def _events(piece: Lines, first_line: int) -> Iterator[Event]:
    """Yield what is missing from the line that was asked for, and the lines."""
    for part in piece.absent(first_line):
        yield Trouble(part.text)
    for number, text in enumerate(piece.lines, piece.first):
        yield Line(number, text)
