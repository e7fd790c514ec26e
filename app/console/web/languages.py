"""Language and time zone of a request: the user's, the cookie's, the browser's or the configured ones."""

from flask import Flask, has_request_context, request
from flask_babel import Babel

from app.console.web.current import current_user, settings
from app.console.web.language import markup_of, plural_markup_of
from app.domain.schedules.schedule import zone
from app.errors import InvalidInput
from app.settings.config import Config

#: language chosen before a login
LANGUAGE_COOKIE = "XXL_JOB_LANGUAGE"
#: our names -> the names of the catalogues
LOCALES = {"zh_CN": "zh_Hans_CN", "zh_TW": "zh_Hant_TW", "en": "en"}
#: language tags of browsers -> our names
_TAGS = {
    "zh-hant": "zh_TW",
    "zh-tw": "zh_TW",
    "zh-hk": "zh_TW",
    "zh-mo": "zh_TW",
    "zh": "zh_CN",
    "en": "en",
}


def init_app(app: Flask, config: Config) -> None:
    """Set up Babel to choose language and zone per request."""
    app.config["BABEL_DEFAULT_LOCALE"] = "en"
    app.config["BABEL_DEFAULT_TIMEZONE"] = config.time_zone
    Babel(app, locale_selector=choose_language, timezone_selector=choose_zone)
    app.jinja_env.globals.update(_=markup_of, gettext=markup_of, ngettext=plural_markup_of)


def choose_zone() -> str | None:
    """Return the time zone of the user; None for the configured one."""
    user = current_user() if has_request_context() else None
    if user is None or not user.time_zone:
        return None
    try:
        return zone(user.time_zone).key
    except InvalidInput:
        return None


def choose_language() -> str | None:
    """Return the locale of this request; None outside a request."""
    if not has_request_context():
        return None
    return LOCALES[language_of_request()]


def language_of_request() -> str:
    """Return ``zh_CN``, ``zh_TW`` or ``en``."""
    user = current_user()
    choices = [user.language if user is not None else "", request.cookies.get(LANGUAGE_COOKIE, "")]
    for language in [*choices, _of_browser()]:
        if language in LOCALES:
            return language
    return settings().language


def _of_browser() -> str:
    for value, _quality in request.accept_languages:
        tag = value.lower().replace("_", "-")
        for prefix, language in _TAGS.items():
            if tag == prefix or tag.startswith(prefix + "-"):
                return language
    return ""
