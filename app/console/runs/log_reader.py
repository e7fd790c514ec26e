"""The rolling log of a run, piece by piece from its executor."""

from dataclasses import dataclass

from app.db import read_scope
from app.domain.enums import HandleCode, TriggerCode
from app.domain.permissions import Actor
from app.models.log import JobLog
from app.services.runs import logs
from app.services.runs.logs import Caller

#: pieces of the whole log that are fetched for its text at most
PIECES_MAX = 200


@dataclass(frozen=True, slots=True)
class Lines:
    """Some lines of a log; ``last`` below ``first``: nothing new.

    ``note`` is what the executor said instead of a line.
    """

    first: int
    last: int
    lines: list[str]
    is_end: bool
    note: str = ""


def has_log(log: JobLog) -> bool:
    """Whether the run reached an executor, as far as can be told."""
    if log.handle_code != HandleCode.NONE and log.executor_address:
        return True
    return log.trigger_code in (TriggerCode.NONE, TriggerCode.ACCEPTED, TriggerCode.UNRESOLVED) and (
        bool(log.executor_address) or log.trigger_code == TriggerCode.NONE
    )


def ask_lines(log_id: int, first: int, *, actor: Actor, caller: Caller) -> Lines:
    """Ask the executor for the lines from ``first`` on.

    The end is where nothing new comes and the run has its result: executors also say "end" of a log that has
    not begun.
    """
    with read_scope() as session:
        log = logs.get_log(session, log_id, actor=actor)
    if not log.executor_address:
        return Lines(first, first - 1, [], is_end=log.trigger_code != TriggerCode.NONE)
    piece = logs.read_log(log_id, first, actor=actor, caller=caller)
    if piece.to_line_num < first:
        return Lines(first, first - 1, [], is_end=_has_ended(log), note=piece.log_content.strip())
    return Lines(first, piece.to_line_num, split_lines(piece.log_content), is_end=False)


def whole_text(log_id: int, *, actor: Actor, caller: Caller) -> str:
    """Return the log as far as it goes; raises ExecutorUnreachable."""
    parts: list[str] = []
    first = 1
    for _round in range(PIECES_MAX):
        found = ask_lines(log_id, first, actor=actor, caller=caller)
        if not found.lines and found.last < first:
            break
        parts.extend(found.lines)
        first = found.last + 1
    return "".join(f"{line}\n" for line in parts)


def split_lines(content: str) -> list[str]:
    """Return the lines of a piece; the line break at its end begins no new line."""
    text = content.replace("\r\n", "\n").removesuffix("\n")
    return text.split("\n")


def _has_ended(log: JobLog) -> bool:
    return log.handle_code != HandleCode.NONE or log.trigger_code not in (
        TriggerCode.NONE,
        TriggerCode.ACCEPTED,
    )
