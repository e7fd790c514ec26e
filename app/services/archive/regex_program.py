"""Program that searches lines with a regular expression of a user, in a process of its own.

A regular expression may take longer than the universe exists, and nothing but the end of its process stops
it. The program reads requests from standard input and writes answers to standard output, each four bytes of
length and a content: first the expression, a byte of flags before it; then texts, four bytes before each that
number its first line to search. It imports little, so that it starts in some milliseconds.
"""

import json
import re
import sys
import warnings
from typing import Any, BinaryIO, Final

from app.domain.archive.literals import need_of_regex
from app.domain.archive.trigrams import dump_need

#: characters of a line that are searched: what takes the square of its length still ends
LINE_MAX: Final = 4096
#: matches of one line that are marked, and lines of one answer
MARKS_MAX: Final = 20
LINES_MAX: Final = 1_000
IGNORES_CASE: Final = 1


def matching_lines(pattern: re.Pattern[str], text: str, first: int) -> list[list[Any]]:
    """Return the lines that match, from line ``first`` on: number from 0, and where the matches are."""
    lines: list[list[Any]] = []
    for number, line in enumerate(text.removesuffix("\n").split("\n")):
        if number < first or (match := pattern.search(line, 0, LINE_MAX)) is None:
            continue
        marks = [match.span()]
        while match is not None and len(marks) < MARKS_MAX:
            start = match.end() + (match.end() == match.start())
            match = pattern.search(line, start, LINE_MAX) if start <= len(line) else None
            marks += [match.span()] if match is not None else []
        lines.append([number, marks])
        if len(lines) == LINES_MAX:
            break
    return lines


def read_block(stream: BinaryIO) -> bytes | None:
    """Return the next content; None at the end."""
    head = stream.read(4)
    return stream.read(int.from_bytes(head)) if len(head) == 4 else None


def write_block(stream: BinaryIO, content: bytes) -> None:
    """Write a content."""
    stream.write(len(content).to_bytes(4) + content)
    stream.flush()


def main() -> None:
    """Answer requests until the end of the input."""
    warnings.simplefilter("ignore")
    source, answers = sys.stdin.buffer, sys.stdout.buffer
    request = read_block(source) or b"\0"
    flags = re.IGNORECASE if request[0] & IGNORES_CASE else re.NOFLAG
    try:
        pattern = re.compile(request[1:].decode(), flags)
        need = need_of_regex(request[1:].decode(), flags)
    except (re.error, OverflowError, RecursionError, ValueError) as exc:
        write_block(answers, json.dumps({"error": str(exc)}).encode())
        return
    write_block(answers, json.dumps({"need": dump_need(need)}).encode())
    while (block := read_block(source)) is not None:
        text = block[4:].decode("utf-8", "replace")
        write_block(answers, json.dumps(matching_lines(pattern, text, int.from_bytes(block[:4]))).encode())
