"""Pages of backfills: the list, and one with the result of each instant."""

from dataclasses import dataclass
from functools import partial
from zoneinfo import ZoneInfo

from flask import Blueprint, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.clock import Millis, now_ms
from app.console.backfills.targets import UNSUCCESSFUL_STATES
from app.console.ui.backfills.rows import row_of, rows_of, zone_of
from app.console.ui.backfills.words import (
    CHILDREN,
    HINTS,
    INSTANT_STATES,
    LABELS,
    ON_FAILURES,
    ORDERS,
    WHICH,
    Look,
)
from app.console.ui.lists.job_search import job_field, with_job
from app.console.ui.lists.listing import address_with, chips, fetch_requested, whole_number
from app.console.ui.lists.ranges import write_local
from app.console.ui.lists.search import choice_field, read_terms
from app.console.ui.view_tabs import Count, Tab
from app.console.ui.waiting import missing_scheduler
from app.console.web.access import Access
from app.console.web.current import current_actor, translate
from app.console.web.language import _
from app.console.web.language import lazy_gettext as _l
from app.database.flask_db import read_scope
from app.domain.access.permissions import Right
from app.domain.backfills.kinds import (
    ACTIVE,
    BackfillState,
    Children,
    InstantState,
    OnFailure,
    Order,
    Which,
)
from app.models.backfill import Backfill
from app.services.backfills import views
from app.services.backfills.listing import BackfillView, InstantView, show_backfill
from app.services.jobs import choices
from app.store.jobs import scheduling as job_store

blueprint = Blueprint("backfills", __name__, url_prefix="/backfills")
POLICY = {
    "index": Access.LOGIN,
    "show": Access.VIEW,
}
#: tab of the list -> states
TABS = {
    "active": (_l("In progress"), ACTIVE),
    "failed": (_l("Stopped at a failure"), (BackfillState.FAILED,)),
    "done": (_l("Done"), (BackfillState.DONE,)),
    "cancelled": (_l("Cancelled"), (BackfillState.CANCELLED,)),
}


@dataclass(frozen=True, slots=True)
class InstantRow:
    """An instant of a backfill as a row."""

    instant: InstantView
    look: Look
    #: logical time, local in the zone of the job
    text: str

    @property
    def duration_ms(self) -> Millis | None:
        """From the request for its first run to the end of the last one."""
        instant = self.instant
        return (
            instant.ended_ms - instant.begun_ms
            if instant.begun_ms and instant.ended_ms >= instant.begun_ms
            else None
        )


@blueprint.get("")
def index() -> ResponseReturnValue:
    """List the backfills, the newest first."""
    actor, job_id = current_actor(), max(0, whole_number("jobId", 0))
    titles = {name: str(title) for name, (title, _states) in TABS.items()}
    state = request.args.get("state", "")
    state = state if state in TABS else ""
    with read_scope() as session:
        fields = (job_field(), choice_field("state", ("state", "status", _("State")), titles))
        search = with_job(session, read_terms(request.args.get("q", ""), fields), actor=actor)
        if search.parameters and not search.hints:
            return redirect(address_with(page=None, q=None, **search.parameters))
        states = TABS[state][1] if state else ()
        fetch = partial(views.list_backfills, session, actor=actor, job_id=job_id, states=states)
        page, paging = fetch_requested(fetch)
        job_text = choices.name_jobs(session, [job_id], actor=actor)[0].text if job_id else ""
        jobs = job_store.find_jobs(session, {view.row.job_id for view in page.rows})
    return render_template(
        "backfills/index.html",
        rows=rows_of(page.rows, {job.id: job.time_zone for job in jobs.values()}),
        paging=paging,
        tabs=_tabs(state, titles),
        state=state,
        states=titles,
        search=search,
        active=chips([("jobId", _("Job"), job_text)]),
        job_id=job_id,
        job_text=job_text,
        clear=url_for("backfills.index", state=state or None),
    )


def _tabs(state: str, titles: dict[str, str]) -> list[Tab]:
    tabs = [Tab(_("All"), address_with(state=None, page=None), not state)]
    return tabs + [
        Tab(title, address_with(state=value, page=None), value == state) for value, title in titles.items()
    ]


@blueprint.get("/<int(max=9223372036854775807):backfill_id>")
def show(backfill_id: int) -> ResponseReturnValue:
    """Show one backfill: its progress, and the result of each instant."""
    actor, state = current_actor(), request.args.get("state", "")
    state = state if state in {member.value for member in InstantState} else ""
    with read_scope() as session:
        view = show_backfill(session, backfill_id, actor=actor)
        states = (state,) if state else ()
        fetch = partial(views.list_instants, session, backfill_id, states=states)
        page, paging = fetch_requested(fetch)
        job = job_store.find_jobs(session, [view.row.job_id]).get(view.row.job_id)
        is_going = view.row.state in ACTIVE and view.row.state != BackfillState.PAUSED
        problem = missing_scheduler(session, now_ms=now_ms()) if is_going else ""
    row, zone = view.row, zone_of(job.time_zone if job is not None else "")
    return render_template(
        "backfills/show.html",
        row=row_of(view, zone.key),
        view=view,
        may_operate=actor.may(view.group_id, Right.OPERATE),
        instants=[_instant_row(instant, zone) for instant in page.rows],
        paging=paging,
        tabs=_instant_tabs(view, state),
        state=state,
        choices=_option_texts(row),
        summary=translate(view.sentence),
        reason=translate(view.reason) if view.reason else "",
        hint=HINTS.get(BackfillState(row.state), ""),
        rest=_rest(view),
        stalled=problem,
        zone=zone,
    )


def _option_texts(row: Backfill) -> list[tuple[str, str]]:
    """Return what was asked for, in words."""
    return [
        (str(LABELS["which"]), str(WHICH[Which(row.which)])),
        (str(LABELS["order"]), str(ORDERS[Order(row.run_order)])),
        (str(LABELS["max_running"]), str(row.max_running)),
        (str(LABELS["children"]), str(CHILDREN[Children(row.children)])),
        (str(LABELS["on_failure"]), str(ON_FAILURES[OnFailure(row.on_failure)])),
    ]


def _rest(view: BackfillView) -> str:
    """Return the address that backfills what has not succeeded of one that is over; empty: there is none."""
    row = view.row
    is_over = row.state in (BackfillState.CANCELLED, BackfillState.DONE)
    left = sum(view.counts.get(state, 0) for state in UNSUCCESSFUL_STATES)
    if not is_over or not left or not view.has_job:
        return ""
    parameters = {name: getattr(row, name) for name in ("max_running", "children", "on_failure")}
    return url_for("backfill_forms.new", rest=row.id, order=row.run_order, **parameters)


def _instant_tabs(view: BackfillView, state: str) -> list[Tab]:
    tabs = [Tab(_("All"), address_with(state=None, page=None), not state, Count(view.row.total))]
    for member, look in INSTANT_STATES.items():
        if view.counts.get(member, 0) or member == state:
            count = Count(view.counts.get(member, 0), is_bad=member is InstantState.FAILED)
            tabs.append(
                Tab(str(look.title), address_with(state=member.value, page=None), member == state, count)
            )
    return tabs


def _instant_row(instant: InstantView, zone: ZoneInfo) -> InstantRow:
    look = INSTANT_STATES[InstantState(instant.state)]
    return InstantRow(instant, look, write_local(instant.logical_ms, zone))
