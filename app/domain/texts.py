"""Texts for people that are translated where they are shown, not where they are raised.

``N_("Child job id (%(id)s) is invalid", id=7)`` is an English ``str`` that remembers its message id and its parameters, so that
rules and services need no language; Babel extracts ``N_`` by default.
"""

import unicodedata


class Text(str):
    """English text of a message, with what is needed to say it in another language."""

    __slots__ = ("msgid", "params")
    msgid: str
    params: dict[str, object]

    def __new__(cls, msgid: str, params: dict[str, object]) -> "Text":
        text = super().__new__(cls, msgid % params if params else msgid)
        text.msgid = msgid
        text.params = params
        return text


def N_(msgid: str, **params: object) -> Text:  # noqa: N802 - the name Babel knows
    """Mark ``msgid`` for translation; parameters are named, as in ``%(id)s``."""
    return Text(msgid, params)


def folded(text: str) -> str:
    """Return what is equal for texts that differ only in case, in the number of blanks, or in how an accent is written."""
    return unicodedata.normalize("NFC", " ".join(text.split())).casefold()
