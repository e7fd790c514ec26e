"""Texts of archived logs: redaction, and chunks as they are stored."""

import re
from typing import Final

from app.domain.archive.packing import pack_lines, unpack_lines

__all__ = ["REDACTED", "Redaction", "pack_lines", "unpack_lines"]

#: what stands in place of redacted text
REDACTED: Final = "***"


class Redaction:
    """Replaces what a regular expression matches; with an empty one nothing."""

    def __init__(self, pattern: str) -> None:
        self._pattern = re.compile(pattern) if pattern else None

    def redact(self, line: str) -> str:
        """Return a line without what matches."""
        return self._pattern.sub(REDACTED, line) if self._pattern is not None else line
