"""Translating: Flask-Babel's functions with types."""

from typing import cast

from flask_babel import gettext
from flask_babel import lazy_gettext as _lazy_gettext


def _(msgid: str, **params: object) -> str:
    """Return the text in the reader's language; parameters are named, as in ``%(id)s``."""
    return cast(str, gettext(msgid, **params))


def lazy_gettext(msgid: str) -> str:
    """Return what becomes the text in the reader's language when it is shown."""
    return cast(str, _lazy_gettext(msgid))
