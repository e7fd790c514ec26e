"""End of a run's log, and a range of its lines, in one request of a page.

The archive and executors of ours return the last lines. Others only know "from this line on": their log is
read forward in pieces of at most 512 KiB, and only its end is kept.
"""

import time
from collections import deque
from dataclasses import dataclass

from app.domain.access.permissions import Actor
from app.domain.runs.log_levels import ErrorCount
from app.errors import XxlJobError
from app.services.executors.callers import Caller
from app.services.runs.log_lines import Lines, fetch_lines

#: seconds in which a log is read forward for one request
READ_S = 8.0


@dataclass(frozen=True, slots=True)
class Pieces:
    """Lines of a log that were read in one or more pieces."""

    first: int
    last: int
    lines: list[str]
    #: the last piece that was read
    piece: Lines
    #: errors in all lines that were read, also in those that were left out; None: not counted
    errors: int | None = None
    #: whether there was no time to read on to the end
    has_more: bool = False


def fetch_end(log_id: int, first: int, count: int, *, actor: Actor, caller: Caller) -> Pieces:
    """Fetch the last lines of a log that are not before ``first``, at most ``count``.

    Raises ExecutorUnreachable and TooManyCalls, but not after lines that were read.
    """
    until_s = time.monotonic() + READ_S
    with caller.permit() as permit:
        piece = fetch_lines(log_id, first, actor=actor, caller=permit, last_lines=count if first == 1 else 0)
        if piece.is_tail:
            return Pieces(piece.first, piece.last, piece.lines, piece)
        return _read_forward(piece, until_s, None, count, log_id=log_id, actor=actor, caller=permit)


def fetch_range(log_id: int, first: int, last: int, *, actor: Actor, caller: Caller) -> Pieces:
    """Fetch the lines from ``first`` to ``last``, or as many of the first ones as there is time for."""
    until_s = time.monotonic() + READ_S
    with caller.permit() as permit:
        piece = fetch_lines(log_id, first, actor=actor, caller=permit)
        pieces = _read_forward(
            piece, until_s, last, last - first + 1, log_id=log_id, actor=actor, caller=permit
        )
    return Pieces(
        pieces.first,
        min(pieces.last, last),
        pieces.lines,
        pieces.piece,
        has_more=pieces.last < last and pieces.has_more,
    )


def _read_forward(
    piece: Lines, until_s: float, last: int | None, count: int, *, log_id: int, actor: Actor, caller: Caller
) -> Pieces:
    """Read on behind a piece to the end, or to the line ``last``; keep the last ``count`` lines.

    Lines that are missing end a range, and what stands before them is not kept.
    """
    last_lines: deque[str] = deque(maxlen=count)
    errors = ErrorCount()
    position, has_more = piece.first - 1, False
    while piece.lines:
        if piece.first > position + 1:
            if last is not None:
                break
            last_lines.clear()
            position = piece.first - 1
        lines = piece.lines if last is None else piece.lines[: max(last - position, 0)]
        last_lines.extend(lines)
        errors.add(lines)
        position = piece.last if last is None else max(position, min(piece.last, last))
        left_s = until_s - time.monotonic()
        has_more = left_s <= 0
        if has_more or (last is not None and position >= last):
            break
        try:
            piece = fetch_lines(log_id, position + 1, actor=actor, caller=caller, timeout_s=left_s)
        except XxlJobError:
            has_more = True
            break
    first = position - len(last_lines) + 1
    return Pieces(first, position, [*last_lines], piece, errors.count, has_more)
