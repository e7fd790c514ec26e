"""Pieces of a run's log as executors return them: their last line, and the masking of secrets in them."""

from dataclasses import replace
from typing import NamedTuple, Protocol

from app.domain.parameters.masking import Masker
from app.domain.runs.evidence import ABSENT_LOGS
from app.errors import ExecutorUnreachable
from app.executors.gateway import ReadLog
from executor_client.wire.protocol import LogRequest, LogResult


class ReadPiece(Protocol):
    """Reads a piece of a log; with ``last_lines`` its end. Raises ExecutorUnreachable."""

    def __call__(self, request: LogRequest, *, last_lines: int) -> ReadLog:
        """Call the executor."""


class MaskedRead(NamedTuple):
    """How the log of a run with secrets is read."""

    masker: Masker
    #: whether the run has ended, so that its log ends where it has no further lines
    has_ended: bool


def last_line(piece: LogResult) -> int:
    """Return the number of the last line of a piece; below its first one if it has none.

    Some clients name one that does not exist: pyxxl where there is no text, or no log; npm xxl-job counts the
    end of the last line as another one. Source: docs/reference/clients.md, section A6.
    """
    text, last = piece.log_content, piece.to_line_num
    if text in ("", *ABSENT_LOGS):
        return min(last, piece.from_line_num - 1)
    if text.endswith("\n") and last == piece.from_line_num + text.count("\n"):
        return last - 1
    return last


def read_masked(read: ReadPiece, request: LogRequest, *, last_lines: int, how: MaskedRead) -> ReadLog:
    """Read a piece without values of secrets; raises ExecutorUnreachable, whose reason has none either.

    A value of several lines may begin before the piece, so that some lines before it are read, too. While the
    run goes on, last lines that may begin such a value are left to the next piece.
    """
    masker = how.masker
    # Also of the end of a log, which may begin in the middle of a value.
    context = masker.line_ends if last_lines else min(masker.line_ends, request.from_line_num - 1)
    try:
        answer = read(
            replace(request, from_line_num=request.from_line_num - (0 if last_lines else context)),
            last_lines=last_lines + context if last_lines else 0,
        )
        piece = answer.piece
        if piece.from_line_num <= last_line(piece) < request.from_line_num - 1:
            # A piece of very long lines, all of them before the first one: read that one by itself.
            answer = read(request, last_lines=0)
            piece = answer.piece
        if masker.line_ends and last_line(piece) >= piece.from_line_num:
            first = request.from_line_num
            if last_lines:
                first = max(piece.from_line_num, last_line(piece) - last_lines + 1)
            has_ended = how.has_ended and not answer.is_running
            following = _following(read, request, piece, masker) if has_ended else None
            piece = _masked_lines(piece, first, following, masker)
        else:
            piece = replace(piece, log_content=masker.mask(piece.log_content))
    except ExecutorUnreachable as exc:
        if (reason := masker.mask(exc.reason)) == exc.reason:
            raise
        raise ExecutorUnreachable(exc.address, reason) from None
    progress = answer.progress
    if progress is not None:
        progress = replace(progress, text=masker.mask(progress.text))
    return answer._replace(piece=piece, progress=progress)


def _following(read: ReadPiece, request: LogRequest, piece: LogResult, masker: Masker) -> list[str]:
    """Return the lines behind a piece of the log of an ended run, if they decide what is masked in it."""
    if not masker.open_lines(join_lines(_lines(piece))):
        return []
    following = read(replace(request, from_line_num=last_line(piece) + 1), last_lines=0).piece
    return _lines(following) if last_line(following) >= following.from_line_num else []


def _masked_lines(piece: LogResult, first: int, following: list[str] | None, masker: Masker) -> LogResult:
    """Return the masked lines of a piece from the line ``first`` on.

    ``following``: lines behind it; None: not written yet, and lines that they may decide on are left out.
    """
    lines, last, is_end = _lines(piece), last_line(piece), piece.is_end
    count = len(lines)
    if following is None and (open_count := masker.open_lines(join_lines(lines))):
        count, last, is_end = count - open_count, last - open_count, False
    masked_lines = masker.mask(join_lines([*lines, *(following or ())])).split("\n")[:count]
    rest = masked_lines[max(first - piece.from_line_num, 0) :]
    return LogResult(max(first, piece.from_line_num), last, join_lines(rest) if rest else "", is_end)


def split_lines(content: str) -> list[str]:
    """Return the lines of a piece; a line break at its end does not start another line."""
    text = content.replace("\r\n", "\n").removesuffix("\n")
    return text.split("\n")


def _lines(piece: LogResult) -> list[str]:
    return split_lines(piece.log_content)


def join_lines(lines: list[str]) -> str:
    """Return lines as the content of a piece."""
    return "".join(f"{line}\n" for line in lines)
