"""Log sources: where the log of a run is, and the one reader of it for pages, API and archive."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from sqlalchemy.orm import Session

from app.clock import Millis, now_ms
from app.domain.archive.missing import MissingLines
from app.domain.enums import HandleCode
from app.domain.parameters.masking import Masker
from app.domain.text.texts import N_
from app.errors import Conflict, ExecutorUnreachable, XxlJobError
from app.executors.calls import Peer
from app.executors.gateway import LOG_TIMEOUT_S
from app.models.log import JobLog
from app.pipeline.group_addresses import find_foreign, withholds_token
from app.pipeline.masking import find_maskers
from app.services.executors.callers import LEFT_GROUP, Caller
from app.services.run_logs.archived_run import ArchivedLines, ArchivedRun
from app.services.run_logs.log_pieces import MaskedRead, join_lines, last_line, read_masked, split_lines
from app.store.executors import listing as group_lists
from app.store.executors import registry
from app.store.fires import logs as store_logs
from executor_client.wire.protocol import LogRequest
from executor_client.wire.run_reports import LAST_LINES, RUN_STATE, Progress

#: longest call of an executor from which the archiver fetches nothing more
FINAL_S = 2.0

GROUP_GONE = N_("the executor group of this run no longer exists, so no access token is sent there")


@dataclass(frozen=True, slots=True)
class LogPiece:
    """Lines of a run's log, both ends inclusive; ``to_line_num`` < ``from_line_num``: nothing new."""

    from_line_num: int
    to_line_num: int
    log_content: str
    is_end: bool
    #: progress of a running run of our executor, if its handler reports any
    progress: Progress | None = None
    #: whether our executor is still running it, as one that was killed and cleans up
    is_running: bool = False
    #: whether these are the last lines of the log, as requested
    is_tail: bool = False
    #: last line that the archive has; 0: none
    archived: int = 0
    #: lines of the log that are known to be missing
    missing: tuple[MissingLines, ...] = ()


#: reads lines of the executor from one on, in so many seconds
Fetch = Callable[[int, float], LogPiece]


@dataclass(frozen=True, slots=True)
class LogSource:
    """The log of a run on its executor."""

    log: JobLog
    peer: Peer
    #: whether the executor says how far the run is
    reports: bool
    #: whether it returns last lines, if they were asked for
    has_tail: bool
    masker: Masker | None


def open_source(session: Session, log: JobLog, caller: Caller, *, is_tail: bool = False) -> LogSource:
    """Return where the log of a run is; ``is_tail``: its last lines are read.

    Raises Conflict and ExecutorUnreachable.
    """
    peer = peer_of(session, log, caller, at_ms=now_ms())
    may_run = log.handle_code == HandleCode.NONE or bool(log.killed)
    words = _announced_features(session, peer) if may_run or is_tail else []
    masker = find_maskers(session, [log], now_ms=now_ms()).get(log.id)
    return LogSource(log, peer, may_run and RUN_STATE in words, is_tail and LAST_LINES in words, masker)


def read_source(
    source: LogSource,
    from_line_num: int,
    *,
    caller: Caller,
    timeout_s: float = LOG_TIMEOUT_S,
    last_lines: int = 0,
) -> LogPiece:
    """Read lines of a log as ``read_log``; the one reader of pages, API and archive."""
    log = source.log
    request = LogRequest(
        log_id=log.id, log_date_time=log.trigger_time or 0, from_line_num=max(from_line_num, 1)
    )
    with caller.permit():
        read = partial(
            caller.gateway.read_run,
            source.peer,
            timeout_s=min(timeout_s, LOG_TIMEOUT_S),
            progress=source.reports,
        )
        lines_wanted = last_lines if source.has_tail else 0
        if source.masker is None:
            piece, progress, is_running = read(request, last_lines=lines_wanted)
        else:
            has_ended = not store_logs.is_unfinished(log.trigger_code, log.handle_code)
            how = MaskedRead(source.masker, has_ended=has_ended)
            piece, progress, is_running = read_masked(read, request, last_lines=lines_wanted, how=how)
    last = last_line(piece)
    nothing_new = piece.from_line_num > last
    is_end = True if nothing_new and log.handle_code > 0 and not is_running else piece.is_end
    return LogPiece(
        piece.from_line_num, last, piece.log_content, is_end, progress, is_running, source.has_tail
    )


def read_piece(run: ArchivedRun, first: int, fetch: Fetch, *, timeout_s: float) -> LogPiece:
    """Return lines from the archive, or those behind them from the executor.

    Raises ExecutorUnreachable as long as the archiver goes on; after that its lines are missing.
    """
    part = run.read(first)
    gap = part.unreadable
    if gap is not None and (piece := _from_executor(run, max(first, gap.first), fetch, timeout_s)):
        return replace(piece, archived=run.last_line, missing=part.missing[: part.missing.index(gap)])
    if part.lines:
        return _piece(run, part)
    return _behind(run, part, fetch, timeout_s)


