"""Scheduler part of the container's health check: whether this node completes scans."""

from sqlalchemy.exc import DBAPIError

from app.clock import Millis, now_ms
from app.database.engine import bind_engine, read_scope
from app.database.faults import not_configured
from app.database.moves import follow
from app.database.opening import check_database
from app.domain.enums import NodeKind
from app.errors import NotConfigured
from app.models.node import SCAN_MAX_MS
from app.services.installation.nodes import node_name
from app.settings.config import Config
from app.store.nodes import nodes


def find_problem(config: Config) -> str:
    """Return what keeps the scheduler from working, "" if it works."""
    try:
        config = follow(config)
        check_database(config)  # This creates no file.
        bind_engine(config)
        is_scanning = _scans(config, now_ms=now_ms())
    except NotConfigured as exc:
        return str(exc)
    except DBAPIError as exc:
        return str(not_configured(exc))
    if is_scanning:
        return ""
    return f"the scheduler of this node has not completed a scan within {SCAN_MAX_MS // 1000} s"


def _scans(config: Config, *, now_ms: Millis) -> bool:
    with read_scope() as session:
        live = nodes.find_live(session, now_ms=now_ms)
    workers = [node for node in live if (node.name, node.kind) == (node_name(config), NodeKind.WORKERS)]
    return any(node.scanned_ms >= now_ms - SCAN_MAX_MS for node in workers)
