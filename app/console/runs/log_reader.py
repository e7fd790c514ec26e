"""Whole log of a run as text, read in pieces from the archive or its executor."""

import time
from collections.abc import Iterable, Iterator

from app.console.web.current import translate, translate_error
from app.domain.access.permissions import Actor
from app.domain.archive.missing import MissingLines
from app.domain.text.texts import N_
from app.errors import XxlJobError
from app.services.executors.callers import Caller
from app.services.runs.log_lines import fetch_lines

#: longest text of a whole log, in MiB, and the longest time for all its pieces, in seconds
WHOLE_MAX_MIB = 64
WHOLE_MAX_S = 60


def whole_text(log_id: int, *, actor: Actor, caller: Caller) -> Iterator[str]:
    """Yield the log written so far in pieces, each fetched on demand; the first is empty.

    Holds the permit of a stream until its end or ``close``. Raises TooManyCalls and ExecutorUnreachable
    before the first piece; after it, an error or a limit ends the text with a line that names it.
    """
    until = time.monotonic() + WHOLE_MAX_S
    with caller.permit(stream=True) as permit:
        piece = fetch_lines(log_id, 1, actor=actor, caller=permit)
        yield ""
        size, cut, position = 0, "", 1
        while piece.lines and not cut:
            text = _marks(piece.absent(position)) + "".join(f"{line}\n" for line in piece.lines)
            position = piece.last + 1
            size += len(text.encode("utf-8", "replace"))
            if size > WHOLE_MAX_MIB * 1024 * 1024:
                cut = translate(N_("the log is longer than %(size)s MiB", size=WHOLE_MAX_MIB))
                break
            yield text
            left_s = until - time.monotonic()
            try:
                if left_s > 0:
                    piece = fetch_lines(log_id, piece.last + 1, actor=actor, caller=permit, timeout_s=left_s)
            except XxlJobError as exc:
                cut = translate_error(exc)
            if time.monotonic() >= until:
                cut = translate(N_("the log did not end within %(seconds)s s", seconds=WHOLE_MAX_S))
        if cut:
            yield _mark(translate(N_("cut: %(reason)s", reason=cut)))
        elif not piece.lines:
            yield _marks(piece.absent(position))


def _mark(text: str) -> str:
    return f"… [{text}]\n"


def _marks(missing: Iterable[MissingLines]) -> str:
    """Return lines that name missing ones."""
    return "".join(_mark(translate(part.text)) for part in missing)
