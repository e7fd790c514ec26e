"""Nodes: heartbeats of console and workers, and the checks that they share key, token and time zone."""

import logging
import socket
import threading
from hashlib import sha256

from sqlalchemy.exc import DBAPIError

from app.clock import Millis, monotonic_ms, now_ms
from app.database.engine import read_scope, transact
from app.database.faults import fault_log, reason_of
from app.domain.enums import NodeKind
from app.domain.schedules.time_zones import differ
from app.errors import NotConfigured
from app.models.node import NODE_BEAT_MS, Node
from app.pipeline.clocks.guard import ClockGuard, ClockWatch
from app.services.installation import sealed_tokens
from app.settings.config import Config
from app.settings.home import access_tokens
from app.settings.sealing import sealer
from app.store.nodes import nodes
from executor_client.wire.version import VERSION

logger = logging.getLogger(__name__)


def node_name(config: Config) -> str:
    """Return the name of this node: configured, or from host and home folder, stable over restarts."""
    if config.node_name:
        return config.node_name[:60]
    return f"{socket.gethostname()[:40]}-{sha256(str(config.home).encode()).hexdigest()[:6]}"


def start(config: Config, kind: NodeKind, *, now_ms: Millis) -> None:
    """Register a node.

    Raises NotConfigured if a live node of this database has another application key, other access tokens or
    another time zone, or if a stored token cannot be read with this key. While a token is being replaced,
    two are valid; nodes agree if they share one of them.
    """
    key = sealer().key_fingerprint
    tokens = [sealer().fingerprint(token) for token in access_tokens(config)]
    _require_agreement(config, kind, key, tokens, now_ms=now_ms)
    sealed_tokens.check(config)
    _warn_of_changed_zone(config, now_ms=now_ms)
    transact(
        lambda session: nodes.start_node(
            session,
            node_name(config),
            kind,
            version=VERSION,
            token_fingerprint=",".join(tokens),
            key_fingerprint=key,
            time_zone=config.time_zone,
            now_ms=now_ms,
        )
    )
    try:  # compare with a node that has started at the same time
        _require_agreement(config, kind, key, tokens, now_ms=now_ms)
    except NotConfigured:
        end(config, kind)
        raise


def _require_agreement(
    config: Config, kind: NodeKind, key: str, tokens: list[str], *, now_ms: Millis
) -> None:
    """Compare with the other live nodes."""
    own_name = (node_name(config), kind)
    with read_scope() as session:
        for node in nodes.find_live(session, now_ms=now_ms):
            if (node.name, node.kind) != own_name:
                _require_same_key(config, node, key)
                _require_same_token(config, node, tokens)
                _require_same_zone(config, node, now_ms=now_ms)


def _warn_of_changed_zone(config: Config, *, now_ms: Millis) -> None:
    """Log that the last node used another time zone, as before that of the host was changed."""
    with read_scope() as session:
        last = nodes.find_last_zone(session.connection())
    if last and differ(last, config.time_zone, now_ms=now_ms):
        logger.warning(
            "time zone changed from=%s to=%s hint=earlier times are hours off now, unless you set"
            " XXL_JOB_TIMEZONE=%s",
            last,
            config.time_zone,
            last,
        )


def require_same_zone(config: Config, *, now_ms: Millis) -> None:
    """Raise NotConfigured if the nodes use another time zone than this program, which is no node.

    While none is alive, the one that was seen last counts.
    """
    with read_scope() as session:
        live = nodes.find_live(session, now_ms=now_ms)
        for node in live:
            _require_same_zone(config, node, now_ms=now_ms)
        last = "" if live else nodes.find_last_zone(session.connection())
    if last and differ(last, config.time_zone, now_ms=now_ms):
        raise NotConfigured(
            f"XXL_JOB_TIMEZONE: the nodes on this database last used the time zone {last}, this program uses"
            f" {config.time_zone}; set it to the same value, or start the services first if theirs is changed"
        )


def _require_same_key(config: Config, node: Node, fingerprint: str) -> None:
    if node.key_fingerprint not in ("", fingerprint):
        raise NotConfigured(
            f"{sealed_tokens.place_of_key(config)}: the node {node.name} ({node.kind}) on the same database"
            " uses another application key; copy its file secret_key to the home folder of this node,"
            " or set XXL_JOB_SECRET_KEY to the same value on all nodes"
        )


