"""Translating: Flask-Babel's functions with types."""

from typing import cast

from flask_babel import gettext
from flask_babel import lazy_gettext as _lazy_gettext
from flask_babel import ngettext as _ngettext


def _(msgid: str, **params: object) -> str:
    """Return the text in the reader's language; parameters are named, as in ``%(id)s``."""
    return cast(str, gettext(msgid, **params))


def ngettext(singular: str, plural: str, num: int, **params: object) -> str:
    """Return the text for one or for several in the reader's language; ``%(num)d`` is the number."""
    return cast(str, _ngettext(singular, plural, num, **params))


def lazy_gettext(msgid: str) -> str:
    """Return what becomes the text in the reader's language when it is shown."""
    return cast(str, _lazy_gettext(msgid))
