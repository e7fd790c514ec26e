"""The original's JSON endpoints: login and logout. docs/reference/console.md, section 3."""

from flask import Blueprint, Response, request

from app.clock import now_ms
from app.console.account.login import check_login
from app.console.web.access import Access
from app.console.web.current import COOKIE, current_user, delete_cookie, set_cookie
from app.console.web.envelope import envelope, text_parameter
from app.database.flask_db import session_scope
from app.services.accounts import login

blueprint = Blueprint("scripting_login", __name__)
POLICY = {
    "log_in": Access.PUBLIC,
    "log_out": Access.PUBLIC,
}


@blueprint.post("/login")
def log_in() -> Response:
    """Log in; the response sets one cookie."""
    values = {name: text_parameter(name) for name in ("userName", "password", "ifRemember")}
    new_login = check_login(values, is_script=True)
    response = envelope()
    set_cookie(response, new_login.token, max_age_s=new_login.max_age_s)
    return response


@blueprint.post("/logout")
def log_out() -> Response:
    """Log out; always code 200."""
    user = current_user()
    if user is not None:
        with session_scope() as session:
            login.close_session(session, user.visitor, now_ms=now_ms())
    response = envelope()
    if COOKIE in request.headers.get("Cookie", ""):
        delete_cookie(response)
    return response
