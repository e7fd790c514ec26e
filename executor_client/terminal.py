"""Texts for a terminal."""


def printable(text: str, kept: str = "") -> str:
    """Return a text without control characters, which a terminal would obey, but for those ``kept``."""
    return "".join(each if each.isprintable() or each in kept else " " for each in text)
