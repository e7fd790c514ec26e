"""Incidents: the list of broken promises, and the page of one, where it is acknowledged."""

from collections.abc import Sequence

from flask import Blueprint, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.clock import now_ms
from app.console.promises.list_search import read_list_search, requested_group
from app.console.promises.timeline import timeline_of
from app.console.ui.lists.listing import address_with, chips, whole_number
from app.console.ui.lists.search import Search, choice_field
from app.console.ui.notices import Subject, done
from app.console.ui.promise_words import INCIDENT_STATES, breaches_text, broken_of
from app.console.ui.view_tabs import Count, Tab
from app.console.web.access import Access
from app.console.web.current import current_actor
from app.console.web.language import _
from app.database.flask_db import read_scope, session_scope
from app.domain.access.permissions import Actor, Right
from app.domain.enums import IncidentState
from app.models.group import Group
from app.services.jobs import choices
from app.services.promises import incidents, lists
from app.store.executors import listing as group_lists
from app.store.promises.listing import COUNTED_MAX, IncidentFilter

blueprint = Blueprint("incidents", __name__)
POLICY = {
    "index": Access.LOGIN,
    "show": Access.VIEW,
    "acknowledge": Access.OPERATE,
}

#: value of ``state`` for incidents in any state
ALL = "all"


@blueprint.get("/incidents")
def index() -> ResponseReturnValue:
    """List incidents: the open ones, or those in another ``?state=``."""
    actor = current_actor()
    state, before_id = _requested_state(), max(0, whole_number("before", 0))
    with read_scope() as session:
        groups = group_lists.find_visible(session, actor.group_ids(Right.VIEW))
        search = _read_search(session, request.args.get("q", ""), groups, actor)
        if search.parameters and not search.hints:
            return redirect(address_with(before=None, q=None, **search.parameters))
        group_id, job_id = requested_group(groups), max(0, whole_number("jobId", 0))
        criteria = IncidentFilter(
            [IncidentState(state)] if state != ALL else [], job_id or None, group_id or None
        )
        page = lists.list_incidents(session, criteria, actor=actor, before_id=before_id or None)
        job_text = _job_text(session, job_id, actor)
        has_promises = bool(page.rows) or lists.has_promises(session, actor)
    title = next((group.title for group in groups if group.id == group_id), "")
    active = chips([("jobGroup", _("Executor"), title), ("jobId", _("Job"), job_text)])
    return render_template(
        "promises/incidents.html",
        rows=page.rows,
        tabs=_tabs(state, page.counts),
        state=state,
        states=INCIDENT_STATES,
        groups=groups,
        group_id=group_id,
        job_id=job_id,
        job_text=job_text,
        active=active,
        search=search,
        has_promises=has_promises,
        clear=url_for("incidents.index", state=state if state != IncidentState.OPEN else None),
        older=address_with(before=page.before_id) if page.before_id else "",
        newest=address_with(before=None) if before_id else "",
        titles={group.id: group.title for group in groups},
        may_edit=actor.has_anywhere(Right.EDIT),
    )


@blueprint.get("/incidents/<int:incident_id>")
def show(incident_id: int) -> ResponseReturnValue:
    """Show one incident; messages about it lead here."""
    with read_scope() as session:
        detail = lists.find_detail(session, incident_id, actor=current_actor())
    return render_template(
        "promises/incident.html",
        detail=detail,
        incident=detail.incident,
        broken=broken_of(detail.incident),
        states=INCIDENT_STATES,
        timeline=timeline_of(detail.incident, detail.messages, now_ms=now_ms()),
    )


@blueprint.post("/incidents/<int:incident_id>/acknowledge")
def acknowledge(incident_id: int) -> ResponseReturnValue:
    """Acknowledge an incident: it is not escalated."""
    with session_scope() as session:
        incident = incidents.acknowledge(session, incident_id, actor=current_actor(), now_ms=now_ms())
        subject = Subject("incident", incident.id, breaches_text(incident))
    return done("acknowledged", url_for("incidents.show", incident_id=incident_id), of=subject)


def _requested_state() -> str:
    state = request.args.get("state", "")
    return state if state == ALL or state in list(IncidentState) else IncidentState.OPEN.value


def _job_text(session: Session, job_id: int, actor: Actor) -> str:
    return choices.name_jobs(session, [job_id], actor=actor)[0].text if job_id else ""


def _tabs(state: str, counts: dict[str, int]) -> list[Tab]:
    """Return the states as tabs; those that are worth a look have their numbers."""
    is_cut = sum(counts.values()) >= COUNTED_MAX
    tabs = []
    for value in (IncidentState.OPEN, IncidentState.ACKNOWLEDGED, IncidentState.KEPT_AGAIN, ALL):
        number = counts.get(value, 0)
        count = Count(number, is_cut, is_bad=value == IncidentState.OPEN) if number else None
        title = _("All") if value == ALL else str(INCIDENT_STATES[IncidentState(value)])
        href = address_with(state=None if value == IncidentState.OPEN else str(value), before=None)
        tabs.append(Tab(title, href, value == state, count))
    return tabs


def _read_search(session: Session, text: str, groups: Sequence[Group], actor: Actor) -> Search:
    """Return what a text means; a job is found by its number or its name."""
    states = {state.value: str(title) for state, title in INCIDENT_STATES.items()} | {ALL: _("All")}
    state_field = choice_field("state", ("state", "status", _("State")), states)
    return read_list_search(session, text, groups, (state_field,), actor=actor)
