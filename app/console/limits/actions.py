"""Actions on runs that wait for a limit or hold a slot: run one now, withdraw it, release the slot."""

from functools import partial

from flask import Blueprint, request, url_for
from flask.typing import ResponseReturnValue
from markupsafe import Markup, escape

from app.clock import now_ms
from app.console.ui.filters import absolute
from app.console.ui.forms.confirm import Question, confirm_page
from app.console.ui.limits.waiting_rows import rows_of
from app.console.ui.notices import Subject, done, way_back
from app.console.web.access import Access
from app.console.web.current import current_actor
from app.console.web.language import _
from app.database.flask_db import read_scope, transact
from app.domain.access.permissions import Right
from app.domain.text.texts import N_
from app.errors import Conflict
from app.services.runs import logs, run_lookup, waiting
from app.services.runs.waiting import WaitingRun
from app.store.jobs.scheduling import find_jobs
from app.store.limits import waiting_list

blueprint = Blueprint("waiting_runs", __name__, url_prefix="/joblog")
POLICY = {
    "start": Access.OPERATE,
    "withdraw": Access.OPERATE,
    "release": Access.OPERATE,
}
NOT_WAITING = N_("The run no longer waits")
NO_SLOT = N_("The run holds no slot of a limit")


@blueprint.route("/waiting/<run_id>/start", methods=["GET", "POST"])
def start(run_id: str) -> ResponseReturnValue:
    """Start a waiting run although its limit is reached, or without its predecessors."""
    run, reason = _waiting_run(run_id)
    back = way_back("limits.index")
    if request.method == "POST":
        transact(partial(waiting.start_now, run_id=run.id, actor=current_actor(), now_ms=now_ms()))
        return done("started_now", back, of=Subject("job", run.job_id, run.job_name))
    effect = _("It starts all the same and counts as one more; the limit is exceeded until a run has ended.")
    if run.blackout is not None:
        effect = _("It starts all the same, whatever the limits are.")
    if run.is_missed:
        effect = _("It starts beside the one before it. If a limit has no slot for it, it waits for that.")
    if run.is_gated:
        effect = _("It starts without them. If a limit has no slot for it, it waits for that.")
    consequences = [reason, effect]
    question = Question(_("Run it now?"), _subject(run), consequences, _("Run now"), "warning", "play-fill")
    return confirm_page(question, back=back)


@blueprint.route("/waiting/<run_id>/withdraw", methods=["GET", "POST"])
def withdraw(run_id: str) -> ResponseReturnValue:
    """Withdraw a waiting run."""
    run, reason = _waiting_run(run_id)
    back = way_back("limits.index")
    if request.method == "POST":
        transact(partial(waiting.withdraw_run, run_id=run.id, actor=current_actor(), now_ms=now_ms()))
        back = url_for("jobs.show", job_id=run.job_id) if f"/run/{run.id}" in back else back
        return done("withdrawn", back, of=Subject("job", run.job_id, run.job_name))
    consequences = [
        reason,
        _("The run of %(time)s will not start. The schedule stays as it is.", time=absolute(run.due_ms)),
    ]
    question = Question(_("Withdraw the run?"), _subject(run), consequences, _("Withdraw"), "danger", "x-lg")
    return confirm_page(question, back=back)


@blueprint.route("/<int(max=9223372036854775807):log_id>/release", methods=["GET", "POST"])
def release(log_id: int) -> ResponseReturnValue:
    """Release the slot of an unresolved run."""
    actor, back = current_actor(), way_back("logs.show", log_id=log_id)
    with read_scope() as session:
        log = logs.get_log(session, log_id, actor=actor, right=Right.OPERATE)
        if not waiting_list.find_held(session, [log_id]):
            raise Conflict(NO_SLOT)
        job = find_jobs(session, [log.job_id]).get(log.job_id)
    name = job.job_desc if job is not None else ""
    if request.method == "POST":
        transact(partial(waiting.release_slot, log_id=log_id, actor=actor, now_ms=now_ms()))
        return done("released", back, of=Subject("run", log_id, name))
    consequences = [
        _("It is unknown whether this run is still in progress. Look at its instance first."),
        _("Then the next waiting run starts. If this one is still in progress, both run at the same time."),
    ]
    question = Question(
        _("Release the slot?"),
        f"{log_id} · {name or log.job_id}",
        consequences,
        _("Release the slot"),
        "warning",
        "unlock",
    )
    return confirm_page(question, back=back)


def _waiting_run(run_id: str) -> tuple[WaitingRun, Markup]:
    """Return a run that waits, and why in a sentence; raises Conflict for any other."""
    actor = current_actor()
    with read_scope() as session:
        run = run_lookup.get_run(session, run_id, actor=actor, right=Right.OPERATE).waiting
        if run is None:
            raise Conflict(NOT_WAITING)
        why = rows_of(session, [run], actor=actor)[0].why
    return run, escape(_("The run waits, because %(reason)s.")) % {"reason": why}


def _subject(run: WaitingRun) -> str:
    return f"{run.job_id} · {run.job_name}"
