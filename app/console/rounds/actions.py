"""Actions on rounds: run again what failed, so that they can start."""

from functools import partial

from flask import Blueprint, request
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.ui.forms.confirm import Question, confirm_page
from app.console.ui.notices import Subject, done, way_back
from app.console.ui.rounds.rows import title_of
from app.console.web.access import Access
from app.console.web.current import current_actor
from app.console.web.language import _
from app.database.flask_db import read_scope, transact
from app.services.rounds import listing
from app.services.runs import round_runs
from app.store.jobs.scheduling import find_names

blueprint = Blueprint("round_actions", __name__, url_prefix="/rounds")
POLICY = {"run_missing": Access.OPERATE}


@blueprint.route("/<int(max=9223372036854775807):round_id>/run-missing", methods=["GET", "POST"])
def run_missing(round_id: int) -> ResponseReturnValue:
    """Run again the runs because of which a round has not started."""
    actor, back = current_actor(), way_back("rounds.show", round_id=round_id)
    with read_scope() as session:
        view = listing.show_round(session, round_id, actor=actor)
        runs = round_runs.find_missing(session, round_id, actor=actor)
        jobs = find_names(session, {run.job_id for run in runs})
    if request.method == "POST":
        transact(partial(round_runs.run_missing, round_id=round_id, actor=actor, now_ms=now_ms()))
        return done("missing_run", back, of=Subject("job", view.job_id, view.job_name))
    consequences = [
        *(
            _(
                "Run %(id)s of %(job)s is run again, with the same logical time.",
                id=run.id,
                job=jobs[run.job_id].job_desc,
            )
            for run in runs
        ),
        _("What has succeeded is not repeated. The round starts by itself once they have succeeded."),
    ]
    subject = f"{view.job_id} · {view.job_name} · {title_of(view)}"
    question = Question(
        _("Run only what is missing?"), subject, consequences, _("Run again"), glyph="arrow-repeat"
    )
    return confirm_page(question, back=back)
