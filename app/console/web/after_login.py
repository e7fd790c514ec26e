"""Redirect after the login: to the requested page, or with a note that a form was not saved.

A cookie keeps this between the redirect to the login page and the login, since that page takes no parameter.
Only requests of browsers for pages set it; what comes back is checked again.
"""

from urllib.parse import quote, unquote, urlsplit

from flask import Response, request

from app.console.web.current import context_path, is_scripting

COOKIE = "XXL_JOB_AFTER_LOGIN"
#: age of the cookie in seconds
MAX_AGE_S = 15 * 60
#: longest URL that is kept
LENGTH_MAX = 2_000
#: value of the cookie after a form that was not saved
NOT_SAVED = "not-saved"
#: pages that are left to the user's start page
STARTS = frozenset({"/", "/start"})
#: forms that save nothing
SAVES_NOTHING = frozenset({"account.log_out"})


def keep_request(response: Response) -> None:
    """Keep the URL of this request in the redirect to the login page, if it was for a page."""
    if is_scripting() or "text/html" not in request.headers.get("Accept", ""):
        return
    value = ""
    if request.method == "POST" and request.endpoint not in SAVES_NOTHING:
        value = NOT_SAVED
    elif request.method == "GET" and request.path not in STARTS:
        value = _own_address()
    if value and len(value) <= LENGTH_MAX:
        _set_cookie(response, value, max_age_s=MAX_AGE_S)


def target() -> str:
    """Return the URL that was requested without a login; empty if there is none."""
    value = request.cookies.get(COOKIE, "")
    return value if _is_own(value) else ""


def is_unsaved() -> bool:
    """Whether a form was sent without a login."""
    return request.cookies.get(COOKIE) == NOT_SAVED


def forget(response: Response) -> None:
    """Delete the cookie, if the request has it."""
    if COOKIE in request.cookies:
        _set_cookie(response, "", max_age_s=0)


def _own_address() -> str:
    query = quote(request.query_string, safe="%&=+,:/?@!$'()*~")
    return quote(request.script_root + request.path) + (f"?{query}" if query else "")


def _is_own(value: str) -> bool:
    """Whether a value is a path of this console, which no browser resolves to another site."""
    if not value.startswith(context_path("/")) or value.startswith("//") or "\\" in value:
        return False
    return value.isascii() and value.isprintable() and ".." not in unquote(urlsplit(value).path)


def _set_cookie(response: Response, value: str, *, max_age_s: int) -> None:
    response.set_cookie(
        COOKIE,
        value,
        max_age=max_age_s,
        path=context_path("/"),
        secure=request.is_secure,
        httponly=True,
        samesite="Lax",
    )
