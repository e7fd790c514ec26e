"""Login page, which needs no login."""

from dataclasses import replace
from typing import Any

from flask import Blueprint, Response, current_app, make_response, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as BaseResponse

from app.clock import now_ms
from app.console.account.start_page import start_address
from app.console.ui.preferences import frame
from app.console.web import after_login
from app.console.web.access import Access
from app.console.web.current import (
    context_path,
    current_user,
    remote_address,
    set_cookie,
    settings,
    translate_error,
)
from app.errors import InvalidInput, TooManyAttempts, XxlJobError
from app.services.accounts import login
from app.services.accounts.login import Attempt, Login

#: where the application keeps the OpenID provider, None without one
SIGN_ON = "xxl_job_sign_on"

blueprint = Blueprint("auth", __name__)
POLICY = {
    "login_page": Access.PUBLIC,
    "log_in": Access.PUBLIC,
}


@blueprint.get("/toLogin")
def login_page() -> BaseResponse:
    """Show the login form; redirect a logged-in user to the start page."""
    user = current_user()
    if user is not None:
        return redirect(context_path() if user.must_change_password else start_address(user.actor), 303)
    return login_form()


def login_form(error: str = "", *, username: str = "", status: int = 200) -> BaseResponse:
    """Return the login page, with the button of the OpenID provider if there is one."""
    page = render_template(
        "account/login.html",
        error=error,
        username=username,
        is_unsaved=after_login.is_unsaved(),
        sign_on=current_app.extensions[SIGN_ON],
        # The URL of this request is not used: it may contain a code of the provider.
        frame=replace(frame(), here=url_for("auth.login_page")),
    )
    return make_response(page, status)


@blueprint.post("/toLogin")
def log_in() -> BaseResponse:
    """Log in with the form of the page, which works without JavaScript."""
    try:
        new_login = check_login(request.form)
    except (InvalidInput, TooManyAttempts) as exc:
        return refused_login(exc, username=request.form.get("userName", ""), status=400)
    return logged_in(new_login)


def refused_login(error: XxlJobError, *, username: str = "", status: int) -> BaseResponse:
    """Return the login page with an error; with 429 and the time to wait after too many attempts."""
    if not isinstance(error, TooManyAttempts):
        return login_form(translate_error(error), username=username, status=status)
    response = login_form(translate_error(error), username=username, status=429)
    response.headers["Retry-After"] = str(error.retry_after_s)
    return response


def logged_in(new_login: Login) -> Response:
    """Redirect to the page that was requested, or the start page, with the cookie of a new login."""
    onward = after_login.target() or start_address(new_login.actor)
    redirection = Response(
        status=303, headers={"Location": context_path() if new_login.must_change else onward}
    )
    after_login.forget(redirection)
    set_cookie(redirection, new_login.token, max_age_s=new_login.max_age_s)
    return redirection


def check_login(values: Any, *, is_script: bool = False) -> Login:
    """Log in with the parameters of the original: ``userName``, ``password``, ``ifRemember=on``."""
    attempt = Attempt(
        username=values.get("userName") or "",
        password=values.get("password") or "",
        remember=values.get("ifRemember") == "on",
        address=remote_address(),
        agent=request.headers.get("User-Agent", ""),
        is_script=is_script,
    )
    return login.log_in(attempt, now_ms=now_ms(), keep_hash=settings().shared_with_java)
