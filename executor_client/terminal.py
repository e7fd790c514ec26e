"""Terminals: whether a stream is one, and texts for it."""

from typing import TextIO


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a standard stream is a terminal; None, which a closed one is, is none."""
    return stream is not None and stream.isatty()


def printable(text: str, kept: str = "") -> str:
    """Return a text without control characters, which a terminal would obey, but for those ``kept``."""
    return "".join(each if each.isprintable() or each in kept else " " for each in text)
