"""Matchers of archived lines: a text, or a regular expression in a process with a time limit."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, Protocol, Self

from app.clock import SECOND_MS
from app.domain.archive.folding import fold
from app.domain.archive.trigrams import Need, holds, load_need, need_of
from app.domain.text.texts import N_
from app.errors import InvalidInput
from app.services.archive import regex_program
from app.services.archive.regex_program import IGNORES_CASE, MARKS_MAX

#: characters of a line that a hit has, and how many of them are before its first match
SHOWN_MAX: Final = 1_000
BEFORE_MAX: Final = 100
#: longest time in seconds for a piece, and characters of a piece
PIECE_S: Final = 1.5
PIECE_MAX: Final = 256 * 1024
#: longest time until the program has started and read the expression
START_S: Final = 10.0
TOO_SLOW = N_("The regular expression takes too long; simplify it")


_ROOT: Final = str(Path(regex_program.__file__).parents[3])
#: only this program and what it imports, but none of the packages installed, as they take long
_PROGRAM: Final = (
    f"import sys; sys.path.append(sys.argv[1]); from {regex_program.__name__} import main; main()"
)


class Match(NamedTuple):
    """A line that matches."""

    #: number in its text, from 0
    line: int
    #: the line, or the part of a long one around its first match
    text: str
    #: start and end of the matches in that
    marks: tuple[tuple[int, int], ...]
    #: whether it is only a part of the line
    is_cut: bool = False


class Matcher(Protocol):
    """What a search looks for."""

    @property
    def need(self) -> Need | None:
        """What each match has, for the index; None: nothing is known."""

    def find(self, text: str, first: int) -> Iterator[Match]:
        """Yield the lines of a text that match, from line ``first`` on, counted from 0."""


def match_of(line: int, text: str, marks: list[tuple[int, int]]) -> Match:
    """Return a match, of a long line only the part around it."""
    if len(text) <= SHOWN_MAX:
        return Match(line, text, tuple(marks))
    start = max(0, marks[0][0] - BEFORE_MAX)
    part = text[start : start + SHOWN_MAX]
    inside = [(a - start, min(b - start, len(part))) for a, b in marks if a - start < len(part)]
    return Match(line, part, tuple(inside), is_cut=True)


class TextMatcher:
    """Looks for a text."""

    def __init__(self, needle: str, *, ignores_case: bool) -> None:
        self._ignores_case = ignores_case
        self._needle = fold(needle) if ignores_case else needle
        self.need = need_of(needle)

    def find(self, text: str, first: int) -> Iterator[Match]:
        """Yield the lines that have the text."""
        haystack, needle = fold(text) if self._ignores_case else text, self._needle
        at, last_at, line = haystack.find(needle), 0, 0
        while at >= 0:
            line += haystack.count("\n", last_at, at)
            start, end = haystack.rfind("\n", 0, at) + 1, haystack.find("\n", at)
            end = len(haystack) if end < 0 else end
            if line >= first:
                yield match_of(line, text[start:end], self._marks(haystack[start:end], at - start))
            last_at = at
            at = haystack.find(needle, end)

    def _marks(self, line: str, at: int) -> list[tuple[int, int]]:
        marks = list[tuple[int, int]]()
        while at >= 0 and len(marks) < MARKS_MAX:
            marks.append((at, at + len(self._needle)))
            at = line.find(self._needle, marks[-1][1])
        return marks


class RegexMatcher:
    """Looks for a regular expression; its process is killed when it takes too long."""

    def __init__(self, pattern: str, *, ignores_case: bool) -> None:
        arguments = [sys.executable, "-I", "-S", "-W", "ignore", "-c", _PROGRAM, _ROOT]
        self._process = process = subprocess.Popen(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert process.stdin is not None
        assert process.stdout is not None
        self._in: BinaryIO = process.stdin  # type: ignore[assignment]
        self._out = process.stdout
        self._answers = select.poll()
        self._answers.register(self._out, select.POLLIN)
        try:
            flags = IGNORES_CASE if ignores_case else 0
            answer = self._call(bytes([flags]) + pattern.encode(), START_S)
        except BaseException:
            self.close()
            raise
        if error := answer.get("error"):
            self.close()
            raise InvalidInput("q", N_("Use a valid regular expression (%(reason)s)", reason=error))
        self.need = load_need(answer["need"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        with suppress(OSError):
            self._process.communicate()

    def find(self, text: str, first: int) -> Iterator[Match]:
        """Yield the lines that match; raises InvalidInput if that takes too long."""
        if self.need is not None and not holds(self.need, fold(text)):
            return
        lines = text.removesuffix("\n").split("\n")
        for start, end in pieces_of(lines):
            position = max(first - start, 0)
            while position < end - start:
                content = position.to_bytes(4) + "\n".join(lines[start:end]).encode("utf-8", "replace")
                matches = self._call(content, PIECE_S)
                for number, marks in matches:
                    yield match_of(start + number, lines[start + number], [(a, b) for a, b in marks])
                if len(matches) < regex_program.LINES_MAX:
                    break
                position = matches[-1][0] + 1

    def _call(self, content: bytes, limit_s: float) -> Any:
        """Return the answer of the program to a request."""
        try:
            regex_program.write_block(self._in, content)
        except OSError as exc:
            raise InvalidInput("q", TOO_SLOW) from exc
        until_s = time.monotonic() + limit_s
        head = self._read(4, until_s)
        return json.loads(self._read(int.from_bytes(head), until_s))

    def _read(self, size: int, until_s: float) -> bytes:
        content = b""
        while len(content) < size:
            left_ms = (until_s - time.monotonic()) * SECOND_MS
            if left_ms <= 0 or not self._answers.poll(left_ms):
                raise InvalidInput("q", TOO_SLOW)
            part = os.read(self._out.fileno(), size - len(content))
            if not part:
                raise InvalidInput("q", TOO_SLOW)
            content += part
        return content


def pieces_of(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Yield ranges of lines that have PIECE_MAX characters together, or one line that has more."""
    start, size = 0, 0
    for number, line in enumerate(lines):
        if size and size + len(line) > PIECE_MAX:
            yield start, number
            start, size = number, 0
        size += len(line) + 1
    if size:
        yield start, len(lines)


@contextmanager
def open_matcher(pattern: str, *, is_regex: bool, ignores_case: bool) -> Iterator[Matcher]:
    """Hold a matcher during the block; raises InvalidInput for an invalid expression."""
    if not is_regex:
        yield TextMatcher(pattern, ignores_case=ignores_case)
        return
    with RegexMatcher(pattern, ignores_case=ignores_case) as matcher:
        yield matcher
