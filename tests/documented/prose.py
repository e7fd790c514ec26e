"""Prose of generated pages: paragraphs in lines of the length that other pages have."""

import textwrap

#: characters of a line, as ``tests/test_docs.py`` checks them
WIDTH = 100


def wrapped(text: str) -> str:
    """Return the paragraphs of a text with lines of at most WIDTH characters; longer words stay whole."""
    return "\n\n".join(
        textwrap.fill(" ".join(each.split()), WIDTH, break_long_words=False, break_on_hyphens=False)
        for each in text.strip().split("\n\n")
    )
