"""Pages that mute and unmute a job or an executor group. Need the right to operate the group."""

from collections.abc import Callable
from functools import partial
from typing import Any

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.alarms.forms import MuteForm
from app.console.ui.filters import reader_zone
from app.console.ui.labels import MUTE_SPANS, choices
from app.console.ui.lists.listing import here
from app.console.ui.notices import Subject, done, way_back
from app.console.web.access import Access
from app.console.web.current import current_actor
from app.database.flask_db import read_scope, session_scope, transact
from app.domain.access.permissions import Right
from app.domain.alarms.muting import MuteSpan
from app.errors import InvalidInput
from app.models.mute import Mute
from app.services.alarms import mutes
from app.services.alarms.mutes import MuteDraft
from app.services.executors import groups
from app.services.jobs import jobs

blueprint = Blueprint("alarm_mutes", __name__)
POLICY = {
    "mute_job": Access.OPERATE,
    "unmute_job": Access.OPERATE,
    "mute_group": Access.OPERATE,
    "unmute_group": Access.OPERATE,
}


@blueprint.route("/jobinfo/<int(max=2147483647):job_id>/mute", methods=["GET", "POST"])
def mute_job(job_id: int) -> ResponseReturnValue:
    """Mute the alarms of a job."""
    back = way_back("jobs.show", job_id=job_id)
    with read_scope() as session:
        job = jobs.get_job(session, job_id, actor=current_actor(), right=Right.OPERATE)
        mute = mutes.find_of(session, job_id=job_id, now_ms=now_ms())
    values = {"subject": f"{job.id} · {job.job_desc}", "back": back, "mute": mute, "is_group": False}
    return _answer(
        values,
        partial(mutes.mute_job, job_id=job_id),
        partial(done, "muted", back, of=Subject("job", job_id, job.job_desc)),
    )


@blueprint.post("/jobinfo/<int(max=2147483647):job_id>/unmute")
def unmute_job(job_id: int) -> ResponseReturnValue:
    """End the mute of a job."""
    with session_scope() as session:
        mutes.unmute(session, job_id=job_id, actor=current_actor(), now_ms=now_ms())
    return done("unmuted", way_back("jobs.show", job_id=job_id), at=job_id)


@blueprint.route("/jobgroup/<int(max=2147483647):group_id>/mute", methods=["GET", "POST"])
def mute_group(group_id: int) -> ResponseReturnValue:
    """Mute the alarms of all jobs of a group."""
    back = way_back("group_page.show", group_id=group_id)
    with read_scope() as session:
        group = groups.get_group(session, group_id, actor=current_actor(), right=Right.OPERATE)
        mute = mutes.find_of(session, group_id=group_id, now_ms=now_ms())
    values = {"subject": f"{group.title} ({group.app_name})", "back": back, "mute": mute, "is_group": True}
    return _answer(
        values,
        partial(mutes.mute_group, group_id=group_id),
        partial(done, "muted", back, of=Subject("group", group_id, group.title)),
    )


@blueprint.post("/jobgroup/<int(max=2147483647):group_id>/unmute")
def unmute_group(group_id: int) -> ResponseReturnValue:
    """End the mute of a group."""
    with session_scope() as session:
        mutes.unmute(session, group_id=group_id, actor=current_actor(), now_ms=now_ms())
    return done("unmuted", way_back("group_page.show", group_id=group_id))


def _answer(
    page: dict[str, Any], change: Callable[..., None], leave: Callable[[], ResponseReturnValue]
) -> ResponseReturnValue:
    """Show the form; with a POST save the mute and return ``leave()``, or show the errors."""
    mute: Mute | None = page["mute"]
    form = MuteForm(request.form, span=MuteSpan.HOUR.value, reason=mute.reason if mute else "")
    form.span.choices = choices(MUTE_SPANS)
    if request.method == "POST":
        draft = MuteDraft(form.span.data or "", form.reason.data or "", reader_zone().key)
        try:
            transact(partial(change, draft=draft, actor=current_actor(), now_ms=now_ms()))
            return leave()
        except InvalidInput as exc:
            form.refuse(exc)
    return render_template("alarms/mute.html", form=form, action=here(), **page), 400 if form.errors else 200
