"""Queued run: the page between a trigger by hand and its run, which it leads to."""

from flask import Blueprint, render_template, url_for
from flask.typing import ResponseReturnValue
from werkzeug.utils import redirect

from app.clock import now_ms
from app.console.ui.listing import address_with
from app.console.ui.notices import way_back
from app.console.ui.waiting import missing_scheduler, waiting_fires
from app.console.web.access import Access
from app.console.web.current import current_actor
from app.db import read_scope
from app.services.jobs import jobs
from app.services.runs.queued import find_queued

blueprint = Blueprint("run_once", __name__, url_prefix="/jobinfo/<int(max=2147483647):job_id>/run")
POLICY = {
    "queued": Access.VIEW,
}

#: kind of the keys of these fires, left out of addresses
MANUAL = "manual:"


def after_run(job_id: int, fire_key: str, *, back: str) -> ResponseReturnValue:
    """Lead to the run that a trigger by hand makes; its page leads ``back``."""
    token = fire_key.removeprefix(MANUAL)
    return redirect(url_for("run_once.queued", job_id=job_id, token=token, next=back), 303)


@blueprint.get("/<token>")
def queued(job_id: int, token: str) -> ResponseReturnValue:
    """Lead to the run, or show why it waits."""
    actor, at_ms, back = current_actor(), now_ms(), way_back("jobs.index")
    with read_scope() as session:
        job = jobs.get_job(session, job_id, actor=actor)
        found = find_queued(session, job_id, MANUAL + token)
        if found.log_id is not None:
            return redirect(url_for("logs.show", log_id=found.log_id, next=back), 303)
        late = waiting_fires(session, [job.job_group], now_ms=at_ms, job_id=job_id)
        reason = late[0].reason if late else missing_scheduler(session, now_ms=at_ms)
    return render_template(
        "jobs/queued.html",
        job=job,
        is_waiting=found.is_waiting,
        reason=reason,
        back=back,
        refresh_address=address_with(refresh="auto"),
    )
