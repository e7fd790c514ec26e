"""What the pickers ask for as one types: a fragment of a list, no page. Without scripts nobody asks."""

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue

from app.console.ui.listing import whole_number
from app.console.web.access import Access
from app.console.web.current import current_actor
from app.db import read_scope
from app.domain.permissions import Right
from app.services.jobs import choices
from app.services.jobs.choices import OFFERED_MAX, Offer

blueprint = Blueprint("pickers", __name__, url_prefix="/pick")
POLICY = {
    "jobs": Access.LOGIN,
    "groups": Access.LOGIN,
    "users": Access.ADMIN,
}

#: what ``right`` may be in the address: on what one can do something is all one is offered
ASKED = {"operate": Right.OPERATE, "edit": Right.EDIT}


@blueprint.get("/jobs")
def jobs() -> ResponseReturnValue:
    """Offer jobs by id, description or handler; ``jobGroup`` keeps to a group, ``skip`` leaves a job out."""
    group_id, skip_id = max(0, whole_number("jobGroup", 0)), whole_number("skip", 0)
    with read_scope() as session:
        offer = choices.offer_jobs(
            session, _typed(), actor=current_actor(), right=_right(), group_id=group_id, skip_id=skip_id
        )
    return _fragment(offer)


@blueprint.get("/groups")
def groups() -> ResponseReturnValue:
    """Offer executor groups by id, title or appname."""
    with read_scope() as session:
        offer = choices.offer_groups(session, _typed(), actor=current_actor(), right=_right())
    return _fragment(offer)


@blueprint.get("/users")
def users() -> ResponseReturnValue:
    """Offer users by name."""
    with read_scope() as session:
        offer = choices.offer_users(session, _typed(), actor=current_actor())
    return _fragment(offer)


def _typed() -> str:
    return request.args.get("q", "").strip()


def _right() -> Right:
    return ASKED.get(request.args.get("right", ""), Right.VIEW)


def _fragment(offer: Offer) -> str:
    return render_template("macros/_choices.html", offer=offer, offered=OFFERED_MAX)
