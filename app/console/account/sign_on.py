"""Sign-on by the OpenID provider: redirect and callback. Refusals show the login page with the reason."""

from urllib.parse import urlsplit

from flask import Blueprint, Response, abort, current_app, redirect, request
from werkzeug.wrappers import Response as BaseResponse

from app.clock import now_ms
from app.console.account.login import SIGN_ON, logged_in, refused_login
from app.console.account.start_page import start_address
from app.console.web.access import Access
from app.console.web.current import context_path, current_user, remote_address, settings
from app.errors import ProviderUnreachable, SignOnExpired, SignOnRefused, TooManyAttempts
from app.services.accounts.sign_on import Answer, SignOn

#: cookie of a pending sign-on
COOKIE = "XXL_JOB_SIGN_ON"

blueprint = Blueprint("sign_on", __name__)
POLICY = {
    "start": Access.PUBLIC,
    "callback": Access.PUBLIC,
}


@blueprint.get("/sign-on")
def start() -> BaseResponse:
    """Redirect to the provider, with a cookie that ties its answer to this browser."""
    provider, user = _provider(), current_user()
    if user is not None:
        return redirect(start_address(user.actor), 303)
    try:
        start_data = provider.begin(now_ms=now_ms())
    except ProviderUnreachable as exc:
        return refused_login(exc, status=503)
    response = Response(status=303, headers={"Location": start_data.url})
    _set_cookie(response, start_data.cookie, max_age_s=start_data.max_age_s)
    return response


@blueprint.get("/sign-on/callback")
def callback() -> BaseResponse:
    """Take the provider's answer and log its user in."""
    provider = _provider()
    parameters = {name: request.args.get(name, "") for name in ("code", "state", "error")}
    answer = Answer(
        **parameters,
        issuer=request.args.get("iss", ""),
        cookie=request.cookies.get(COOKIE, ""),
        address=remote_address(),
        agent=request.headers.get("User-Agent", ""),
    )
    response: BaseResponse
    try:
        response = logged_in(provider.finish(answer, now_ms=now_ms()))
    except SignOnExpired as exc:  # The cookie may be that of another tab, whose answer is still to come.
        user = current_user()
        if user is not None:
            return redirect(start_address(user.actor), 303)
        return refused_login(exc, status=400)
    except (SignOnRefused, TooManyAttempts) as exc:
        response = refused_login(exc, status=403)
    except ProviderUnreachable as exc:
        response = refused_login(exc, status=503)
    _set_cookie(response, "", max_age_s=0)
    return response


def provider_logout_url() -> str:
    """Return the URL that ends the provider's session too; empty if there is none."""
    sign_on = current_app.extensions[SIGN_ON]
    back = settings().public_url.rstrip("/") + "/toLogin"
    return sign_on.logout_url(back) if sign_on is not None else ""


def _provider() -> SignOn:
    sign_on = current_app.extensions[SIGN_ON]
    if not isinstance(sign_on, SignOn):
        abort(404)
    return sign_on


def _set_cookie(response: BaseResponse, value: str, *, max_age_s: int) -> None:
    """Set the cookie of a pending sign-on; an age of 0 deletes it."""
    response.set_cookie(
        COOKIE,
        value,
        max_age=max_age_s,
        path=context_path("/sign-on"),
        secure=request.is_secure or urlsplit(settings().public_url).scheme == "https",
        httponly=True,
        samesite="Lax",
    )
