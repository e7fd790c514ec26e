"""Current request: login, cookie, settings, and messages in the reader's language."""

import hmac
import re
import secrets
from functools import cached_property
from hashlib import sha256

from flask import Request, Response, current_app, g, request
from flask_babel import gettext
from flask_login import current_user as _current_user

from app.domain.access.permissions import Actor
from app.domain.enums import WeakPassword
from app.domain.runs.trace_templates import REPLIES, find_template
from app.domain.schedules.cron.fields import InvalidCronExpression
from app.domain.text.texts import N_, Text
from app.errors import ExecutorUnreachable, PermissionDenied, XxlJobError
from app.services.accounts.login import Visitor
from app.services.executors.callers import Caller
from app.settings.config import Config

COOKIE = "XXL_JOB_LOGIN_IDENTITY"
#: the login cookie in a header; clients return the attributes behind the value, or leave out the name
#: (docs/reference/clients.md, section B1)
_COOKIE_VALUE = re.compile(rf'(?:^|[;,])\s*(?:{COOKIE}=)?"?([0-9a-f]{{64}})"?\s*(?=$|[;,])')
#: length of the token of a login, SHA-256
TOKEN_BYTES = 32
#: cookie values checked per request
COOKIES_MAX = 4
#: set in the WSGI environment of requests outside the context path
OUTSIDE = "xxl_job.outside"
#: a host as browsers send it, with underscores, and its port
PLAIN_HOST = re.compile(r"[A-Za-z0-9_.-]{1,253}(:[0-9]{1,5})?")


class LoggedIn:
    """The user of a request, as Flask-Login hands it to views and templates (``current_user``)."""

    def __init__(self, visitor: Visitor) -> None:
        self.visitor = visitor

    @property
    def actor(self) -> Actor:
        """Actor whose rights the services check."""
        return self.visitor.actor

    @property
    def username(self) -> str:
        """User name to show."""
        return self.visitor.actor.username

    @property
    def is_admin(self) -> bool:
        """Whether the user has every right."""
        return self.visitor.actor.is_admin

    @property
    def must_change_password(self) -> bool:
        """Whether the password must be changed before anything else.

        A weak one by browsers only, until the grace of scripts is ended; they use the JSON endpoints alone.
        """
        weak = self.visitor.weak_password
        has_grace = weak == WeakPassword.GRACE and is_scripting() and not is_from_browser()
        return self.visitor.must_change or (weak != WeakPassword.NO and not has_grace)

    @property
    def language(self) -> str:
        """Language the user chose; empty if none."""
        return self.visitor.language

    @property
    def time_zone(self) -> str:
        """Time zone the user chose; empty for the configured one."""
        return self.visitor.time_zone

    @cached_property
    def csrf_token(self) -> str:
        """Token in the forms of this login; not valid for any other."""
        key = str(current_app.config["SECRET_KEY"]).encode()
        text = f"csrf:{self.visitor.token_hash}:".encode("utf-8", "replace")
        return hmac.new(key, text, sha256).hexdigest()


class Anonymous:
    """User of a request without a login."""

    is_admin = False
    must_change_password = False
    username = ""
    language = ""
    time_zone = ""
    csrf_token = ""


def current_user() -> LoggedIn | None:
    """Return the logged-in user, or None."""
    user = _current_user._get_current_object()
    return user if isinstance(user, LoggedIn) else None


def current_actor() -> Actor:
    """Return the actor of the request; raises PermissionDenied without a login."""
    user = current_user()
    if user is None:
        raise PermissionDenied(N_("permission denied"))
    return user.actor


def csrf_token() -> str:
    """Return the token of this login, for signatures; empty without a login. Forms: ``form_token``."""
    user = current_user()
    return user.csrf_token if user is not None else ""


def form_token() -> str:
    """Return the token for the forms of this response; empty without a login.

    It is ``csrf_token`` masked at random, so that the size of a compressed page reveals nothing of it.
    """
    if "form_token" not in g:
        user = current_user()
        g.form_token = (
            mask_token(user.csrf_token, secrets.token_bytes(TOKEN_BYTES)) if user is not None else ""
        )
    return str(g.form_token)


