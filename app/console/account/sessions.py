"""Logins of a user: browser names, and the confirmations before logins are ended."""

import re

from flask import Flask

from app.console.ui.filters import absolute
from app.console.ui.forms.confirm import Question
from app.console.web.language import _, ngettext
from app.models.session import LoginSession

#: product in a user agent -> browser; the first match counts, because most user agents name several products
BROWSERS = {
    "Edg": "Edge",
    "EdgA": "Edge",
    "EdgiOS": "Edge",
    "OPR": "Opera",
    "Firefox": "Firefox",
    "FxiOS": "Firefox",
    "Chrome": "Chrome",
    "CriOS": "Chrome",
    "Version": "Safari",
}
#: text in a user agent -> system; the first match counts, because Android's contain "Linux" too
SYSTEMS = {
    "Windows": "Windows",
    "Android": "Android",
    "iPhone": "iOS",
    "iPad": "iPadOS",
    "Mac OS X": "macOS",
    "CrOS": "ChromeOS",
    "Linux": "Linux",
}
#: longer names of other programs are cut
PROGRAM_MAX = 40


def browser_name(agent: str) -> str:
    """Return ``Firefox 128 · Linux`` for a browser's user agent, ``curl/8.5.0`` for a script's."""
    for product, name in BROWSERS.items():
        match = re.search(rf"{product}/(\d{{1,4}})", agent)
        if match is not None:
            system = next((title for part, title in SYSTEMS.items() if part in agent), "")
            return " · ".join(text for text in (f"{name} {match.group(1)}", system) if text)
    return agent.partition(" ")[0][:PROGRAM_MAX]


def confirm_end_one(row: LoginSession) -> Question:
    """Return the confirmation before one login is ended."""
    subject = " · ".join(
        text for text in (browser_name(row.agent), row.address, absolute(row.created_ms)) if text
    )
    consequence = _("The browser or script that uses this login has to log in again.")
    return _confirm_end(_("End the login?"), subject, consequence)


def confirm_end_others(username: str, count: int) -> Question:
    """Return the confirmation before all logins but the current one are ended."""
    subject = ngettext(
        "%(num)d other login of %(name)s", "%(num)d other logins of %(name)s", count, name=username
    )
    consequence = _("Every other browser and script has to log in again. This login stays.")
    return _confirm_end(_("End all other logins?"), subject, consequence)


def confirm_end_all(username: str, count: int) -> Question:
    """Return the confirmation before all logins of another user are ended."""
    subject = ngettext("%(num)d login of %(name)s", "%(num)d logins of %(name)s", count, name=username)
    consequence = _(
        "Every browser and script of the user has to log in again. To keep them out, disable the user."
    )
    return _confirm_end(_("End all logins?"), subject, consequence)


def _confirm_end(heading: str, subject: str, consequence: str) -> Question:
    return Question(heading, subject, [consequence], _("End"), kind="danger", glyph="box-arrow-right")


def init_app(app: Flask) -> None:
    """Register the template filter ``login.agent|browser_name``."""
    app.add_template_filter(browser_name, "browser_name")
