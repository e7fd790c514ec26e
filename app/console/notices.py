"""What is said after a change: a code in the address of the page it leads to, so that nothing needs to be kept.

The texts are fixed; a forged code can show nothing else.
"""

from dataclasses import dataclass
from typing import Any

from flask import request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.utils import redirect

from app.console.language import _, lazy_gettext
from app.console.listing import whole_number

#: code -> text
TEXTS = {
    "saved": lazy_gettext("Saved."),
    "added": lazy_gettext("Added."),
    "removed": lazy_gettext("Deleted."),
    "started": lazy_gettext("The schedule is on."),
    "stopped": lazy_gettext("The schedule is off."),
    "triggered": lazy_gettext("The run was queued; it appears in the log at once."),
    "killed": lazy_gettext("The run was killed."),
    "cleaned": lazy_gettext("The log was cleaned."),
    "password": lazy_gettext("The password was changed. Log in with the new one."),
    "out": lazy_gettext("You are logged out."),
}


@dataclass(frozen=True, slots=True)
class Notice:
    """One toast; ``href`` leads to what it is about."""

    text: str
    kind: str = "success"
    href: str = ""
    link: str = ""


def done(code: str, endpoint: str, /, *, at: int | None = None, **values: Any) -> ResponseReturnValue:
    """Redirect to a page that says what was done; ``at`` is the id of the job it was done to."""
    return redirect(url_for(endpoint, done=code, at=at, **values), 303)


def asked_notice() -> Notice | None:
    """Return the toast the address asks for."""
    code = request.args.get("done", "")
    if code not in TEXTS:
        return None
    job_id = whole_number("at", 0)
    if job_id <= 0:
        return Notice(str(TEXTS[code]))
    if code == "triggered":
        return Notice(str(TEXTS[code]), href=url_for("logs.index", jobId=job_id), link=_("Show the log"))
    return Notice(str(TEXTS[code]), href=url_for("jobs.show", job_id=job_id), link=_("Job %(id)s", id=job_id))
