"""What can be done about a run that waits for a limit, or holds a slot: run it now, withdraw it, release the slot."""

from flask import Blueprint
from flask.typing import ResponseReturnValue

from app.console.web.access import Access

blueprint = Blueprint("waiting_runs", __name__, url_prefix="/joblog")
POLICY = {
    "start": Access.OPERATE,
    "withdraw": Access.OPERATE,
    "release": Access.OPERATE,
}


@blueprint.route("/waiting/<run_id>/start", methods=["GET", "POST"])
def start(run_id: str) -> ResponseReturnValue:
    return ""


@blueprint.route("/waiting/<run_id>/withdraw", methods=["GET", "POST"])
def withdraw(run_id: str) -> ResponseReturnValue:
    return ""


@blueprint.route("/<int(max=9223372036854775807):log_id>/release", methods=["GET", "POST"])
def release(log_id: int) -> ResponseReturnValue:
    return ""
