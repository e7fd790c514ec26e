"""Pages of rounds: the list, and one round with its predecessors."""

from dataclasses import dataclass

from flask import Blueprint, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from markupsafe import Markup
from sqlalchemy.orm import Session

from app.console.ui.labels import SKIP_REASONS
from app.console.ui.lists.job_search import job_field, with_job
from app.console.ui.lists.listing import address_with, chips, whole_number
from app.console.ui.lists.search import choice_field, read_terms
from app.console.ui.rounds.of_run import again_address
from app.console.ui.rounds.rows import job_link, progress_of, row_of, rows_of
from app.console.ui.rounds.words import OUTCOMES, ROUND_STATES, rule_text
from app.console.ui.view_tabs import Tab
from app.console.web.access import Access
from app.console.web.current import current_actor
from app.console.web.language import _
from app.database.flask_db import read_scope
from app.domain.access.permissions import Actor
from app.domain.rounds.evaluation import BAD
from app.domain.rounds.kinds import ArrivalOutcome, RoundState
from app.domain.rounds.runs_after import parse_runs_after
from app.domain.runs.trigger_keys import number_text, parse_number
from app.errors import Conflict, PermissionDenied
from app.services.jobs import choices, jobs
from app.services.rounds import listing
from app.services.rounds.listing import PredecessorView, RoundFilter, RoundView
from app.services.runs import round_runs
from app.store.runs import neighbours

blueprint = Blueprint("rounds", __name__)
POLICY = {
    "index": Access.LOGIN,
    "show": Access.VIEW,
}
#: rounds of a page
LENGTH = 50
_LOOKS = {
    ArrivalOutcome.SUCCEEDED: ("success", "check-circle-fill"),
    ArrivalOutcome.FAILED: ("danger", "x-circle-fill"),
    ArrivalOutcome.RETRYING: ("warning", "arrow-repeat"),
    ArrivalOutcome.UNRESOLVED: ("warning", "question-circle-fill"),
    ArrivalOutcome.NOT_RUN: ("danger", "slash-circle-fill"),
    ArrivalOutcome.EXCUSED: ("none", "dash-circle"),
}


@dataclass(frozen=True, slots=True)
class PredecessorRow:
    """Predecessor of a round as a row."""

    view: PredecessorView
    link: Markup
    state: str
    tone: str
    glyph: str
    note: str


@blueprint.get("/rounds")
def index() -> ResponseReturnValue:
    """List the rounds, newest first."""
    actor, job_id = current_actor(), max(0, whole_number("jobId", 0))
    titles = {state.value: str(title) for state, title in ROUND_STATES.items()}
    state = request.args.get("state", "")
    state = state if state in titles else ""
    before_id = max(0, whole_number("before", 0))
    with read_scope() as session:
        fields = (job_field(), choice_field("state", ("state", "status", _("State")), titles))
        search = with_job(session, read_terms(request.args.get("q", ""), fields), actor=actor)
        if search.parameters and not search.hints:
            return redirect(address_with(before=None, q=None, **search.parameters))
        chain = parse_number(request.args.get("chain", ""))
        criteria = RoundFilter(job_id=job_id, state=state, chain=chain)
        rounds = listing.list_rounds(session, criteria, actor=actor, before_id=before_id, limit=LENGTH + 1)
        job_text = choices.name_jobs(session, [job_id], actor=actor)[0].text if job_id else ""
    return render_template(
        "rounds/index.html",
        rows=rows_of(rounds[:LENGTH]),
        older=address_with(before=rounds[LENGTH - 1].id) if len(rounds) > LENGTH else "",
        before_id=before_id,
        tabs=_tabs(state, titles),
        state=state,
        states=ROUND_STATES,
        search=search,
        active=chips(
            [("jobId", _("Job"), job_text), ("chain", _("Chain"), number_text(chain) if chain else "")]
        ),
        job_id=job_id,
        job_text=job_text,
        clear=url_for("rounds.index", state=state or None),
    )


def _tabs(state: str, titles: dict[str, str]) -> list[Tab]:
    tabs = [Tab(_("All"), address_with(state=None, before=None), not state)]
    return tabs + [
        Tab(title, address_with(state=value, before=None), value == state) for value, title in titles.items()
    ]


@blueprint.get("/rounds/<int(max=9223372036854775807):round_id>")
def show(round_id: int) -> ResponseReturnValue:
    """Show one round: its state, and what became of each predecessor."""
    actor = current_actor()
    with read_scope() as session:
        view = listing.show_round(session, round_id, actor=actor)
        value = parse_runs_after(jobs.get_job(session, view.job_id, actor=actor).runs_after)
        may_run_missing = _may_run_missing(session, view, actor)
        root = neighbours.find_root(session, view.chain) if view.chain else None
    return render_template(
        "rounds/show.html",
        row=row_of(view),
        predecessors=[
            _predecessor(predecessor, view.state == RoundState.OPEN) for predecessor in view.predecessors
        ],
        rule=rule_text(value, in_chain=bool(view.chain)),
        may_run_missing=may_run_missing,
        again=again_address(root, actor),
        chain_id=number_text(view.chain) if view.chain else "",
    )


def _may_run_missing(session: Session, view: RoundView, actor: Actor) -> bool:
    """Return whether there are runs to repeat so that the round can start, and the actor may do that."""
    try:
        return bool(round_runs.find_missing(session, view.id, actor=actor))
    except (Conflict, PermissionDenied):
        return False


def _predecessor(view: PredecessorView, is_open: bool) -> PredecessorRow:
    if view.outcome is not None:
        tone, glyph = _LOOKS[view.outcome]
        note = ""
        if view.outcome is ArrivalOutcome.NOT_RUN and not (is_open and view.is_running):
            note = str(SKIP_REASONS.get(view.reason, ""))
        elif is_open and view.outcome in (*BAD, ArrivalOutcome.RETRYING):
            note = progress_of(view, is_open=True)
        elif view.outcome is ArrivalOutcome.FAILED and view.total_shards > 1:
            note = _("%(n)s of %(all)s shards succeeded", n=view.succeeded_shards, all=view.total_shards)
        return PredecessorRow(view, job_link(view), str(OUTCOMES[view.outcome]), tone, glyph, note)
    note = progress_of(view, is_open=is_open) if view.total_shards > 1 else ""
    if view.is_running and is_open:
        return PredecessorRow(view, job_link(view), _("Running"), "info", "arrow-repeat", note)
    text = _("No run yet") if is_open else _("No run")
    return PredecessorRow(view, job_link(view), text, "none", "circle", note)