def mask_token(token: str, mask: bytes) -> str:
    """Return mask and masked token as hexadecimal digits."""
    return mask.hex() + _xor(bytes.fromhex(token), mask).hex()


def unmask_token(token: str) -> str:
    """Return the token of a form; empty if it is no masked token."""
    try:
        raw = bytes.fromhex(token)
    except ValueError:
        return ""
    return _xor(raw[:TOKEN_BYTES], raw[TOKEN_BYTES:]).hex() if len(raw) == 2 * TOKEN_BYTES else ""


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def csp_nonce() -> str:
    """Return the nonce for style sheets of this response; calling it adds the nonce to the policy."""
    if "csp_nonce" not in g:
        g.csp_nonce = secrets.token_urlsafe(16)
    return str(g.csp_nonce)


def settings() -> Config:
    """Return the settings of the running application."""
    config = current_app.config["XXL_JOB"]
    assert isinstance(config, Config)
    return config


def executor_caller() -> Caller:
    """Return the client that calls executors."""
    caller = current_app.extensions["xxl_job_caller"]
    assert isinstance(caller, Caller)
    return caller


def remote_address() -> str:
    """Return the address of the client."""
    return request.remote_addr or ""


def context_path(path: str = "/") -> str:
    """Return a path of this console with its prefix; ``/toLogin`` becomes ``/xxl-job-admin/toLogin``."""
    return settings().context_path + path


def request_host() -> str:
    """Return the host of the request with its port; empty if it is malformed.

    Werkzeug takes a name with an underscore, such as that of a service of Compose, for malformed.
    """
    header = request.headers.get("Host", "")
    return request.host or (header if PLAIN_HOST.fullmatch(header) else "")


def console_url() -> str:
    """Return the URL of this console, as configured or as the reader reached it."""
    own_url = f"{request.scheme}://{request_host()}{settings().context_path}"
    return settings().public_url.rstrip("/") or own_url


def cookie_tokens(from_request: Request) -> list[str]:
    """Return the login tokens of a request."""
    return login_tokens(from_request.headers.get("Cookie", ""))


def login_tokens(cookies: str) -> list[str]:
    """Return the values of the login cookie in a ``Cookie`` header; clients return it in several forms."""
    return list(dict.fromkeys(_COOKIE_VALUE.findall(cookies)))[:COOKIES_MAX]


def set_cookie(response: Response, token: str, *, max_age_s: int | None) -> None:
    """Set the login cookie; ``max_age_s`` None: until the browser is closed."""
    response.set_cookie(
        COOKIE, token, max_age=max_age_s, path="/", httponly=True, samesite="Lax", secure=request.is_secure
    )


def delete_cookie(response: Response) -> None:
    """Delete the login cookie."""
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="Lax", secure=request.is_secure)


def is_scripting() -> bool:
    """Whether the request is for one of the original's JSON endpoints."""
    return (request.blueprint or "").startswith("scripting")


def is_from_browser() -> bool:
    """Whether a browser sent the request.

    ``Sec-Fetch-Site`` shows it; to hosts without TLS browsers omit it, but send ``Origin`` with every POST.
    """
    return "Sec-Fetch-Site" in request.headers or "Origin" in request.headers


def translate(message: str) -> str:
    """Return a message in the reader's language."""
    if isinstance(message, Text):
        return str(
            gettext(message.msgid, **{name: _param_text(value) for name, value in message.params.items()})
        )
    return str(gettext(message)) if message else ""


def _param_text(value: object) -> object:
    """Translate a parameter that is itself a message."""
    text = value.message if isinstance(value, InvalidCronExpression) else value
    return translate(text) if isinstance(text, Text) else text


def translate_reason(reason: str) -> str:
    """Translate the reason of a failed call; an executor's own text stays as it is."""
    if isinstance(reason, Text):
        return translate(reason)
    template = find_template(reason, REPLIES)
    return translate(Text(template.msgid, {**template.values})) if template is not None else reason


def translate_error(error: XxlJobError) -> str:
    """Return an error's text in the reader's language."""
    if isinstance(error, ExecutorUnreachable):
        return f"{error.address}: {translate_reason(error.reason)}"
    text = error.args[0] if error.args else ""
    return translate(text if isinstance(text, str) else str(text))
