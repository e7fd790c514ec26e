"""Health and readiness: ``/health`` is whether this process answers, ``/ready`` whether jobs are fired."""

from datetime import UTC, datetime

from flask import Blueprint, Flask, Response, current_app

from app.clock import Millis, now_ms
from app.console.web.access import Access
from app.console.web.envelope import as_json
from app.services.operations.readiness import Problem, Readiness

#: where the application keeps its Readiness
EXTENSION = "xxl_job_readiness"

blueprint = Blueprint("health", __name__)
POLICY = {"up": Access.PROBE, "actuator": Access.PROBE, "ready": Access.PROBE}


def init_app(app: Flask) -> None:
    """Give the application its Readiness."""
    app.extensions[EXTENSION] = Readiness()


@blueprint.get("/health")
def up() -> Response:
    """Return that the process answers; uses no database."""
    return as_json({"status": "UP"})


@blueprint.get("/actuator/health")
def actuator() -> Response:
    """Return whether the console can reach its database, as the original does."""
    if _readiness().is_database_up():
        return as_json({"status": "UP"})
    return as_json({"status": "DOWN"}, status=503)


@blueprint.get("/ready")
def ready() -> Response:
    """Return whether jobs are being fired; 503 names what is not ready and since when."""
    problem = _readiness().find_problem(now_ms=now_ms())
    if problem is None:
        return as_json({"status": "READY"})
    return as_json({"status": "NOT_READY", **_problem_members(problem)}, status=503)


def _readiness() -> Readiness:
    readiness: Readiness = current_app.extensions[EXTENSION]
    return readiness


def _problem_members(problem: Problem) -> dict[str, str | None]:
    since = None if problem.since_ms is None else _utc(problem.since_ms)
    return {"part": problem.part, "problem": problem.text, "since": since}


def _utc(instant_ms: Millis) -> str:
    return datetime.fromtimestamp(instant_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
