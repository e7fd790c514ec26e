"""Notices after a change: a code in the URL of the next page, so that no state is stored.

The texts are fixed. What was changed is named by the URL too, signed for this login: a forged link shows
neither a name nor an undo.
"""

import hmac
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from flask import Response, get_template_attribute, make_response, redirect, request, url_for

from app.console.ui.lists.listing import PASSING, whole_number
from app.console.web.current import csrf_token, request_host
from app.console.web.language import _, lazy_gettext

#: code -> text
TEXTS = {
    "saved": lazy_gettext("Saved."),
    "added": lazy_gettext("Added."),
    "added_started": lazy_gettext("Added, and its schedule is on."),
    "removed": lazy_gettext("Deleted."),
    "changed_over": lazy_gettext("Only the new access token is valid from now on."),
    "started": lazy_gettext("The schedule is on."),
    "stopped": lazy_gettext("The schedule is off."),
    "killed": lazy_gettext("The run was killed."),
    "runs_killed": lazy_gettext("The runs were killed."),
    "queued_before": lazy_gettext("This form was already submitted, so nothing was queued again."),
    "withdrawn": lazy_gettext("The run was withdrawn."),
    "missing_run": lazy_gettext("What was missing is run again; the round starts once it has succeeded."),
    "started_now": lazy_gettext("The run starts now."),
    "released": lazy_gettext("The slot is free."),
    "restored": lazy_gettext("The version was restored."),
    "drained": lazy_gettext("No new runs are sent to this instance. Current runs continue until they end."),
    "undrained": lazy_gettext("New runs are sent to this instance again."),
    "muted": lazy_gettext("The alarms are muted."),
    "unmuted": lazy_gettext("Alarms are on again. One message lists what is still failing."),
    "password": lazy_gettext("The password was changed. All other logins of this account have ended."),
    "ended": lazy_gettext("The login was ended. Its user has to log in again."),
    "revoked": lazy_gettext("The API token was revoked."),
    "grace_ended": lazy_gettext("Scripts can no longer log in with the common password."),
    "acknowledged": lazy_gettext("The incident is acknowledged; it is not escalated."),
    "starred": lazy_gettext("Added to your favourites."),
    "unstarred": lazy_gettext("Removed from your favourites."),
    "view_saved": lazy_gettext("The view is saved and shown above the filters."),
    "out": lazy_gettext("You are logged out."),
    "blackout_over": lazy_gettext("The blackout is over."),
    "backfills_started": lazy_gettext("The backfills have started; each has a page."),
    "backfill_paused": lazy_gettext("The backfill is paused: runs in progress end, and none starts."),
    "backfill_resumed": lazy_gettext("The backfill goes on."),
    "backfill_cancelled": lazy_gettext("The backfill starts nothing more."),
    "group_off": lazy_gettext("The executor is switched off: none of its jobs starts."),
    "group_on": lazy_gettext("The executor is on again."),
}

#: code -> text that names what was changed; without one, the text of TEXTS stands with its link
NAMED_TEXTS = {
    "saved": lazy_gettext("%(thing)s saved"),
    "added": lazy_gettext("%(thing)s added"),
    "added_started": lazy_gettext("%(thing)s added, and its schedule is on"),
    "removed": lazy_gettext("%(thing)s deleted"),
    "changed_over": lazy_gettext("%(thing)s: only the new access token is valid from now on"),
    "started": lazy_gettext("%(thing)s switched on"),
    "stopped": lazy_gettext("%(thing)s switched off"),
    "killed": lazy_gettext("%(thing)s killed"),
    "released": lazy_gettext("%(thing)s: its slot is free"),
    "runs_killed": lazy_gettext("%(thing)s: its runs were killed"),
    "restored": lazy_gettext("%(thing)s: the version was restored"),
    "drained": lazy_gettext("%(thing)s gets no new runs; current runs continue until they end"),
    "undrained": lazy_gettext("%(thing)s gets new runs again"),
    "muted": lazy_gettext("%(thing)s: alarms are muted"),
    "unmuted": lazy_gettext("%(thing)s: alarms are on again; one message lists what is still failing"),
    "view_saved": lazy_gettext("%(thing)s saved and shown above the filters"),
    "blackout_over": lazy_gettext("%(thing)s is over"),
    "backfill_paused": lazy_gettext("%(thing)s is paused: runs in progress end, and none starts"),
    "backfill_resumed": lazy_gettext("%(thing)s goes on"),
    "backfill_cancelled": lazy_gettext("%(thing)s starts nothing more"),
    "group_off": lazy_gettext("%(thing)s switched off: none of its jobs starts"),
    "group_on": lazy_gettext("%(thing)s switched on again"),
}
#: kind of subject -> its title, and the endpoint and the parameter of its page
KINDS = {
    "job": (lazy_gettext("Job %(id)s"), "jobs.show", "job_id"),
    "run": (lazy_gettext("Run %(id)s"), "logs.show", "log_id"),
    "group": (lazy_gettext("Executor"), "group_page.show", "group_id"),
    "instance": (lazy_gettext("Instance"), "group_page.show", "group_id"),
    "user": (lazy_gettext("User"), "users.edit", "user_id"),
    "view": (lazy_gettext("The view"), "", ""),
    "channel": (lazy_gettext("Alarm channel"), "alarm_channels.edit", "channel_id"),
    "blackout": (lazy_gettext("Blackout"), "", ""),
    "variable": (lazy_gettext("Variable"), "variables.show", "variable_id"),
    "limit": (lazy_gettext("Limit"), "limits.show", "limit_id"),
    "calendar": (lazy_gettext("Calendar"), "calendars.show", "calendar_id"),
    "incident": (lazy_gettext("Incident %(id)s"), "incidents.show", "incident_id"),
    "backfill": (lazy_gettext("Backfill %(id)s"), "backfills.show", "backfill_id"),
    "secret": (lazy_gettext("Secret"), "variables.show", "variable_id"),
}
#: longest name in a notice, in characters
NAME_MAX = 60
#: code -> endpoint that undoes the change of a job
UNDONE_BY = {"started": "job_actions.stop", "stopped": "job_actions.start", "muted": "alarm_mutes.unmute_job"}


