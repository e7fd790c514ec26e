"""Help: a first executor, a first job, and terms."""

from flask import Blueprint, render_template
from flask.typing import ResponseReturnValue

from app.console.web.access import Access
from app.console.web.current import current_actor
from app.console.web.languages import language_of_request
from app.domain.access.permissions import Right
from app.domain.schedules.cron_words import describe

blueprint = Blueprint("help", __name__)
POLICY = {
    "index": Access.LOGIN,
}


#: cron expressions that are explained
CRONS = (
    *("0 0/5 * * * ?", "0 0 * * * ?", "0 30 2 * * ?", "0 0 8 ? * MON-FRI", "0 0 6 L * ?", "0 0 22 ? * 6L"),
    "*/10 9-17 * * 1-5",
)


@blueprint.get("/help")
def index() -> ResponseReturnValue:
    """Show the help page; ways to pages that the user may not open are left out."""
    actor, language = current_actor(), language_of_request()
    return render_template(
        "help/index.html",
        crons=[(conf, describe(conf, language)) for conf in CRONS],
        may_view=actor.has_anywhere(Right.VIEW),
        may_edit=actor.has_anywhere(Right.EDIT),
        is_admin=actor.is_admin,
    )
