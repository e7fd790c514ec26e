"""Long logs of Java executors, which send all lines at once: the whole lines of a truncated answer."""

import json
import re

from executor_client.wire.protocol import SUCCESS, Reply

_CONTENT = re.compile(r'"logContent"\s*:\s*"')
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def first_lines(answer: bytes) -> Reply | None:
    """Return the whole lines at the start of a truncated answer to ``/log``; None if there is none.

    The reply has no line numbers, because the caller knows them and reads on behind these lines.
    """
    text = answer.decode("utf-8", "replace")
    content = _CONTENT.search(text)
    if content is None:
        return None
    ends = [escape.end() for escape in _ESCAPE.finditer(text, content.end()) if escape[1] == "n"]
    try:
        lines = json.loads(f'"{text[content.end() : ends[-1]]}"', strict=False) if ends else ""
    except ValueError:  # the cut is in another member
        return None
    return Reply(SUCCESS, None, {"logContent": lines}) if lines else None
