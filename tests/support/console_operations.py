"""Helpers of the tests of console operations, for all that need them."""

from app.database.engine import session_scope
from app.domain.enums import NodeKind
from app.store.nodes import nodes
from tests.support.factories import T0


def start_workers(*, scanned_ms: int) -> None:
    with session_scope() as session:
        nodes.start_node(session, "one", NodeKind.WORKERS, version="1", token_fingerprint="", now_ms=T0)
    nodes.mark_scanned("one", now_ms=scanned_ms)
