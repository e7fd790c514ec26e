"""Help: a first executor, a first job, and terms."""

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue

from app.console.web.access import Access
from app.console.web.current import current_actor, settings
from app.db import read_scope
from app.domain.permissions import Right
from app.store import group_lists

blueprint = Blueprint("help", __name__)
POLICY = {
    "index": Access.LOGIN,
}

#: AppName of the example if there is no group yet
EXAMPLE_APPNAME = "demo-executor"


@blueprint.get("/help")
def index() -> ResponseReturnValue:
    """Show the help page."""
    with read_scope() as session:
        groups = group_lists.find_visible(session, current_actor().group_ids(Right.VIEW))
    appname = groups[0].app_name if groups else EXAMPLE_APPNAME
    address = settings().public_url or request.host_url.rstrip("/") + settings().context_path
    return render_template("help/index.html", console_url=address, appname=appname)
