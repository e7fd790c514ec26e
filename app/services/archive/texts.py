"""Texts of archived logs: redaction before they are stored."""

import re
from typing import Final

#: what stands in place of redacted text
REDACTED: Final = "***"
#: characters of a part of a long line, and of those of it that the next part has again
PART_MAX: Final = 8_192
OVERLAP: Final = 4_096


class Redaction:
    """Replaces what a regular expression matches; with an empty one nothing."""

    def __init__(self, pattern: str) -> None:
        self._pattern = re.compile(pattern) if pattern else None

    def redact(self, line: str) -> str:
        """Return a line without what matches."""
        if self._pattern is None:
            return line
        return self._pattern.sub(REDACTED, line) if len(line) <= PART_MAX else _in_parts(self._pattern, line)


def _in_parts(pattern: re.Pattern[str], line: str) -> str:
    """Redact a long line in parts that overlap.

    Many expressions take the square of the length: ``.+@.+`` minutes for a line of 512 KiB without a
    blank, in which nothing else of the process runs. A match that begins in a part may go on behind it.
    """
    texts, done, position, end = list[str](), 0, 0, 0
    while end < len(line):
        end = min(position + PART_MAX, len(line))
        for match in pattern.finditer(line, position, end):
            start, stop = match.span()
            if stop == end < len(line):
                whole = pattern.match(line, start)
                if whole is None:
                    break
                stop = whole.end()
            texts += (line[done:start], REDACTED)
            done = stop
        position = max(done, end - OVERLAP)
    return "".join((*texts, line[done:]))
