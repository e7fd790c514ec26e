"""Promises: those of all jobs by state, with how often each was kept in the last days."""

from functools import partial

from flask import Blueprint, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.console.promises.list_search import read_list_search, requested_group
from app.console.ui.lists.listing import address_with, chips, fetch_requested, whole_number
from app.console.ui.lists.search import choice_field
from app.console.ui.promise_words import KINDS, PROMISE_STATES
from app.console.ui.view_tabs import Count, Tab
from app.console.web.access import Access
from app.console.web.current import current_actor
from app.console.web.language import _
from app.database.flask_db import read_scope
from app.domain.access.permissions import Right
from app.domain.enums import PromiseKind, PromiseState
from app.services.jobs import choices
from app.services.promises import lists
from app.store.executors import listing as group_lists
from app.store.promises.listing import PromiseFilter

blueprint = Blueprint("promises", __name__)
POLICY = {
    "index": Access.LOGIN,
}


@blueprint.get("/promises")
def index() -> ResponseReturnValue:
    """List the promises, broken ones first."""
    actor = current_actor()
    job_id = max(0, whole_number("jobId", 0))
    kinds = {kind.value: str(title) for kind, title in KINDS.items()}
    with read_scope() as session:
        groups = group_lists.find_visible(session, actor.group_ids(Right.VIEW))
        titles = {state.value: str(title) for state, title in PROMISE_STATES.items()}
        fields = (
            choice_field("kind", ("kind", _("Kind")), kinds),
            choice_field("state", ("state", "status", _("State")), titles),
        )
        search = read_list_search(session, request.args.get("q", ""), groups, fields, actor=actor)
        if search.parameters and not search.hints:
            return redirect(address_with(page=None, q=None, **search.parameters))
        criteria = PromiseFilter(job_id or None, requested_group(groups) or None, _kind(), _state())
        counts = lists.count_promises(session, criteria, actor=actor)
        page, paging = fetch_requested(
            partial(lists.list_promises, session, criteria, counts=counts, actor=actor)
        )
        job_text = choices.name_jobs(session, [job_id], actor=actor)[0].text if job_id else ""
    group_titles = {group.id: group.title for group in groups}
    active = chips(
        [
            ("jobGroup", _("Executor"), group_titles.get(criteria.group_id or 0, "")),
            ("jobId", _("Job"), job_text),
            ("kind", _("Kind"), kinds.get(criteria.kind, "")),
        ]
    )
    return render_template(
        "promises/index.html",
        rows=page.rows,
        paging=paging,
        tabs=_tabs(criteria.state, counts),
        groups=groups,
        filter=criteria,
        job_text=job_text,
        kinds=list(kinds.items()),
        states=PROMISE_STATES,
        active=active,
        search=search,
        titles=group_titles,
        clear=url_for("promises.index", state=criteria.state or None),
        may_edit=actor.has_anywhere(Right.EDIT),
    )


def _kind() -> str:
    kind = request.args.get("kind", "")
    return kind if kind in list(PromiseKind) else ""


def _state() -> str:
    state = request.args.get("state", "")
    return state if state in list(PromiseState) else ""


def _tabs(state: str, numbers: dict[str, int]) -> list[Tab]:
    """Return all promises and their states as tabs with numbers."""
    tabs = [Tab(_("All"), address_with(state=None, page=None), not state, Count(sum(numbers.values())))]
    for value, title in PROMISE_STATES.items():
        count = Count(numbers.get(value, 0), is_bad=value == PromiseState.BROKEN and bool(numbers.get(value)))
        tabs.append(Tab(str(title), address_with(state=value, page=None), value == state, count))
    return tabs
