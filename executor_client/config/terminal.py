"""Standard streams, each of which is None if it is closed, and texts for a terminal."""

import sys
from typing import TextIO


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a standard stream is a terminal."""
    return stream is not None and stream.isatty()


def read_line() -> str:
    """Return the next line of standard input; nothing at its end."""
    return "" if sys.stdin is None else sys.stdin.readline()


def write_line(stream: TextIO | None, line: str) -> None:
    """Write a line to a standard stream."""
    if stream is not None:
        stream.write(f"{line}\n")


def printable(text: str, kept: str = "") -> str:
    """Return a text without control characters, which a terminal would obey, but for those ``kept``."""
    return "".join(each if each.isprintable() or each in kept else " " for each in text)
