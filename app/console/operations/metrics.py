"""Metrics for Prometheus: ``/metrics``, off until a token or networks are configured, without a login."""

import hmac

from flask import Blueprint, Flask, Response, current_app, request

from app.clock import now_ms
from app.console.web import refusals
from app.console.web.access import Access
from app.console.web.current import remote_address, settings
from app.domain.executors.networks import is_from
from app.services.operations.exposition import Exposition
from app.settings.config import Config

#: where the application keeps its Exposition
EXTENSION = "xxl_job_exposition"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OFF = "Metrics are off. Set XXL_JOB_METRICS_TOKEN or XXL_JOB_METRICS_NETWORKS."

blueprint = Blueprint("metrics", __name__)
#: checked by the view: Prometheus has an address and a token instead of a login
POLICY = {"show": Access.PROBE}


def init_app(app: Flask) -> None:
    """Give the application its Exposition."""
    app.extensions[EXTENSION] = Exposition(app.config["XXL_JOB"])


@blueprint.get("/metrics")
def show() -> Response:
    """Return the metrics, or 401 or 403 in one line of text."""
    config = settings()
    if not config.metrics_tokens and not config.metrics_networks:
        return _refuse(403, OFF)
    if config.metrics_networks and not is_from(remote_address(), config.metrics_networks):
        refusals.note("refused.right")
        return _refuse(403, f"{remote_address()} is not in XXL_JOB_METRICS_NETWORKS.")
    if config.metrics_tokens and not _has_token(config):
        refusals.note("refused.token" if _sent_token() else "refused.no_token")
        return _refuse(401, "The token of XXL_JOB_METRICS_TOKEN is needed: Authorization: Bearer TOKEN")
    exposition: Exposition = current_app.extensions[EXTENSION]
    return Response(exposition.render(now_ms=now_ms()), content_type=CONTENT_TYPE)


def _sent_token() -> str:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _has_token(config: Config) -> bool:
    """Whether one of the tokens was given, compared in constant time."""
    token_bytes = _sent_token().encode()
    return True in [hmac.compare_digest(token_bytes, token.encode()) for token in config.metrics_tokens]


def _refuse(status: int, text: str) -> Response:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return Response(text + "\n", status, headers, content_type="text/plain; charset=utf-8")
