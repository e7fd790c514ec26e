"""Nodes: heartbeats of console and workers, and the check that they share an access token."""

import logging
import socket
import threading
from hashlib import sha256

from sqlalchemy.exc import DBAPIError

from app.clock import Millis, monotonic_ms, now_ms
from app.config import Config
from app.database_faults import fault_log
from app.db import read_scope, transact
from app.domain.enums import NodeKind
from app.errors import NotConfigured
from app.home import access_tokens
from app.models.node import NODE_BEAT_MS, Node
from app.store import nodes
from executor_client.version import VERSION

logger = logging.getLogger(__name__)

#: characters of a token's SHA-256 that nodes compare
FINGERPRINT_LENGTH = 16


def node_name(config: Config) -> str:
    """Return the name of this node: configured, or from host and home folder, stable over restarts."""
    if config.node_name:
        return config.node_name[:60]
    return f"{socket.gethostname()[:40]}-{sha256(str(config.home).encode()).hexdigest()[:6]}"


def start(config: Config, kind: NodeKind, *, now_ms: Millis) -> None:
    """Register a node. Raises NotConfigured if a live node of this database has other access tokens.

    While a token is being replaced, two are valid; nodes agree if they share one of them.
    """
    own = [
        sha256(b"xxl-job-token:" + token.encode()).hexdigest()[:FINGERPRINT_LENGTH]
        for token in access_tokens(config)
    ]
    name = node_name(config)
    with read_scope() as session:
        for node in nodes.find_live(session, now_ms=now_ms):
            if (node.name, node.kind) != (name, kind) and not _agree(node, own):
                where = "XXL_JOB_ACCESS_TOKEN" if config.access_tokens else str(config.home / "access_token")
                raise NotConfigured(
                    f"{where}: the node {node.name} ({node.kind}) on the same database"
                    " uses another access token"
                )
    transact(
        lambda session: nodes.start_node(
            session, name, kind, version=VERSION, token_fingerprint=",".join(own), now_ms=now_ms
        )
    )


def _agree(node: Node, own: list[str]) -> bool:
    theirs = [text for text in node.token_fingerprint.split(",") if text]
    return not theirs or bool(set(theirs) & set(own))


def beat(config: Config, kind: NodeKind, *, now_ms: Millis, skew_ms: Millis = 0) -> Millis:
    """Write a heartbeat with the clock's lead over the database's; return the wait until the next one.

    The period runs from start to start, so that a slow database does not make the node look dead.
    """
    started = monotonic_ms()
    transact(lambda session: nodes.beat(session, node_name(config), kind, now_ms=now_ms, skew_ms=skew_ms))
    return max(NODE_BEAT_MS - (monotonic_ms() - started), 0)


def end(config: Config, kind: NodeKind) -> None:
    """Deregister a node that stops."""
    transact(lambda session: nodes.end_node(session, node_name(config), kind))


class Heartbeat:
    """Heartbeat thread of the console; the workers' monitor has a loop for it."""

    def __init__(self, config: Config, kind: NodeKind) -> None:
        self._config = config
        self._kind = kind
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="node-beat", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and deregister the node, if the database is available."""
        self._stop.set()
        self._thread.join(timeout=2)
        try:
            end(self._config, self._kind)
        except DBAPIError:
            logger.info("node not deregistered: the database is unavailable")

    def _run(self) -> None:
        wait_ms = NODE_BEAT_MS
        while not self._stop.wait(wait_ms / 1000):
            try:
                wait_ms = beat(self._config, self._kind, now_ms=now_ms())
            except DBAPIError as exc:
                wait_ms = NODE_BEAT_MS
                fault_log.write(logger, "heartbeat not written", exc)