def read_last(run: ArchivedRun, count: int, fetch: Fetch, *, timeout_s: float) -> LogPiece:
    """Return the last lines; without an answer of the executor those of the archive."""
    nothing = ArchivedLines(run.last_line + 1, run.last_line, [])
    try:
        behind = _behind(run, nothing, fetch, timeout_s)
    except XxlJobError:  # The next request, which is for the lines behind these, gets it.
        behind, timeout_s = _piece(run, nothing), min(timeout_s, FINAL_S)
    new = split_lines(behind.log_content) if behind.to_line_num >= behind.from_line_num else []
    part = run.read_end(1, count - len(new)) if len(new) < count else nothing
    if (gap := part.unreadable) is not None:
        # Lines before them may be in files that cannot be read either.
        first = max(run.last_line - count + len(new) + 1, run.row.gap_to + 1)
        piece = _from_executor(run, first, fetch, timeout_s)
        if piece is not None and piece.to_line_num >= gap.last:
            substitutes = split_lines(piece.log_content)[: gap.last - first + 1]
            part = ArchivedLines(first, part.last, [*substitutes, *part.lines])
    lines = [*part.lines, *new[-count:]]
    last = run.last_line + len(new)
    missing = (*behind.missing, *part.missing)
    return replace(
        behind,
        from_line_num=last - len(lines) + 1,
        to_line_num=last,
        log_content=join_lines(lines) if lines else behind.log_content,
        is_tail=True,
        missing=missing,
    )


def _from_executor(run: ArchivedRun, first: int, fetch: Fetch, timeout_s: float) -> LogPiece | None:
    """Return archived lines that cannot be read, from the executor; None: it has none.

    Their file may be in the folder of another node, or the store may not answer. The lines are counted, as
    in a pull: some clients name others than those that they return.
    """
    try:
        piece = fetch(first, min(timeout_s, FINAL_S) if run.is_final else timeout_s)
    except XxlJobError:
        return None
    if not piece.from_line_num <= first <= piece.to_line_num:
        return None
    lines = split_lines(piece.log_content)[first - piece.from_line_num :]
    last = first + len(lines) - 1
    is_end = piece.is_end and last >= run.last_line
    if not lines:
        return None
    return replace(piece, from_line_num=first, to_line_num=last, log_content=join_lines(lines), is_end=is_end)


def _behind(run: ArchivedRun, part: ArchivedLines, fetch: Fetch, timeout_s: float) -> LogPiece:
    """Return lines behind the archived ones."""
    nothing = _piece(run, part)
    if run.has_tail:
        return replace(nothing, is_end=True)
    tail = run.tail
    try:
        piece = fetch(part.first, min(timeout_s, FINAL_S) if tail is not None else timeout_s)
    except ExecutorUnreachable:
        if tail is None:
            raise
        return replace(nothing, log_content=tail.text, is_end=True, missing=(*nothing.missing, tail))
    has_lines = piece.to_line_num >= piece.from_line_num
    is_absent = tail is not None and not has_lines and bool(piece.log_content)
    missing = (*nothing.missing, *((tail,) if tail is not None and is_absent else ()))
    return replace(piece, archived=run.last_line, missing=missing)


def _piece(run: ArchivedRun, part: ArchivedLines) -> LogPiece:
    gap = run.gap
    gaps = () if gap is None or gap in part.missing else (gap,)
    text = join_lines(part.lines)
    return LogPiece(
        part.first, part.last, text, False, archived=run.last_line, missing=(*gaps, *part.missing)
    )


def _announced_features(session: Session, peer: Peer) -> list[str]:
    """Return the capabilities of the executor of ours that is registered there, if any."""
    boots = registry.find_boots(session, {peer.address})
    return boots.get((peer.address, peer.app_name), ("", ""))[1].split(",")


def peer_of(session: Session, log: JobLog, caller: Caller, *, at_ms: Millis) -> Peer:
    """Return the run's executor with the token of its group.

    Raises ExecutorUnreachable if it has left the group or the group was deleted. An executor that registers
    may have deregistered only to finish its runs.
    """
    address = log.executor_address
    if not address:
        raise Conflict(N_("The run has no executor address"))
    group = group_lists.find_group(session, log.job_group)
    if group is None:
        raise ExecutorUnreachable(address, GROUP_GONE)
    may_be_ending = store_logs.is_unfinished(log.trigger_code, log.handle_code) and not withholds_token(group)
    addresses = {group.id: [address]} if group.tokens and not may_be_ending else {}
    if find_foreign(session, addresses, {group.id: group}, now_ms=at_ms):
        raise ExecutorUnreachable(address, LEFT_GROUP)
    return Peer(address, group.app_name, *(group.tokens or caller.tokens))
