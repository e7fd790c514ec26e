"""What can be done about a run that waits for a limit, or holds a slot: run it now, withdraw it, release the slot."""

from functools import partial

from flask import Blueprint, request, url_for
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.ui.filters import absolute
from app.console.ui.forms.confirm import Question, confirm_page
from app.console.ui.limits.waiting_rows import why_text
from app.console.ui.notices import Subject, done, way_back
from app.console.web.access import Access
from app.console.web.current import current_actor
from app.console.web.language import _
from app.database.flask_db import read_scope, transact
from app.domain.access.permissions import Right
from app.services.limits import waiting
from app.services.runs import logs, planned

blueprint = Blueprint("waiting_runs", __name__, url_prefix="/joblog")
POLICY = {
    "start": Access.OPERATE,
    "withdraw": Access.OPERATE,
    "release": Access.OPERATE,
}


@blueprint.route("/waiting/<run_id>/start", methods=["GET", "POST"])
def start(run_id: str) -> ResponseReturnValue:
    """Start a waiting run although its limit is reached."""
    actor, back = current_actor(), way_back("limits.index")
    with read_scope() as session:
        run = waiting.get_waiting(session, run_id, actor=actor, right=Right.OPERATE)
        consequences = [why_text(session, run)]
    if request.method == "POST":
        transact(partial(waiting.start_now, run_id=run_id, actor=actor, now_ms=now_ms()))
        return done("started_now", back, of=Subject("job", run.job_id))
    consequences.append(
        _("It starts all the same and counts as one more; the limit is exceeded until a run has ended.")
    )
    question = Question(
        _("Run it now?"), _subject(run.job_id, run.due_ms), consequences, _("Run now"), "warning", "play-fill"
    )
    return confirm_page(question, back=back)
