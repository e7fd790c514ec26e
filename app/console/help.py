"""Help: a first executor, a first job, and terms."""

from flask import Blueprint, render_template
from flask.typing import ResponseReturnValue

from app.console.web.access import Access

blueprint = Blueprint("help", __name__)
POLICY = {
    "index": Access.LOGIN,
}


@blueprint.get("/help")
def index() -> ResponseReturnValue:
    """Show the help page."""
    return render_template("help/index.html")
