"""Errors in log lines, found as the browser finds them; ``static/js/log-levels.js`` has the same patterns.

Levels of whole logs are needed where only the last lines are sent to the browser.
"""

import re
from collections.abc import Iterable

#: characters of a line that decide
_READ = 2000
#: 2026-11-20 08:00:00,123 or [2026-11-20T08:00:00.123+08:00], and one blank: others indent what follows
STAMP = re.compile(
    r"^\[?\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?\]?(?:[ \t]|$)", re.ASCII
)
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;:?]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
#: a line of a lower level may mention an exception without being an error
_CALM = re.compile(r"^\s*(?:\S+\s+){0,3}?[\[(]?(?:INFO|DEBUG|TRACE|NOTICE|WARN(?:ING)?)\b", re.ASCII)
_NAMED = re.compile(r"\b\w+(?:Error|Exception)\b(?!\.\w)|\b(?:Error|Exception)(?=:|$)|^Exception\b", re.ASCII)
_ERRORS = re.compile(
    r"\b(?:ERROR|FATAL|CRITICAL|SEVERE)\b"
    r"|^\S*(?:Error|Exception):"
    r"|^Traceback \(most recent call last\)|^During handling of the above exception"
    r"|^\s*Caused by: "
    r"|\b(?:Fatal|Parse) error: |^Uncaught |^fatal: |^panic: |\bERR!"
    r"|: (?:command )?not found$|: No such file or directory$|: Permission denied$|: syntax error\b"
    r"|\bSegmentation fault\b"
    r"|\bis not recognized as (?:the name of|an internal)\b"
    r"|^\s*\+ (?:CategoryInfo|FullyQualifiedErrorId)\s*:"
    r"|^\S+\.groovy: \d+: ",
    re.ASCII,
)
_FRAMES = re.compile(
    r"^\s+at\s+\S"
    r'|^\s*File "[^"]*", line \d+'
    r"|^\s*#\d+ (?:\{main\}|\[internal function\]|\S+\(\d+\): )"
    r"|^\s*\.\.\. \d+ (?:more|common frames omitted)"
    r"|^At (?:line|\S.*):\d+ char:\d+"
    r"|^\s+thrown in .* on line \d+",
    re.ASCII,
)
_WARNS = re.compile(r"\bWARN(?:ING)?\b|\b(?:\w*Warning|Deprecated): ", re.ASCII)
_INDENTED = re.compile(r"^\s+\S", re.ASCII)
_BAD = ("error", "frame")


def level_of(line: str, before: str = "") -> str:
    """Return "error", "frame", "warn" or ""; ``before`` is the level of the line above."""
    text = STAMP.sub("", line[:_READ], count=1)
    if _FRAMES.search(text) or (before == "frame" and _INDENTED.search(text)):
        return "frame"
    if _ERRORS.search(text) or (not _CALM.search(text) and _NAMED.search(text)):
        return "error"
    return "warn" if _WARNS.search(text) else ""


def split_levels(lines: Iterable[str]) -> list[tuple[str, str]]:
    """Return each line without terminal colours, behind its level."""
    texts: list[tuple[str, str]] = []
    for line in lines:
        text = _ESCAPES.sub("", line)
        texts.append((level_of(text, texts[-1][0] if texts else ""), text))
    return texts


class ErrorCount:
    """Count of the errors in a log read in pieces; an error with its stack counts once."""

    def __init__(self) -> None:
        self.count = 0
        self._level = ""

    def add(self, lines: Iterable[str]) -> None:
        """Count the errors that begin in the next lines."""
        for line in lines:
            text = _ESCAPES.sub("", line) if "\x1b" in line else line
            before, self._level = self._level, level_of(text, self._level)
            self.count += self._level in _BAD and before not in _BAD
