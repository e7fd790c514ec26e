"""Rolling log of a run, fetched in pieces from its executor."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

from app.console.web.current import translate, translate_error
from app.db import read_scope
from app.domain.enums import HandleCode, TriggerCode
from app.domain.permissions import Actor
from app.domain.run_outcome import outcome_of
from app.domain.texts import N_
from app.errors import XxlJobError
from app.models.log import JobLog
from app.services.runs import logs
from app.services.runs.logs import Caller

#: longest text of a whole log, in MiB, and the longest time for all its pieces, in seconds
WHOLE_MAX_MIB = 64
WHOLE_MAX_S = 60


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


def has_log(log: JobLog) -> bool:
    """Whether the run reached, or may have reached, an executor."""
    if log.handle_code != HandleCode.NONE and log.executor_address:
        return True
    return log.trigger_code in (TriggerCode.NONE, TriggerCode.ACCEPTED, TriggerCode.UNRESOLVED) and (
        bool(log.executor_address) or log.trigger_code == TriggerCode.NONE
    )


def fetch_lines(
    log_id: int, first: int, *, actor: Actor, caller: Caller, timeout_s: float = math.inf
) -> Lines:
    """Fetch the lines from ``first`` on from the executor, in ``timeout_s`` or the time of one call.

    The log has ended if there are no new lines and the run has a result. The executor's own "end" is ignored,
    because it is also reported for a log that does not exist yet.
    """
    with read_scope() as session:
        log = logs.get_log(session, log_id, actor=actor)
    state = outcome_of(log.trigger_code, log.handle_code, log.killed)
    if not log.executor_address:
        return Lines(first, first - 1, [], log.trigger_code != TriggerCode.NONE, state)
    piece = logs.read_log(log_id, first, actor=actor, caller=caller, timeout_s=timeout_s)
    if piece.to_line_num < first:
        return Lines(first, first - 1, [], _has_ended(log), state, message=piece.log_content.strip())
    return Lines(first, piece.to_line_num, split_lines(piece.log_content), False, state)


def whole_text(log_id: int, *, actor: Actor, caller: Caller) -> Iterator[str]:
    """Yield the log written so far in pieces, each fetched when it is wanted; the first is empty.

    Holds the permit of a stream until its end or ``close``. Raises TooManyCalls and ExecutorUnreachable
    before the first piece; after it, an error or a limit ends the text with a line that names it.
    """
    until = time.monotonic() + WHOLE_MAX_S
    with caller.permit(stream=True) as held:
        found = fetch_lines(log_id, 1, actor=actor, caller=held)
        yield ""
        size, cut = 0, ""
        while found.lines and not cut:
            text = "".join(f"{line}\n" for line in found.lines)
            size += len(text.encode("utf-8", "replace"))
            if size > WHOLE_MAX_MIB * 1024 * 1024:
                cut = translate(N_("the log is longer than %(size)s MiB", size=WHOLE_MAX_MIB))
                break
            yield text
            left_s = until - time.monotonic()
            try:
                if left_s > 0:
                    found = fetch_lines(log_id, found.last + 1, actor=actor, caller=held, timeout_s=left_s)
            except XxlJobError as exc:
                cut = translate_error(exc)
            if time.monotonic() >= until:
                cut = translate(N_("the log did not end within %(seconds)s s", seconds=WHOLE_MAX_S))
        if cut:
            mark = translate(N_("cut: %(reason)s", reason=cut))
            yield f"… [{mark}]\n"


def split_lines(content: str) -> list[str]:
    """Return the lines of a piece; a line break at its end does not start another line."""
    text = content.replace("\r\n", "\n").removesuffix("\n")
    return text.split("\n")


def _has_ended(log: JobLog) -> bool:
    return log.handle_code != HandleCode.NONE or log.trigger_code not in (
        TriggerCode.NONE,
        TriggerCode.ACCEPTED,
    )
