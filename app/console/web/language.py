"""Translating: Flask-Babel's catalogues, each looked for once a request, and the functions of views and templates on them."""

from functools import lru_cache
from gettext import NullTranslations
from typing import Any, cast

from flask import g
from flask_babel import get_translations
from flask_babel import lazy_gettext as _lazy_gettext
from markupsafe import Markup

#: texts of the templates that are kept ready, of all languages together
TEXTS_KEPT = 4_096


def _(msgid: str, **params: object) -> str:
    """Return the text in the reader's language; parameters are named, as in ``%(id)s``."""
    text = catalogue().gettext(msgid)
    return text % params if params else text


def ngettext(singular: str, plural: str, num: int, **params: object) -> str:
    """Return the text for one or for several in the reader's language; ``%(num)d`` is the number."""
    return catalogue().ngettext(singular, plural, num) % {"num": num, **params}


def lazy_gettext(msgid: str) -> str:
    """Return what becomes the text in the reader's language when it is shown."""
    return cast(str, _lazy_gettext(msgid))


def catalogue() -> NullTranslations:
    """Return the texts of the reader's language."""
    try:
        return cast(NullTranslations, g.catalogue)
    except AttributeError:
        g.catalogue = get_translations()
        return cast(NullTranslations, g.catalogue)
    except RuntimeError:  # no application is at hand: texts stay as they are
        return NullTranslations()


def marked(msgid: str, **params: object) -> Markup:
    """Return the text as a part of a page: what it is given is escaped. A list asks for some thirty a row."""
    return _marked(catalogue(), msgid) if not params else Markup(catalogue().gettext(msgid)) % params


def marked_count(singular: str, plural: str, num: int, **params: object) -> Markup:
    """Return the text for one or for several as a part of a page."""
    return Markup(catalogue().ngettext(singular, plural, num)) % {"num": num, **params}


@lru_cache(TEXTS_KEPT)
def _marked(texts: NullTranslations, msgid: str) -> Markup:
    no_params: dict[str, Any] = {}
    return (
        Markup(texts.gettext(msgid)) % no_params
    )  # a doubled percent sign is one in every text of a template
