"""Request gate of the console: who may call which endpoint, checked before any view runs.

Every module with routes has a ``POLICY``: view name -> Access. ``merge_policies`` combines the parts; an
endpoint without an entry is refused, and a test checks the whole URL map. A right's name means that the user
has it on at least one group; the services check the object itself when they load it.

A state-changing request of a page carries ``csrf_token`` (a form field, or the header ``X-CSRF-Token``), see
``form_token()``. The original's JSON endpoints and the login carry none, because scripts have none: for all
of them ``Sec-Fetch-Site`` or ``Origin`` decides, one of which a browser always sends.
"""

import hmac
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from urllib.parse import urlsplit

from flask import Flask, Request, Response, abort, current_app, request, url_for
from flask.sessions import NullSession, SessionInterface, SessionMixin
from flask_login import LoginManager
from sqlalchemy.exc import DBAPIError, OperationalError
from werkzeug.exceptions import MethodNotAllowed, NotFound

from app.clock import now_ms
from app.console.web import after_login, refusals
from app.console.web.access import Access
from app.console.web.current import (
    COOKIE,
    OUTSIDE,
    Anonymous,
    LoggedIn,
    context_path,
    cookie_tokens,
    csp_nonce,
    current_user,
    delete_cookie,
    form_token,
    is_scripting,
    remote_address,
    request_host,
    settings,
    unmask_token,
)
from app.database.faults import fault_log
from app.database.flask_db import read_scope, session_scope
from app.domain.access.permissions import Right
from app.domain.executors.networks import DEFAULT_PORTS
from app.domain.text.texts import N_
from app.errors import PermissionDenied
from app.runtime.logging import USER
from app.services.accounts import login
from app.services.accounts.weak_passwords import REFUSED_TO_SCRIPTS
from app.settings.config import Config

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
METHODS = SAFE_METHODS | {"POST"}
FORM_TYPES = frozenset({"application/x-www-form-urlencoded", "multipart/form-data"})
#: where the application keeps the merged policy
EXTENSION = "console-policy"
#: key of the WSGI environment of a request whose user could not be read
UNREADABLE = "xxl_job.user_unreadable"
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


#: endpoints that take a state-changing request without the token of a page
WITHOUT_TOKEN = frozenset({"auth.log_in"})


def merge_policies(modules: Iterable[ModuleType]) -> dict[str, Access]:
    """Return endpoint -> access of all modules, each with a ``blueprint`` and its part of the ``POLICY``."""
    policy = {"static": Access.PUBLIC}
    for module in modules:
        policy |= {f"{module.blueprint.name}.{view}": access for view, access in module.POLICY.items()}
    return policy


def init_app(app: Flask, policy: Mapping[str, Access]) -> None:
    """Put the gate in front of every endpoint and Flask-Login behind ``current_user``."""
    app.extensions[EXTENSION] = policy
    app.session_interface = LoginSessions()
    manager = LoginManager()
    manager.session_protection = None  # it would mark sessions, which are read-only
    manager.anonymous_user = Anonymous
    manager.user_loader(_load_user)
    manager.init_app(app)
    app.before_request(_gate)
    app.jinja_env.globals.update(csrf_token=form_token, csp_nonce=csp_nonce)


class LoginSessions(SessionInterface):
    """Sessions of Flask that carry the tokens of a login, which is a row of the database.

    They are read-only: clients of the original rely on exactly one cookie, and views set it themselves.
    """

    def open_session(self, app: Flask, request: Request) -> NullSession:
        """Return what Flask-Login reads of a session: the tokens in place of a user's id."""
        tokens = cookie_tokens(request)
        return NullSession({"_user_id": tokens} if tokens else {})

    def save_session(self, app: Flask, session: SessionMixin, response: Response) -> None:
        """Set no cookie."""


def _load_user(tokens: Sequence[str]) -> LoggedIn | None:
    """Return the user of a login token; None if none is valid."""
    if UNREADABLE in request.environ:  # The error page looks for its reader, too.
        return None
    at_ms = now_ms()
    try:
        with read_scope() as session:
            visitor = login.find_session(session, tokens, address=remote_address(), now_ms=at_ms)
    except DBAPIError:
        request.environ[UNREADABLE] = True
        raise
    if visitor is None:
        return None
    if login.needs_touch(visitor, at_ms) and not _is_refresh(request):
        try:
            with session_scope() as session:
                login.touch(session, visitor, now_ms=at_ms)
        except OperationalError as exc:  # A page can be read all the same.
            fault_log.write(current_app.logger, "session last-seen time not updated", exc)
    request.environ[USER] = visitor.actor.username
    return LoggedIn(visitor)


def _is_refresh(incoming: Request) -> bool:
    """Whether a page refreshes itself, by its script or address: this does not count as use of the login."""
    return incoming.headers.get("X-Refresh") == "auto" or incoming.args.get("refresh") == "auto"


