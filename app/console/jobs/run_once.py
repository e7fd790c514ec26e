"""Queued run: the page between a trigger by hand and its run, which it leads to."""

from flask import Blueprint, render_template, url_for
from flask.typing import ResponseReturnValue
from werkzeug.utils import redirect

from app.clock import Millis, now_ms
from app.console.ui.listing import address_with
from app.console.ui.notices import way_back
from app.console.ui.waiting import missing_scheduler, waiting_fires
from app.console.web.access import Access
from app.console.web.current import current_actor
from app.db import read_scope
from app.domain.trigger_keys import Trigger, parse_id
from app.errors import NotFound
from app.services.jobs import jobs
from app.services.runs.logs import MISSING
from app.services.runs.queued import find_queued

blueprint = Blueprint("run_once", __name__, url_prefix="/jobinfo/<int(max=2147483647):job_id>/run")
POLICY = {
    "queued": Access.VIEW,
}

#: a run due later than this is shown as planned, and not awaited
SOON_MS: Millis = 60_000


def after_run(trigger: Trigger, *, back: str) -> ResponseReturnValue:
    """Lead to the run that a trigger makes; its page leads ``back``."""
    return redirect(url_for("run_once.queued", job_id=trigger.job_id, token=trigger.id, next=back), 303)


@blueprint.get("/<token>")
def queued(job_id: int, token: str) -> ResponseReturnValue:
    """Lead to the run, or show why it waits."""
    trigger = parse_id(token)
    if trigger is None or trigger.job_id != job_id:
        raise NotFound(MISSING)
    actor, at_ms, back = current_actor(), now_ms(), way_back("jobs.index")
    with read_scope() as session:
        job = jobs.get_job(session, job_id, actor=actor)
        found = find_queued(session, trigger)
        if found.log_ids:
            return redirect(url_for("logs.show", log_id=found.log_ids[0], next=back), 303)
        late = waiting_fires(session, [job.job_group], now_ms=at_ms, job_id=job_id)
        reason = late[0].reason if late else missing_scheduler(session, now_ms=at_ms)
    return render_template(
        "jobs/queued.html",
        job=job,
        is_waiting=found.is_waiting,
        planned_ms=found.due_ms if (found.due_ms or 0) > at_ms + SOON_MS else None,
        reason=reason,
        back=back,
        refresh_address=address_with(refresh="auto"),
    )
