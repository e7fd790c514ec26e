"""Long logs: Java executors send all lines of a log at once, however many; the first of them are read."""

import json
import re

from executor_client.wire.protocol import SUCCESS, Reply

_CONTENT = re.compile(r'"logContent"\s*:\s*"')
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def first_lines(answer: bytes) -> Reply | None:
    """Return the whole lines at the start of an answer to ``/log`` that is cut; None if it shows none.

    Without its line numbers, which the caller knows: the log goes on behind them.
    """
    text = answer.decode("utf-8", "replace")
    content = _CONTENT.search(text)
    if content is None:
        return None
    ends = [found.end() for found in _ESCAPE.finditer(text, content.end()) if found[1] == "n"]
    try:
        lines = json.loads(f'"{text[content.end() : ends[-1]]}"', strict=False) if ends else ""
    except ValueError:  # the cut is in another member
        return None
    return Reply(SUCCESS, None, {"logContent": lines}) if lines else None
