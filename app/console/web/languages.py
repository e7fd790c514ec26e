"""Which language an answer is in."""

from flask import Flask, has_request_context, request
from flask_babel import Babel

from app.config import Config
from app.console.web.current import current_user, settings
from app.console.web.language import marked, marked_count
from app.domain.schedule import zone
from app.errors import InvalidInput

#: chosen before a login, or by somebody who has not stored a choice
LANGUAGE_COOKIE = "XXL_JOB_LANGUAGE"
#: our names -> the names of the catalogues
LOCALES = {"zh_CN": "zh_Hans_CN", "zh_TW": "zh_Hant_TW", "en": "en"}
#: what a browser says -> ours
_SAID = {
    "zh-hant": "zh_TW",
    "zh-tw": "zh_TW",
    "zh-hk": "zh_TW",
    "zh-mo": "zh_TW",
    "zh": "zh_CN",
    "en": "en",
}


def init_app(app: Flask, config: Config) -> None:
    """Choose language and zone anew for every request."""
    app.config["BABEL_DEFAULT_LOCALE"] = "en"
    app.config["BABEL_DEFAULT_TIMEZONE"] = config.time_zone
    Babel(app, locale_selector=choose_language, timezone_selector=choose_zone)
    app.jinja_env.globals.update(_=marked, gettext=marked, ngettext=marked_count)


def choose_zone() -> str | None:
    """Return the zone times are shown in: the user's own; None: the configured one."""
    user = current_user() if has_request_context() else None
    if user is None or not user.time_zone:
        return None
    try:
        return zone(user.time_zone).key
    except InvalidInput:
        return None


def choose_language() -> str | None:
    """Return the locale of this request: the user's choice, else the cookie's, else the browser's, else the configured one."""
    if not has_request_context():
        return None
    return LOCALES[language_of_request()]


def language_of_request() -> str:
    """Return ``zh_CN``, ``zh_TW`` or ``en``."""
    user = current_user()
    chosen = [user.language if user is not None else "", request.cookies.get(LANGUAGE_COOKIE, "")]
    for language in [*chosen, _of_browser()]:
        if language in LOCALES:
            return language
    return settings().language


def _of_browser() -> str:
    for said, _quality in request.accept_languages:
        tag = said.lower().replace("_", "-")
        for known, language in _SAID.items():
            if tag == known or tag.startswith(known + "-"):
                return language
    return ""
