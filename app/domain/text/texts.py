"""Translatable texts: translated where they are shown, not where they are raised.

``N_("Child job id (%(id)s) is invalid", id=7)`` is an English ``str`` that keeps its message id and
parameters, so that rules and services need no language. Babel extracts ``N_`` by default.
"""

import html
import re
import unicodedata
from collections.abc import Mapping

_BREAKS = re.compile(r"<br\s*/?>", re.IGNORECASE)
_TAGS = re.compile(r"</?(?:span|b|font|div|p)\b[^<>]*>", re.IGNORECASE)


class Text(str):
    """English text of a message, with its message id and parameters for translation."""

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


def with_field_name(message: str, names: Mapping[str, str]) -> str:
    """Return a message; a field that is among its parameters gets its name of ``names``."""
    if not isinstance(message, Text) or message.params.get("field") not in names:
        return message
    return Text(message.msgid, {**message.params, "field": names[str(message.params["field"])]})


def fold(text: str) -> str:
    """Return a key that is equal for texts that differ only in case, blanks or the encoding of accents."""
    return unicodedata.normalize("NFC", " ".join(text.split())).casefold()


def plain_text(text: str) -> str:
    """Return a message as plain text: rows written by a Java admin contain HTML."""
    if "<br" not in text and "<span" not in text:
        return text
    return html.unescape(_TAGS.sub("", _BREAKS.sub("\n", text))).strip()


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: ``1 job``, ``2 jobs``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