@dataclass(frozen=True, slots=True)
class Subject:
    """What a notice is about: a kind of KINDS, its id (of an instance: of its group) and its name."""

    kind: str
    id: int
    name: str = ""

    @property
    def title(self) -> str:
        """``Job 12 nightly report`` or ``Executor my-app``, in the reader's language."""
        title = str(KINDS[self.kind][0]) % {"id": self.id}
        return f"{title} {self.name}".strip()

    @property
    def href(self) -> str:
        """URL of its page; empty without one."""
        _title, endpoint, parameter = KINDS[self.kind]
        values: dict[str, Any] = {parameter: self.id}
        return url_for(endpoint, **values) if endpoint else ""


@dataclass(frozen=True, slots=True)
class Notice:
    """Toast; ``href`` links to its subject."""

    text: str
    kind: str = "success"
    href: str = ""
    link: str = ""
    #: URL that undoes the change by POST
    undo: str = ""


def done(code: str, address: str, *, at: int | None = None, of: Subject | None = None) -> Response:
    """Redirect to a page of this console with a notice about ``of``; ``at`` is short for a job of that id."""
    if of is None and at is not None:
        of = Subject("job", at)
    parts = urlsplit(address)
    query = [(name, value) for name, value in parse_qsl(parts.query) if name not in PASSING]
    query.append(("done", code))
    if of is not None:
        of = replace(of, name=of.name if len(of.name) <= NAME_MAX else of.name[: NAME_MAX - 1] + "…")
        query.append(("at", str(of.id)))
        query += [("of", of.kind)] if of.kind != "job" else []
        query += [("named", of.name)] if of.name else []
        query.append(("mark", _mark(code, of)))
    return make_response(redirect(urlunsplit(("", "", parts.path, urlencode(query), parts.fragment)), 303))


def way_back(endpoint: str, **values: Any) -> str:
    """Return the previous page of this console: ``next`` of form or query, the referrer, or ``endpoint``."""
    referrer = "" if request.method == "POST" else request.referrer or ""
    try:
        url = urlsplit(request.values.get("next", "") or referrer)
    except ValueError:  # a malformed URL, such as http://[
        return url_for(endpoint, **values)
    is_own = url.netloc in {"", request_host()} and url.path.startswith(request.script_root + "/")
    if (
        not is_own
        or url.path.startswith("//")
        or "\\" in url.path
        or url.path == request.script_root + request.path
    ):
        return url_for(endpoint, **values)
    return urlunsplit(("", "", url.path, url.query, ""))


def requested_notice() -> Notice | None:
    """Return the notice of the URL, or None."""
    code = request.args.get("done", "")
    subject = _marked_subject(code)
    if code not in TEXTS:
        return None
    if subject is None:
        return Notice(str(TEXTS[code]))
    return _notice_of(code, subject)


def toast_of(code: str, subject: Subject, here: str) -> str:
    """Return the toast about a subject as HTML, for a page that stays; Undo returns to ``here``."""
    return str(get_template_attribute("macros/frame.html", "toast")(_notice_of(code, subject), here))


def _notice_of(code: str, subject: Subject) -> Notice:
    href, link = subject.href, _("Open")
    is_elsewhere = href and code != "removed" and urlsplit(href).path != request.script_root + request.path
    can_undo = code in UNDONE_BY and subject.kind == "job"
    return Notice(
        str(NAMED_TEXTS[code]) % {"thing": subject.title} if code in NAMED_TEXTS else str(TEXTS[code]),
        href=href if is_elsewhere else "",
        link=link,
        undo=url_for(UNDONE_BY[code], job_id=subject.id) if can_undo else "",
    )


def _marked_subject(code: str) -> Subject | None:
    """Return the subject that the URL names, if this login has signed it."""
    subject = Subject(request.args.get("of", "job"), whole_number("at", 0), request.args.get("named", ""))
    mark = request.args.get("mark", "")
    is_ours = subject.kind in KINDS and hmac.compare_digest(mark.encode(), _mark(code, subject).encode())
    return subject if is_ours else None


def _mark(code: str, subject: Subject) -> str:
    """Return a signature of this login, so that a foreign link can neither name nor undo."""
    text = f"{code}:{subject.kind}:{subject.id}:{subject.name}"
    return hmac.new(csrf_token().encode(), text.encode("utf-8", "replace"), sha256).hexdigest()[:16]
