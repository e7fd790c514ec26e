"""Notices after a change: a code in the URL of the next page, so that no state is stored.

The texts are fixed; a forged code shows nothing else.
"""

import hmac
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from flask import Response, make_response, redirect, request, url_for

from app.console.ui.listing import whole_number
from app.console.web.current import csrf_token
from app.console.web.language import _, lazy_gettext

#: code -> text
TEXTS = {
    "saved": lazy_gettext("Saved."),
    "added": lazy_gettext("Added."),
    "removed": lazy_gettext("Deleted."),
    "changed_over": lazy_gettext("Only the new access token is valid from now on."),
    "started": lazy_gettext("The schedule is on."),
    "stopped": lazy_gettext("The schedule is off."),
    "triggered": lazy_gettext("The run is queued and appears in the log."),
    "killed": lazy_gettext("The run was killed."),
    "restored": lazy_gettext("The version was restored."),
    "drained": lazy_gettext("No new runs are sent to this instance. Current runs continue until they end."),
    "undrained": lazy_gettext("New runs are sent to this instance again."),
    "muted": lazy_gettext("The alarms are muted."),
    "unmuted": lazy_gettext("Alarms are on again. One message lists what is still failing."),
    "password": lazy_gettext("The password was changed. All other logins of this account have ended."),
    "ended": lazy_gettext("The login was ended. Its user has to log in again."),
    "grace_ended": lazy_gettext("Scripts can no longer log in with the common password."),
    "starred": lazy_gettext("Added to your favourites."),
    "unstarred": lazy_gettext("Removed from your favourites."),
    "view_saved": lazy_gettext("The view is saved and shown above the filters."),
    "out": lazy_gettext("You are logged out."),
}

#: code -> endpoint that undoes the change of a job
UNDONE_BY = {"started": "job_actions.stop", "stopped": "job_actions.start", "muted": "alarm_mutes.unmute_job"}
#: query parameters dropped from links
PASSING = frozenset({"done", "at", "mark"})


@dataclass(frozen=True, slots=True)
class Notice:
    """Toast; ``href`` links to its subject."""

    text: str
    kind: str = "success"
    href: str = ""
    link: str = ""
    #: URL that undoes the change by POST
    undo: str = ""


def done(code: str, address: str, *, at: int | None = None) -> Response:
    """Redirect to a page of this console with a notice; ``at`` is the id of the changed job."""
    parts = urlsplit(address)
    query = [(name, value) for name, value in parse_qsl(parts.query) if name not in PASSING]
    query += [("done", code), *([("at", str(at))] if at is not None else [])]
    query += [("mark", _mark(code, at))] if at is not None and code in UNDONE_BY else []
    return make_response(redirect(urlunsplit(("", "", parts.path, urlencode(query), parts.fragment)), 303))


def way_back(endpoint: str, **values: Any) -> str:
    """Return the previous page of this console: ``next`` of form or query, the referrer, or ``endpoint``."""
    referrer = "" if request.method == "POST" else request.referrer or ""
    try:
        given = urlsplit(request.values.get("next", "") or referrer)
    except ValueError:  # malformed, such as http://[
        return url_for(endpoint, **values)
    own = given.netloc in {"", request.host} and given.path.startswith(request.script_root + "/")
    if (
        not own
        or given.path.startswith("//")
        or "\\" in given.path
        or given.path == request.script_root + request.path
    ):
        return url_for(endpoint, **values)
    return urlunsplit(("", "", given.path, given.query, ""))


def requested_notice() -> Notice | None:
    """Return the notice of the URL, or None."""
    code = request.args.get("done", "")
    if code not in TEXTS:
        return None
    job_id = whole_number("at", 0)
    if job_id <= 0:
        return Notice(str(TEXTS[code]))
    if code == "triggered":
        return Notice(str(TEXTS[code]), href=url_for("logs.index", jobId=job_id), link=_("Show the log"))
    is_ours = code in UNDONE_BY and hmac.compare_digest(
        request.args.get("mark", "").encode(), _mark(code, job_id).encode()
    )
    undo = url_for(UNDONE_BY[code], job_id=job_id) if is_ours else ""
    return Notice(
        str(TEXTS[code]), href=url_for("jobs.show", job_id=job_id), link=_("Job %(id)s", id=job_id), undo=undo
    )


def _mark(code: str, job_id: int) -> str:
    """Return a signature of this login, so that a foreign link cannot offer an undo."""
    return hmac.new(csrf_token().encode(), f"{code}:{job_id}".encode(), sha256).hexdigest()[:16]
