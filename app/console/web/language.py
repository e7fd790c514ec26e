"""Translation: Flask-Babel's catalogue, cached per request, and the functions that use it."""

from functools import lru_cache
from gettext import NullTranslations
from typing import Any, cast

from flask import g
from flask_babel import get_translations
from flask_babel import lazy_gettext as _lazy_gettext
from flask_babel import lazy_pgettext as _lazy_pgettext
from markupsafe import Markup

#: cached template texts, all languages together
TEXTS_KEPT = 4_096


def _(msgid: str, **params: object) -> str:
    """Translate a text; parameters are named, as in ``%(id)s``."""
    text = catalogue().gettext(msgid)
    return text % params if params else text


def ngettext(singular: str, plural: str, num: int, **params: object) -> str:
    """Translate a text with a plural form; ``%(num)d`` is the number."""
    return catalogue().ngettext(singular, plural, num) % {"num": num, **params}


def lazy_gettext(msgid: str) -> str:
    """Return a text that is translated when it is shown."""
    return cast(str, _lazy_gettext(msgid))


def lazy_pgettext(context: str, msgid: str) -> str:
    """Return a text that is translated when it is shown, where one word has several translations."""
    return cast(str, _lazy_pgettext(context, msgid))


def catalogue() -> NullTranslations:
    """Return the catalogue of the reader's language."""
    try:
        return cast(NullTranslations, g.catalogue)
    except AttributeError:
        g.catalogue = get_translations()
        return cast(NullTranslations, g.catalogue)
    except RuntimeError:  # Outside an application texts stay untranslated.
        return NullTranslations()


def markup_of(msgid: str, **params: object) -> Markup:
    """Translate a text for a template; parameters are escaped. Cached: a list row has some thirty texts."""
    if not params:
        return _markup(catalogue(), msgid)
    return Markup(catalogue().gettext(msgid)) % params  # nosec B704  # the catalogue is ours


def plural_markup_of(singular: str, plural: str, num: int, **params: object) -> Markup:
    """Translate a text with a plural form for a template; parameters are escaped."""
    text = catalogue().ngettext(singular, plural, num)
    return Markup(text) % {"num": num, **params}  # nosec B704  # the catalogue is ours


@lru_cache(TEXTS_KEPT)
def _markup(texts: NullTranslations, msgid: str) -> Markup:
    no_params: dict[str, Any] = {}
    # "%%" becomes "%"
    return Markup(texts.gettext(msgid)) % no_params  # nosec B704  # the catalogue is ours
