"""Live nodes: console and workers processes say that they are there."""

from hashlib import sha256

from sqlalchemy.orm import Session

from app.clock import Millis
from app.config import Config
from app.domain.enums import NodeKind
from app.errors import NotConfigured
from app.home import access_tokens
from app.models.node import NODE_BEAT_MS
from app.store import nodes

#: period of the heartbeat
BEAT_MS: Millis = NODE_BEAT_MS
#: version this program calls itself
VERSION = "0.1.0"


def fingerprint(tokens: tuple[str, ...]) -> str:
    """Return what tells two tokens apart without telling them; of the one that is sent."""
    return sha256(b"xxl-job-token:" + tokens[0].encode()).hexdigest()[:16]


def start_node(session: Session, config: Config, name: str, kind: NodeKind, *, now_ms: Millis) -> int:
    """Write down a start and return its epoch. Raises NotConfigured where a live node of this database has another access token."""
    accepted = {fingerprint((token,)) for token in access_tokens(config)}
    for node in nodes.find_live(session, now_ms=now_ms):
        if node.token_fingerprint and node.token_fingerprint not in accepted and (node.name, node.kind) != (name, kind):
            raise NotConfigured(
                f"XXL_JOB_ACCESS_TOKEN: node {node.name} ({node.kind}) of this database has another access token; give both the same"
            )
    own = fingerprint(access_tokens(config))
    return nodes.start_node(session, name, kind, version=VERSION, token_fingerprint=own, now_ms=now_ms)


def beat(session: Session, name: str, kind: NodeKind, *, now_ms: Millis) -> None:
    """Say that a node lives."""
    nodes.beat(session, name, kind, now_ms=now_ms)


def end_node(session: Session, name: str, kind: NodeKind) -> None:
    """Say that a node has ended in order."""
    nodes.end_node(session, name, kind)
