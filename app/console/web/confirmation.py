"""Confirmation before code is saved: the password field of a form, and the check of browsers elsewhere."""

from flask import after_this_request
from flask.wrappers import Response
from wtforms import Field

from app.clock import now_ms
from app.console.web.current import current_user, is_from_browser, translate_error
from app.domain.text.texts import N_
from app.errors import InvalidInput, PermissionDenied, TooManyAttempts
from app.services.accounts import confirmation


def confirmation_kind() -> str:
    """Return what a form has to request: ``password``, ``login`` for a new sign-on, or nothing."""
    user = current_user()
    if user is None or not confirmation.needs_confirmation(user.visitor, now_ms=now_ms()):
        return ""
    return "login" if user.visitor.sign_on else "password"


def refusal_status(field: Field) -> int:
    """Confirm the login with the password in a form's field; return 0 if it is confirmed.

    Otherwise the error is at the field, which gets the focus unless another one has an error, too, and the
    result is the status of the page that shows the form again.
    """
    user = current_user()
    if user is None:
        raise PermissionDenied(N_("permission denied"))
    try:
        confirmation.confirm(user.visitor, field.data or "", now_ms=now_ms())
    except (InvalidInput, TooManyAttempts) as exc:
        field.errors, field.render_kw = [translate_error(exc)], {"autofocus": True}
        if not isinstance(exc, TooManyAttempts):
            return 400
        wait_s = exc.retry_after_s

        @after_this_request
        def add_wait(response: Response) -> Response:
            response.headers["Retry-After"] = str(wait_s)
            return response

        return 429
    return 0


def require_confirmed_browser() -> None:
    """Refuse code from a browser whose login is not confirmed; scripts need no confirmation.

    Raises PermissionDenied. For the JSON endpoints, which would be a way round the pages.
    """
    if is_from_browser() and confirmation_kind():
        raise PermissionDenied(N_("Confirm your password on the GLUE page of the job first"))
