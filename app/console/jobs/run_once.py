"""Queued run: the page between a trigger by hand and its run, which can be withdrawn until then."""

from functools import partial

from flask import Blueprint, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.utils import redirect

from app.clock import Millis, now_ms
from app.console.ui.filters import absolute
from app.console.ui.forms.confirm import Question, confirm_page
from app.console.ui.limits.waiting_rows import rows_of
from app.console.ui.lists.listing import address_with
from app.console.ui.notices import Subject, done, way_back
from app.console.ui.waiting import missing_scheduler, waiting_fires
from app.console.web.access import Access
from app.console.web.current import current_actor
from app.console.web.language import _
from app.database.flask_db import read_scope, transact
from app.domain.access.permissions import Right
from app.domain.runs.trigger_keys import Trigger, parse_id
from app.errors import NotFound
from app.services.jobs import jobs
from app.services.runs import planned_runs, waiting
from app.services.runs.logs import MISSING
from app.services.runs.trigger_runs import find_trigger_runs

blueprint = Blueprint("run_once", __name__, url_prefix="/jobinfo/<int(max=2147483647):job_id>/run")
POLICY = {
    "show": Access.VIEW,
    "withdraw": Access.OPERATE,
}

#: a run due later than this is shown as planned, and not awaited
SOON_MS: Millis = 60_000


def after_run(trigger: Trigger, *, back: str, is_new: bool = True) -> ResponseReturnValue:
    """Redirect to the run of a trigger; its page leads ``back``, with a note if the run is not new."""
    address = url_for("run_once.show", job_id=trigger.job_id, token=trigger.id, next=back)
    return redirect(address, 303) if is_new else done("queued_before", address)


@blueprint.get("/<token>")
def show(job_id: int, token: str) -> ResponseReturnValue:
    """Redirect to the run, or show why it waits."""
    trigger = _trigger(job_id, token)
    actor, at_ms, back = current_actor(), now_ms(), way_back("jobs.index")
    with read_scope() as session:
        job = jobs.get_job(session, job_id, actor=actor)
        trigger_runs = find_trigger_runs(session, trigger)
        if trigger_runs.log_ids:
            notice = request.args.get("done")
            return redirect(url_for("logs.show", log_id=trigger_runs.log_ids[0], next=back, done=notice), 303)
        run = waiting.find_waiting(session, token, actor=actor) if trigger_runs.is_limited else None
        row = rows_of(session, [run], actor=actor)[0] if run is not None else None
        late = waiting_fires(session, [job.job_group], now_ms=at_ms, job_id=job_id)
        reason = late[0].reason if late else missing_scheduler(session, now_ms=at_ms)
    return render_template(
        "jobs/queued.html",
        job=job,
        is_waiting=trigger_runs.is_waiting,
        planned_ms=trigger_runs.due_ms if (trigger_runs.due_ms or 0) > at_ms + SOON_MS else None,
        reason=reason,
        limited=row,
        skipped=trigger_runs.skipped,
        may_withdraw=trigger_runs.is_waiting and actor.may(job.job_group, Right.OPERATE),
        token=token,
        back=back,
        refresh_address=address_with(refresh="auto"),
    )


@blueprint.route("/<token>/withdraw", methods=["GET", "POST"])
def withdraw(job_id: int, token: str) -> ResponseReturnValue:
    """Withdraw a run that no scheduler has claimed."""
    trigger, actor = _trigger(job_id, token), current_actor()
    back = way_back("jobs.index")
    with read_scope() as session:
        job = jobs.get_job(session, job_id, actor=actor, right=Right.OPERATE)
        trigger_runs = find_trigger_runs(session, trigger)
    if not trigger_runs.is_waiting:
        return after_run(trigger, back=back)  # The page of the trigger shows its outcome.
    if request.method == "POST":
        transact(partial(planned_runs.withdraw, trigger=trigger, actor=actor, now_ms=now_ms()))
        return done("withdrawn", url_for("jobs.show", job_id=job_id), of=Subject("job", job_id))
    question = Question(
        _("Withdraw the run?"),
        f"{job.id} · {job.job_desc}",
        [
            _(
                "The run of %(time)s will not start. The schedule stays as it is.",
                time=absolute(trigger_runs.due_ms or 0),
            )
        ],
        _("Withdraw"),
        kind="danger",
        glyph="x-lg",
    )
    return confirm_page(question, back=back)


def _trigger(job_id: int, token: str) -> Trigger:
    trigger = parse_id(token)
    if trigger is None or trigger.job_id != job_id:
        raise NotFound(MISSING)
    return trigger
