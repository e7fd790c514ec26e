"""Pickers: search-as-you-type fragments for jobs, executor groups and users."""

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue

from app.console.ui.lists.listing import whole_number
from app.console.web.access import Access
from app.console.web.current import current_actor
from app.database.flask_db import read_scope
from app.domain.access.permissions import Right
from app.services.jobs import choices, palette
from app.services.jobs.choices import OFFERED_MAX, Offer

blueprint = Blueprint("pickers", __name__, url_prefix="/pick")
POLICY = {
    "jobs": Access.LOGIN,
    "groups": Access.LOGIN,
    "everything": Access.LOGIN,
    "handlers": Access.VIEW,
    "users": Access.ADMIN,
}

#: allowed values of ``right``: only groups on which the user has it are offered
RIGHTS_OFFERED = {"operate": Right.OPERATE, "edit": Right.EDIT}


@blueprint.get("/jobs")
def jobs() -> ResponseReturnValue:
    """Search jobs by id, description or handler; ``jobGroup`` limits to a group, ``skip`` excludes a job."""
    group_id, skip_id = max(0, whole_number("jobGroup", 0)), whole_number("skip", 0)
    with read_scope() as session:
        offer = choices.offer_jobs(
            session, _query(), actor=current_actor(), right=_right(), group_id=group_id, skip_id=skip_id
        )
    return _fragment(offer)


@blueprint.get("/groups")
def groups() -> ResponseReturnValue:
    """Search executor groups by id, title or AppName."""
    with read_scope() as session:
        offer = choices.offer_groups(session, _query(), actor=current_actor(), right=_right())
    return _fragment(offer)


@blueprint.get("/all")
def everything() -> ResponseReturnValue:
    """Search all that the user may see, for the command palette: a few of each kind."""
    with read_scope() as session:
        matches = palette.find_matches(session, _query(), actor=current_actor())
    return render_template("macros/_palette.html", matches=matches)


@blueprint.get("/handlers")
def handlers() -> ResponseReturnValue:
    """Return the handlers of a group's jobs as options; none for a group that the user cannot see."""
    group_id = whole_number("job_group", 0)
    with read_scope() as session:
        offer = choices.offer_handlers(session, group_id, actor=current_actor())
    return render_template("macros/_handlers.html", handlers=offer)


@blueprint.get("/users")
def users() -> ResponseReturnValue:
    """Search users by name."""
    with read_scope() as session:
        offer = choices.offer_users(session, _query(), actor=current_actor())
    return _fragment(offer)


def _query() -> str:
    return request.args.get("q", "").strip()


def _right() -> Right:
    return RIGHTS_OFFERED.get(request.args.get("right", ""), Right.VIEW)


def _fragment(offer: Offer) -> str:
    return render_template("macros/_choices.html", offer=offer, offered=OFFERED_MAX)
