"""Lines of a run's log, fetched from its executor in pieces."""

import math
from dataclasses import dataclass, replace

from app.clock import Millis, now_ms
from app.database.engine import read_scope
from app.domain.access.permissions import Actor
from app.domain.archive.missing import MissingLines
from app.domain.enums import HandleCode, TriggerCode
from app.domain.runs.outcome import outcome_of
from app.models.log import JobLog
from app.services.executors.callers import Caller
from app.services.run_logs.log_pieces import split_lines
from app.services.runs import logs
from executor_client.wire.run_reports import Progress


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a log; if ``last`` is below ``first`` there are none, and ``message`` may give the reason."""

    first: int
    last: int
    lines: list[str]
    is_end: bool
    #: outcome of the run as it was before they were read
    outcome: str
    message: str = ""
    progress: Progress | None = None
    #: how long the run has been running; None: not known
    elapsed_ms: Millis | None = None
    #: whether these are the last lines of the log, as requested
    is_tail: bool = False
    #: last line that the archive has; 0: none
    archived: int = 0
    #: lines of the log that are known to be missing
    missing: tuple[MissingLines, ...] = ()

    def absent(self, first: int) -> list[MissingLines]:
        """Return what is missing from the line ``first``, which was asked for, up to these; or to the end."""
        return [
            part for part in self.missing if first <= part.last < self.first or not (part.last or self.lines)
        ]


def has_log(log: JobLog) -> bool:
    """Whether the run reached, or may have reached, an executor."""
    if log.handle_code != HandleCode.NONE and log.executor_address:
        return True
    return log.trigger_code in (TriggerCode.NONE, TriggerCode.ACCEPTED, TriggerCode.UNRESOLVED) and (
        bool(log.executor_address) or log.trigger_code == TriggerCode.NONE
    )


def fetch_lines(
    log_id: int,
    first: int,
    *,
    actor: Actor,
    caller: Caller,
    timeout_s: float = math.inf,
    last_lines: int = 0,
) -> Lines:
    """Fetch the lines from ``first`` on, from the archive or in ``timeout_s`` from the executor.

    With ``last_lines``, the archive, or an executor that can, returns that many of its end instead. Lines
    that were not kept are left out: the first one may be behind ``first``.

    The log has ended if there are no new lines and the run has a result, unless it was killed and its handler
    has not ended. The executor's own "end" is ignored, because it is also reported for a log that does not
    exist yet.
    """
    with read_scope() as session:
        log = logs.get_log(session, log_id, actor=actor)
    state = outcome_of(log.trigger_code, log.handle_code, log.killed)
    if not log.executor_address:
        return Lines(first, first - 1, [], log.trigger_code != TriggerCode.NONE, state)
    piece = logs.read_log(
        log_id, first, actor=actor, caller=caller, timeout_s=timeout_s, last_lines=last_lines
    )
    if piece.is_tail or piece.archived:
        first = max(first, piece.from_line_num)
    if piece.to_line_num < first:
        is_end = _has_ended(log) and not piece.is_running
        lines = Lines(first, first - 1, [], is_end, state, message=piece.log_content.strip())
    else:
        lines = Lines(first, piece.to_line_num, split_lines(piece.log_content), False, state)
    elapsed_ms = now_ms() - log.started_ms if piece.progress is not None and log.started_ms else None
    return replace(
        lines,
        progress=piece.progress,
        elapsed_ms=elapsed_ms,
        is_tail=piece.is_tail,
        archived=piece.archived,
        missing=piece.missing,
    )


def _has_ended(log: JobLog) -> bool:
    return log.handle_code != HandleCode.NONE or log.trigger_code not in (
        TriggerCode.NONE,
        TriggerCode.ACCEPTED,
    )
