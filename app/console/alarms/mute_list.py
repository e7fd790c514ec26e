"""Mutes in effect of the groups that the user may see, the first to end first."""

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue

from app.clock import Millis, now_ms
from app.console.alarms.sections import read_sections
from app.console.ui.lists.listing import address_with, here
from app.console.web.access import Access
from app.console.web.current import current_actor
from app.database.flask_db import read_scope
from app.domain.access.permissions import Right

blueprint = Blueprint("alarm_mute_list", __name__)
POLICY = {
    "index": Access.LOGIN,
}


@blueprint.get("/alarms/mutes")
def index() -> ResponseReturnValue:
    """List the mutes."""
    actor, after = current_actor(), _after()
    if not actor.has_anywhere(Right.VIEW):
        return render_template("alarms/mutes.html", sections=None)
    with read_scope() as session:
        sections = read_sections(session, actor, now_ms=now_ms(), after=after)
    last = sections.mutes[-1].mute if sections.has_more_mutes else None
    return render_template(
        "alarms/mutes.html",
        sections=sections,
        further=address_with(after=f"{last.until_ms}-{last.id}") if last is not None else "",
        first=address_with(after=None) if any(after) else "",
        here=here(),
    )


def _after() -> tuple[Millis, int]:
    """Return end and id of the mute before the first of the page."""
    until, _separator, mute_id = request.args.get("after", "").partition("-")
    if all(text.isascii() and text.isdecimal() and len(text) <= 15 for text in (until, mute_id)):
        return int(until), min(int(mute_id), 2**31 - 1)
    return 0, 0