def _gate() -> Response | None:
    """Refuse a request, redirect it to the login page, or let it pass (None).

    OPTIONS never reaches a view: Flask answers with ``Allow``, as the original does only for logged-in
    users, except at ``/health``, ``/ready`` and ``/metrics``.
    """
    access = _access()
    if request.method not in METHODS:
        raise MethodNotAllowed(valid_methods=sorted(METHODS))
    if access is Access.PROBE:
        return None
    _check_host()
    if OUTSIDE in request.environ:
        return _outside()
    if request.method not in SAFE_METHODS:
        _check_origin()
    if access is Access.PUBLIC and request.method != "OPTIONS":
        _check_body_type()
        return None
    user = current_user()
    if user is None:
        return to_login()
    if request.routing_exception is not None:
        raise request.routing_exception
    if access is None:
        current_app.logger.error("endpoint without a policy entry endpoint=%s", request.endpoint)
        abort(403)
    if request.method == "OPTIONS":
        return None
    _check_body_type()
    _check_token(user)
    return _check_access(user, access)


def _access() -> Access | None:
    policy: Mapping[str, Access] = current_app.extensions[EXTENSION]
    return policy.get(request.endpoint or "")


def is_for_admins() -> bool:
    """Whether the endpoint of the request is for administrators only."""
    return _access() is Access.ADMIN


def to_login() -> Response:
    """Redirect to the login page: 302 without a body; a browser keeps what it had requested.

    Scripts rely on it (docs/reference/clients.md, section B1).
    """
    if "HX-Request" in request.headers:  # a part of a page that stays open: js/parts.js
        return Response(status=401)
    response = redirect_without_body(context_path("/toLogin"))
    if not _is_refresh(request):
        after_login.keep_request(response)
    if COOKIE in request.headers.get("Cookie", ""):
        delete_cookie(response)
    return response


def may_enter() -> bool:
    """Whether the request has a login or its endpoint needs none."""
    return _access() is Access.PROBE or current_user() is not None


def redirect_without_body(target: str) -> Response:
    """Return a 302 without a body."""
    response = Response(status=302, headers={"Location": target})
    response.headers.remove("Content-Type")
    return response


def _outside() -> Response:
    """Answer a path outside the context path."""
    if request.environ[OUTSIDE] == "slash" or request.path == "/":
        return redirect_without_body(context_path())
    raise NotFound


def names_of(config: Config) -> frozenset[str] | None:
    """Return the host names that this console answers to; None: to any."""
    names = {name.lower() for name in config.allowed_hosts}
    if config.public_url:
        names.add(urlsplit(config.public_url).hostname or "")
    if config.on_loopback:
        names |= LOOPBACK_NAMES
    elif not config.allowed_hosts:
        return None
    return frozenset(names)


def _check_host() -> None:
    names = names_of(settings())
    if names is not None and host_name(request_host()) not in names:
        abort(
            Response(
                "This host name is not allowed; see XXL_JOB_ALLOWED_HOSTS.\n",
                400,
                content_type="text/plain",
            )
        )


def host_name(host: str) -> str:
    """Return the lower-case host name of a ``Host`` header without port and brackets; empty if malformed."""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _check_origin() -> None:
    """Refuse a state-changing request that another site caused."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        is_allowed = site in {"same-origin", "none"}
    else:
        origin = request.headers.get("Origin")
        is_allowed = origin is None or _is_own_origin(origin)
    if not is_allowed:
        refusals.note_origin()
        abort(403, description="This request comes from another site.")


def _is_own_origin(origin: str) -> bool:
    own_origins = {_origin_of(f"{request.scheme}://{request_host()}"), _origin_of(settings().public_url)}
    return _origin_of(origin) in own_origins - {None}


def _origin_of(url: str) -> tuple[str, str, int] | None:
    """Return scheme, host and port of a web address; None if it is malformed or of another scheme."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname or "@" in parts.netloc:
        return None
    return parts.scheme, parts.hostname, DEFAULT_PORTS[parts.scheme] if port is None else port


def _check_body_type() -> None:
    """Refuse bodies other than forms; an empty body needs no type."""
    if request.method in SAFE_METHODS or not (
        request.content_length or request.headers.get("Transfer-Encoding")
    ):
        return
    if request.mimetype not in FORM_TYPES:
        abort(415)


def _check_token(user: LoggedIn) -> None:
    if request.method in SAFE_METHODS or is_scripting() or request.endpoint in WITHOUT_TOKEN:
        return
    token = request.form.get("csrf_token") or request.headers.get("X-CSRF-Token", "")
    if not hmac.compare_digest(unmask_token(token), user.csrf_token):
        refusals.note("refused.form")
        abort(403, description=N_("This form has expired. Reload the page and try again."))


def _check_access(user: LoggedIn, access: Access) -> Response | None:
    if access is Access.FIRST:
        return None
    if user.must_change_password:
        return _to_password_change(user)
    if access is Access.LOGIN or (access is Access.ADMIN and user.is_admin):
        return None
    if access is not Access.ADMIN and user.actor.has_anywhere(Right(access.value)):
        return None
    raise PermissionDenied(N_("permission denied"))


def _to_password_change(user: LoggedIn) -> Response:
    if is_scripting():
        raise PermissionDenied(
            N_("Change your initial password in the console first")
            if user.visitor.must_change
            else REFUSED_TO_SCRIPTS
        )
    return redirect_without_body(url_for("account.show"))