def _require_same_token(config: Config, node: Node, fingerprints: list[str]) -> None:
    """Compare with a node of the same key; fingerprints of an older version are not comparable."""
    theirs = [text for text in node.token_fingerprint.split(",") if text]
    if node.key_fingerprint and theirs and not set(theirs) & set(fingerprints):
        where = "XXL_JOB_ACCESS_TOKEN" if config.access_tokens else str(config.home / "access_token")
        raise NotConfigured(
            f"{where}: the node {node.name} ({node.kind}) on the same database uses another access token"
        )


def _require_same_zone(config: Config, node: Node, *, now_ms: Millis) -> None:
    """Compare with a node: in another zone it would read heartbeats and plan schedules hours off."""
    if node.time_zone and differ(node.time_zone, config.time_zone, now_ms=now_ms):
        raise NotConfigured(
            f"XXL_JOB_TIMEZONE: the node {node.name} ({node.kind}) on the same database uses the time zone"
            f" {node.time_zone}, this one {config.time_zone}; set it to the same value everywhere"
        )


def beat(config: Config, kind: NodeKind, *, now_ms: Millis, skew_ms: Millis = 0) -> Millis:
    """Write a heartbeat with the clock's lead over the database's; return the wait until the next one.

    The period runs from start to start, so that a slow database does not make the node look dead.
    """
    start_ms = monotonic_ms()
    if not nodes.beat(node_name(config), kind, now_ms=now_ms, skew_ms=skew_ms):
        logger.warning("node registered again, its row is gone")  # as after a suspension of a month
        start(config, kind, now_ms=now_ms)
    return max(NODE_BEAT_MS - (monotonic_ms() - start_ms), 0)


def mark_scanned(config: Config, *, now_ms: Millis) -> None:
    """Record that this node's scheduler has completed a scan."""
    nodes.mark_scanned(node_name(config), now_ms=now_ms)


def end(config: Config, kind: NodeKind) -> None:
    """Deregister a node that stops, if the database is available; else it counts as dead a little later."""
    try:
        transact(lambda session: nodes.end_node(session, node_name(config), kind))
    except DBAPIError as exc:
        logger.warning("node not deregistered database_error=%s", reason_of(exc))


class Heartbeat:
    """Heartbeat thread of the console; the workers' monitor has a loop for it."""

    def __init__(self, config: Config, kind: NodeKind) -> None:
        self._config = config
        self._kind = kind
        self._stop = threading.Event()
        self._guard = ClockGuard(now_ms)
        self._watch = ClockWatch(self._guard)
        self._thread = threading.Thread(target=self._run, name="node-beat", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and deregister the node, if the database is available."""
        self._stop.set()
        self._thread.join(timeout=2)
        end(self._config, self._kind)

    def is_clock_right(self) -> bool:
        """Whether the clock of this host agreed with the database's at the last comparison."""
        return self._guard.is_trusted

    def _run(self) -> None:
        wait_ms = NODE_BEAT_MS
        while not self._stop.wait(wait_ms / 1000):
            try:
                skew_ms = self._compare_clocks()
                wait_ms = beat(self._config, self._kind, now_ms=now_ms(), skew_ms=skew_ms)
            except DBAPIError as exc:
                wait_ms = NODE_BEAT_MS
                fault_log.write(logger, "heartbeat not written", exc)
            except NotConfigured as exc:  # of another node, started since
                wait_ms = NODE_BEAT_MS
                logger.error("node not registered again reason=%s", exc)

    def _compare_clocks(self) -> Millis:
        """Return how far this clock is ahead of the database's, 0 where that has none.

        A console plans by its clock what users start, stop and run, so a wrong one is logged.
        """
        news = self._watch.news()
        if not self._guard.compares:
            return 0
        if news is not None and not news.right:
            logger.error(
                "clock off, changes of jobs get wrong next times skew_ms=%s; set the clock of this host",
                news.skew_ms,
            )
        elif news is not None:
            logger.warning("clock correct again skew_ms=%s", news.skew_ms)
        return self._guard.skew_ms
