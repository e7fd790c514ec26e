"""API tokens of all users, and service tokens, which belong to no user. Administrators only."""

from functools import partial

from flask import Blueprint, render_template, url_for
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.account.tokens import creation_page, revocation_page, token_rows
from app.console.ui.lists.listing import fetch_requested
from app.console.web.access import Access
from app.console.web.current import current_actor
from app.database.flask_db import read_scope
from app.services.accounts import api_tokens

blueprint = Blueprint("all_tokens", __name__, url_prefix="/user/tokens")
POLICY = {
    "index": Access.ADMIN,
    "add": Access.ADMIN,
    "revoke": Access.ADMIN,
}


@blueprint.get("")
def index() -> ResponseReturnValue:
    """List the tokens of all users and the service tokens."""
    actor = current_actor()
    with read_scope() as session:
        page, paging = fetch_requested(partial(api_tokens.list_all, session, actor=actor))
        rows = token_rows(session, page.rows, actor=actor, now_ms=now_ms())
    return render_template("users/tokens.html", rows=rows, paging=paging)


@blueprint.route("/new", methods=["GET", "POST"])
def add() -> ResponseReturnValue:
    """Create a service token and show it once."""
    return creation_page(service=True, back=url_for("all_tokens.index"))


@blueprint.route("/<int(max=2147483647):token_id>/revoke", methods=["GET", "POST"])
def revoke(token_id: int) -> ResponseReturnValue:
    """Revoke a token of any user."""
    return revocation_page(token_id, back=url_for("all_tokens.index"))
