"""The original's JSON endpoints of executor groups. docs/reference/console.md, section 12."""

from flask import Blueprint, Response

from app.clock import now_ms
from app.console.scripting.rows import group_row
from app.console.web.access import Access
from app.console.web.current import current_actor, settings
from app.console.web.envelope import bean_int, envelope, int_parameter, page_range, table, text_or_empty
from app.database.flask_db import read_scope, session_scope
from app.services.executors import groups
from app.services.executors.groups import GroupDraft
from app.store.executors.listing import GroupFilter

blueprint = Blueprint("scripting_groups", __name__)
POLICY = {
    "page_list": Access.ADMIN,
    "save": Access.ADMIN,
    "update": Access.ADMIN,
    "remove": Access.ADMIN,
    "load_by_id": Access.VIEW,
}


@blueprint.route("/jobgroup/pageList", methods=["GET", "POST"])
def page_list() -> Response:
    """List groups."""
    start, length = page_range()
    app_name, title = text_or_empty("appname"), text_or_empty("title")
    with read_scope() as session:
        page = groups.list_groups(
            session, GroupFilter(app_name, title), actor=current_actor(), start=start, length=length
        )
        return table(page, [group_row(group) for group in page.rows])


@blueprint.post("/jobgroup/save")
def save() -> Response:
    """Add a group."""
    with session_scope() as session:
        groups.add_group(session, _draft(), actor=current_actor(), now_ms=now_ms())
    return envelope()


@blueprint.post("/jobgroup/update")
def update() -> Response:
    """Change a group."""
    with session_scope() as session:
        groups.update_group(session, bean_int("id"), _draft(), actor=current_actor(), now_ms=now_ms())
    return envelope()


@blueprint.post("/jobgroup/remove")
def remove() -> Response:
    """Delete a group no job uses."""
    with session_scope() as session:
        groups.remove_group(session, int_parameter("id"), actor=current_actor(), now_ms=now_ms())
    return envelope()


@blueprint.route("/jobgroup/loadById", methods=["GET", "POST"])
def load_by_id() -> Response:
    """Return one group."""
    with read_scope() as session:
        return envelope(group_row(groups.get_group(session, int_parameter("id"), actor=current_actor())))


def _draft() -> GroupDraft:
    return GroupDraft(
        app_name=text_or_empty("appname"),
        title=text_or_empty("title"),
        address_type=bean_int("addressType"),
        address_list=text_or_empty("addressList"),
        networks=settings().executor_networks,
    )
