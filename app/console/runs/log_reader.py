"""Rolling log of a run, fetched in pieces from its executor."""

from dataclasses import dataclass

from app.db import read_scope
from app.domain.enums import HandleCode, TriggerCode
from app.domain.permissions import Actor
from app.models.log import JobLog
from app.services.runs import logs
from app.services.runs.logs import Caller

#: most pieces fetched for the text of a whole log
PIECES_MAX = 200


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a log; if ``last`` is below ``first`` there are none, and ``message`` may give the reason."""

    first: int
    last: int
    lines: list[str]
    is_end: bool
    message: str = ""


def has_log(log: JobLog) -> bool:
    """Whether the run reached, or may have reached, an executor."""
    if log.handle_code != HandleCode.NONE and log.executor_address:
        return True
    return log.trigger_code in (TriggerCode.NONE, TriggerCode.ACCEPTED, TriggerCode.UNRESOLVED) and (
        bool(log.executor_address) or log.trigger_code == TriggerCode.NONE
    )


def fetch_lines(log_id: int, first: int, *, actor: Actor, caller: Caller) -> Lines:
    """Fetch the lines from ``first`` on from the executor.

    The log has ended if there are no new lines and the run has a result. The executor's own "end" is ignored,
    because it is also reported for a log that does not exist yet.
    """
    with read_scope() as session:
        log = logs.get_log(session, log_id, actor=actor)
    if not log.executor_address:
        return Lines(first, first - 1, [], is_end=log.trigger_code != TriggerCode.NONE)
    piece = logs.read_log(log_id, first, actor=actor, caller=caller)
    if piece.to_line_num < first:
        return Lines(first, first - 1, [], is_end=_has_ended(log), message=piece.log_content.strip())
    return Lines(first, piece.to_line_num, split_lines(piece.log_content), is_end=False)


def whole_text(log_id: int, *, actor: Actor, caller: Caller) -> str:
    """Return the log written so far, at most PIECES_MAX pieces; raises ExecutorUnreachable."""
    parts: list[str] = []
    first = 1
    for _round in range(PIECES_MAX):
        found = fetch_lines(log_id, first, actor=actor, caller=caller)
        if not found.lines and found.last < first:
            break
        parts.extend(found.lines)
        first = found.last + 1
    return "".join(f"{line}\n" for line in parts)


def split_lines(content: str) -> list[str]:
    """Return the lines of a piece; a line break at its end does not start another line."""
    text = content.replace("\r\n", "\n").removesuffix("\n")
    return text.split("\n")


def _has_ended(log: JobLog) -> bool:
    return log.handle_code != HandleCode.NONE or log.trigger_code not in (
        TriggerCode.NONE,
        TriggerCode.ACCEPTED,
    )
