"""Standard streams, which are None if they are closed, and text that is safe for a terminal."""

import sys
from typing import TextIO


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a standard stream is a terminal."""
    return stream is not None and stream.isatty()


def read_line() -> str:
    """Return the next line of standard input, "" at its end."""
    return "" if sys.stdin is None else sys.stdin.readline()


def write_line(stream: TextIO | None, line: str) -> None:
    """Write a line to a standard stream."""
    if stream is not None:
        stream.write(f"{line}\n")


def printable(text: str, exceptions: str = "") -> str:
    """Return a text without control characters, which a terminal would execute, except ``exceptions``."""
    return "".join(
        character if character.isprintable() or character in exceptions else " " for character in text
    )
