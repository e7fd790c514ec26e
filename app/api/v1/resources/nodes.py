"""API: nodes of the installation."""

from app.api.v1.endpoint import ADMIN, Call, Resource
from app.api.v1.schemas.base import Listed
from app.api.v1.schemas.report import NodeOut
from app.clock import DAY_MS
from app.domain.enums import NodeKind
from app.store.nodes import nodes as node_store

resource = Resource("nodes", "Consoles and workers of the installation.")


@resource.get("/nodes", answer=Listed[NodeOut], right=ADMIN)
def list_nodes(call: Call) -> Listed[NodeOut]:
    """List the nodes seen within a day; those that were stopped in order are left out."""
    rows = node_store.find_nodes(call.session, seen_after_ms=call.now_ms - DAY_MS)
    return Listed[NodeOut](
        next_cursor=None,
        items=[
            NodeOut(
                name=node.name,
                kind="workers" if node.kind == NodeKind.WORKERS else "console",
                alive=node.is_alive(call.now_ms),
                version=node.version,
                started_at=node.started_ms,
                heartbeat_at=node.heartbeat_ms,
                clock_lead_ms=node.skew_ms,
                scanned_at=node.scanned_ms or None,
            )
            for node in rows
        ],
    )
