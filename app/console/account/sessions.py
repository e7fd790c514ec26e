"""The logins of a user as the pages show them, and the questions before some of them end."""

import re

from flask import Flask

from app.console.ui.confirm import Question
from app.console.ui.filters import absolute
from app.console.web.language import _, ngettext
from app.models.session import LoginSession

#: what a browser calls itself -> its name; the first that is found counts, because all of them say "Mozilla",
#: most "Safari"
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
#: the same of systems: Android says "Linux" too
SYSTEMS = {
    "Windows": "Windows",
    "Android": "Android",
    "iPhone": "iOS",
    "iPad": "iPadOS",
    "Mac OS X": "macOS",
    "CrOS": "ChromeOS",
    "Linux": "Linux",
}
#: longer names of programs that are no browser are cut
PROGRAM_MAX = 40


def browser_name(agent: str) -> str:
    """Return ``Firefox 128 · Linux`` of what a browser says of itself, ``curl/8.5.0`` of a script.

    Empty where nothing was said.
    """
    for word, name in BROWSERS.items():
        found = re.search(rf"{word}/(\d{{1,4}})", agent)
        if found is not None:
            system = next((title for part, title in SYSTEMS.items() if part in agent), "")
            return " · ".join(text for text in (f"{name} {found.group(1)}", system) if text)
    return agent.partition(" ")[0][:PROGRAM_MAX]


def end_one(row: LoginSession) -> Question:
    """Return the question before one login ends."""
    subject = " · ".join(
        text for text in (browser_name(row.agent), row.address, absolute(row.created_ms)) if text
    )
    consequences = [_("The browser or script that uses this login has to log in again.")]
    return Question(
        _("End the login?"), subject, consequences, _("End"), kind="danger", glyph="box-arrow-right"
    )


def end_others(username: str, count: int) -> Question:
    """Return the question before all logins end but the one in use."""
    subject = ngettext(
        "%(num)d other login of %(name)s", "%(num)d other logins of %(name)s", count, name=username
    )
    consequences = [_("Every other browser and script has to log in again. This login stays.")]
    return Question(
        _("End all other logins?"), subject, consequences, _("End"), kind="danger", glyph="box-arrow-right"
    )


def end_all(username: str, count: int) -> Question:
    """Return the question before all logins of somebody else end."""
    subject = ngettext("%(num)d login of %(name)s", "%(num)d logins of %(name)s", count, name=username)
    consequences = [
        _("Every browser and script of the user has to log in again. To keep them out, disable the user.")
    ]
    return Question(
        _("End all logins?"), subject, consequences, _("End"), kind="danger", glyph="box-arrow-right"
    )


def init_app(app: Flask) -> None:
    """Make the name of a browser known to the templates: ``login.agent|browser_name``."""
    app.add_template_filter(browser_name, "browser_name")
