"""Application factory: the console with the executor API in front of it."""

import logging
import re
from collections.abc import Callable, Iterable
from typing import Any

from flask import Flask, request
from flask.typing import ResponseReturnValue
from sqlalchemy.exc import DBAPIError
from werkzeug.middleware.proxy_fix import ProxyFix

from app import console
from app.api import executor_api
from app.api.v1.mount import ApiMount
from app.blobs.stores import archive_of
from app.console.scripting.plain_triggers import PlainTriggers
from app.console.web import languages
from app.console.web.access import Access
from app.console.web.current import OUTSIDE
from app.console.web.request_log import RequestLog, WSGIApp
from app.database.engine import (
    ATTEMPTS,
    bind_engine,
    engine_options,
    is_transient,
    pause_before_repeating,
)
from app.database.flask_db import db
from app.executors.gateway import Gateway
from app.executors.permits import Permits
from app.services.accounts.sign_on import SignOn
from app.services.executors.callers import Caller
from app.settings.config import Config
from app.settings.home import access_tokens, prepare_home, secret_key
from executor_client.httpd.batching import BatchedEndpoints

logger = logging.getLogger(__name__)

#: longest form body, in bytes; GLUE sources are the largest fields
BODY_MAX = 8 * 1024 * 1024
FORM_PARTS_MAX = 1_000
#: address of a client with its port: ``192.0.2.1:40123``, ``[2001:db8::1]:40123``
WITH_PORT = re.compile(r"(?P<v4>[0-9.]+):[0-9]+|\[(?P<v6>[0-9A-Fa-f:.]+)\](?::[0-9]+)?")


class Console(Flask):
    """Flask application that retries a view after a transient database error, such as a deadlock.

    The transaction has been rolled back as a whole, so the view can run again.
    """

    def dispatch_request(self) -> ResponseReturnValue:
        """Run the view of this request; retry it after a transient database error."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return super().dispatch_request()
            except DBAPIError as exc:
                if attempt == ATTEMPTS or not is_transient(exc):
                    raise
                logger.warning("view retried path=%s attempt=%s reason=%s", request.path, attempt, exc.orig)
                pause_before_repeating(attempt)
        raise AssertionError("not reached")


def create_app(config: Config) -> Flask:
    """Create the application for a configuration; opens no connection."""
    prepare_home(config.home)
    app = make_pages(config)
    with app.app_context():
        bind_engine(config, db.engine)
    add_layers(app, config)
    return app


def make_pages(config: Config) -> Flask:
    """Create an application with all pages, without what they share with scripts, executors and the API."""
    app = Console("app", static_folder="static", template_folder="templates")
    app.config.update(flask_settings(config))
    app.url_map.strict_slashes = False
    db.init_app(app)
    languages.init_app(app, config)
    console.register(app)
    return app


def add_layers(app: Flask, config: Config) -> None:
    """Add the calls of executors, the sign-on, and the middleware around the pages, to an application."""
    permits, archive = Permits(config.threads), archive_of(config)
    executors = Caller(Gateway(config.executor_networks), access_tokens(config), permits, archive)
    app.extensions["xxl_job_caller"] = executors
    app.extensions["xxl_job_sign_on"] = _sign_on(config)
    app.wsgi_app = PlainTriggers(app, config)  # type: ignore[method-assign]
    app.wsgi_app = ContextPath(app.wsgi_app, config.context_path)  # type: ignore[method-assign]
    app.extensions["xxl_job_api"] = executor_api.register(app, config)
    mount = ApiMount(app.wsgi_app, config, executors)
    app.wsgi_app = mount  # type: ignore[method-assign]
    app.extensions["xxl_job_api_document"] = mount.document
    if config.proxy_count:
        count = config.proxy_count
        app.wsgi_app = WithoutPort(app.wsgi_app)  # type: ignore[method-assign]
        behind_proxy = ProxyFix(app.wsgi_app, x_for=count, x_proto=count, x_host=0)
        app.wsgi_app = behind_proxy  # type: ignore[method-assign]
    app.wsgi_app = RequestLog(app.wsgi_app, config)  # type: ignore[method-assign]
    app.extensions["xxl_job_batched"] = _batch_endpoints(app, config)
    app.extensions["xxl_job_reserved"] = _reserved_paths(app, config)


def _batch_endpoints(app: Flask, config: Config) -> list[BatchedEndpoints]:
    """Return the endpoints whose requests our server may answer together, past the middleware.

    Empty if the middleware is needed: to find the client behind a proxy, or to write the access log.
    """
    if config.proxy_count or config.access_log:
        return []
    return [app.extensions["xxl_job_api"].batches.endpoints()]


def _reserved_paths(app: Flask, config: Config) -> list[frozenset[str]]:
    """Return the paths for which our server has a thread each, with and without the context path.

    They are those of monitors, which ask while all other requests wait for a database that hangs.
    """
    rules = app.url_map.iter_rules()
    probes = [rule.rule for rule in rules if console.POLICY.get(rule.endpoint) is Access.PROBE]
    return [frozenset((path, config.context_path + path)) for path in probes]


def _sign_on(config: Config) -> SignOn | None:
    if not config.oidc.issuer:
        return None
    from app.sign_on.provider import Provider  # Authlib takes 0.3 s of each start.

    provider = Provider(config.oidc, redirect_uri=f"{config.public_url.rstrip('/')}/sign-on/callback")
    return SignOn(config.oidc, provider)


def flask_settings(config: Config) -> dict[str, Any]:
    """Return the settings of Flask and its extensions."""
    return {
        "XXL_JOB": config,
        "SECRET_KEY": secret_key(config),
        "SQLALCHEMY_DATABASE_URI": config.database_url,
        "SQLALCHEMY_ENGINE_OPTIONS": engine_options(config),
        "MAX_CONTENT_LENGTH": BODY_MAX,
        "MAX_FORM_MEMORY_SIZE": BODY_MAX,
        "MAX_FORM_PARTS": FORM_PARTS_MAX,
        # The token of every form is checked by console.web.guards.
        "WTF_CSRF_ENABLED": False,
    }


class WithoutPort:
    """WSGI middleware: removes the port that some proxies add to the client's address, ``192.0.2.1:40123``.

    It differs from connection to connection, while addresses are counted.
    """

    def __init__(self, inner: WSGIApp) -> None:
        self._inner = inner

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Handle one request."""
        match = WITH_PORT.fullmatch(environ.get("REMOTE_ADDR", ""))
        if match is not None:
            environ["REMOTE_ADDR"] = match["v4"] or match["v6"]
        return self._inner(environ, start_response)


class ContextPath:
    """WSGI middleware: strips the context path, so that routes and links do not contain it."""

    def __init__(self, inner: WSGIApp, prefix: str) -> None:
        self._inner = inner
        self._prefix = prefix

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Handle one request."""
        path = re.sub(r"/{2,}", "/", environ.get("PATH_INFO", ""))
        if not self._prefix or path.startswith(self._prefix + "/"):
            environ["SCRIPT_NAME"] = environ.get("SCRIPT_NAME", "") + self._prefix
            path = path[len(self._prefix) :]
        else:
            environ[OUTSIDE] = "slash" if path == self._prefix else "other"
        environ["PATH_INFO"] = path if path == "/" else path.rstrip("/")
        return self._inner(environ, start_response)
