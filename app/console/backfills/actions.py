"""Actions on backfills: pause, resume, cancel."""

from collections.abc import Callable
from functools import partial
from typing import Any

from flask import Blueprint, request
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.ui.filters import number
from app.console.ui.forms.confirm import Question, confirm_page
from app.console.ui.notices import Subject, done, way_back
from app.console.web.access import Access
from app.console.web.current import current_actor, executor_caller
from app.console.web.language import _, ngettext
from app.console.web.language import lazy_gettext as _l
from app.database.flask_db import read_scope, transact
from app.domain.access.permissions import Right
from app.domain.backfills.kinds import BackfillState, InstantState
from app.services.backfills import backfills
from app.services.backfills.kills import kill_running
from app.services.backfills.listing import BackfillView, show_backfill
from app.services.backfills.steps import step

blueprint = Blueprint(
    "backfill_actions", __name__, url_prefix="/backfills/<int(max=9223372036854775807):backfill_id>"
)
#: of runs that are killed
KILL_TEXT = _l(
    "The executor ends all runs of this job on its instance, including queued ones."
    " Work already done is not rolled back."
)
POLICY = {
    "pause": Access.OPERATE,
    "resume": Access.OPERATE,
    "cancel": Access.OPERATE,
}


@blueprint.post("/pause")
def pause(backfill_id: int) -> ResponseReturnValue:
    """Start no further run."""
    return _change(backfills.pause_backfill, "backfill_paused", _view(backfill_id))


@blueprint.route("/resume", methods=["GET", "POST"])
def resume(backfill_id: int) -> ResponseReturnValue:
    """Go on; what has failed runs again."""
    view = _view(backfill_id)
    if request.method == "POST":
        return _change(backfills.resume_backfill, "backfill_resumed", view)
    failed, left = view.counts.get(InstantState.FAILED, 0), view.counts.get(InstantState.WAITING, 0)
    consequences = [
        ngettext(
            "%(n)s instant that has failed runs again, with the same logical time.",
            "%(n)s instants that have failed run again, with the same logical times.",
            failed,
            n=number(failed),
        ),
        ngettext(
            "Then it goes on with the %(n)s instant that is left.",
            "Then it goes on with the %(n)s instants that are left.",
            left,
            n=number(left),
        ),
        _("What has succeeded is not repeated."),
    ]
    consequences = [text for text, count in zip(consequences, (failed, left, 1), strict=True) if count]
    question = Question(
        _("Resume the backfill?"), _subject_text(view), consequences, _("Resume"), glyph="play-fill"
    )
    return confirm_page(question, back=_back(view))


@blueprint.route("/cancel", methods=["GET", "POST"])
def cancel(backfill_id: int) -> ResponseReturnValue:
    """End it: nothing further starts, and on request its runs are killed, also when it is being cancelled."""
    view = _view(backfill_id)
    is_going = view.row.state == BackfillState.CANCELLING
    if request.method == "POST":
        return _cancel(view, kills=is_going or "kill" in request.form)
    running = view.counts.get(InstantState.RUNNING, 0)
    if is_going:
        question = Question(
            _("Kill the runs in progress?"),
            _subject_text(view),
            [str(KILL_TEXT), _("It is cancelled when the last of its runs has ended.")],
            _("Kill the runs in progress"),
            kind="danger",
            glyph="x-octagon",
        )
    else:
        question = Question(
            _("Cancel the backfill?"),
            _subject_text(view),
            _consequences(running, view.counts.get(InstantState.WAITING, 0)),
            _("Cancel the backfill"),
            kind="danger",
            glyph="x-octagon",
            option=("kill", _("Kill the runs in progress")) if running else None,
            back_text=_("Back"),
        )
    return confirm_page(question, back=_back(view))


def _consequences(running: int, left: int) -> list[str]:
    """Return what becomes of the instants when it is cancelled."""
    texts = [
        ngettext(
            "%(n)s instant that has not started does not run.",
            "%(n)s instants that have not started do not run.",
            left,
            n=number(left),
        ),
        ngettext(
            "%(n)s run goes on to its end, unless it is killed; if no executor has it yet, it is withdrawn.",
            "%(n)s runs go on to their ends, unless they are killed; those that no executor has yet are"
            " withdrawn.",
            running,
            n=number(running),
        ),
        _("It is cancelled when the last of its runs has ended. What has succeeded stays as it is."),
    ]
    return [text for text, count in zip(texts, (left, running, 1), strict=True) if count]


def _cancel(view: BackfillView, *, kills: bool) -> ResponseReturnValue:
    backfill_id = view.row.id
    answer = _change(backfills.cancel_backfill, "backfill_cancelled", view)
    if kills:
        kill_running(backfill_id, actor=current_actor(), caller=executor_caller(), now_ms=now_ms())
        transact(partial(step, backfill_id=backfill_id, clock=now_ms))
    return answer


def _view(backfill_id: int) -> BackfillView:
    with read_scope() as session:
        return show_backfill(session, backfill_id, actor=current_actor(), right=Right.OPERATE)


def _change(change: Callable[..., Any], code: str, view: BackfillView) -> ResponseReturnValue:
    transact(partial(change, backfill_id=view.row.id, actor=current_actor(), clock=now_ms))
    return done(code, _back(view), of=Subject("backfill", view.row.id))


def _back(view: BackfillView) -> str:
    return way_back("backfills.show", backfill_id=view.row.id)


def _subject_text(view: BackfillView) -> str:
    return f"{view.row.job_id} · {view.row.job_name} · {_('Backfill %(id)s', id=view.row.id)}"
