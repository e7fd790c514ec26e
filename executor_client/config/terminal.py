"""Standard streams, which are None if they are closed, and text that is safe for a terminal."""

import re
import sys
from typing import TextIO

#: Select Graphic Rendition, such as ``ESC[1;31m``: colour and weight of the text that follows
_COLOUR = re.compile(r"(\x1b\[[0-9;:]*m)")
_COLOUR_END = "\x1b[0m"
#: tab, no-break space and ideographic space, which are no control characters of a terminal
_SPACES = "\t\xa0\u3000"


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


def printable_log_line(text: str) -> str:
    """Return a line of a log with its colours, which end with it, and without other control characters."""
    pieces = _COLOUR.split(text)  # every second one is a colour
    line = "".join(piece if at % 2 else printable(piece, _SPACES) for at, piece in enumerate(pieces))
    return line if len(pieces) == 1 else line + _COLOUR_END
