"""Statements on `xxl_job_node`: nodes and their heartbeats."""

from sqlalchemy import Connection, bindparam, case, delete, func, or_, select, text, update
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database import single_statement
from app.database.dialects.choice import dialect_of
from app.database.engine import affected
from app.database.rows import bulk
from app.domain.enums import NodeKind
from app.models.fire import Fire
from app.models.node import SCAN_MAX_MS, Node


def start_node(
    session: Session,
    name: str,
    kind: NodeKind,
    *,
    version: str,
    token_fingerprint: str,
    now_ms: Millis,
    key_fingerprint: str = "",
    time_zone: str = "",
) -> int:
    """Record the start of a node; return its epoch, one more than at its last start."""
    node = session.scalar(select(Node).where(Node.name == name, Node.kind == kind).with_for_update())
    if node is None:
        node = Node(name=name, kind=kind.value, epoch=0)
        session.add(node)
    node.epoch += 1
    node.started_ms = node.heartbeat_ms = now_ms
    node.version = version
    node.token_fingerprint = token_fingerprint
    node.key_fingerprint = key_fingerprint
    node.time_zone = time_zone
    return node.epoch


_OWN = update(bulk.table_of(Node)).where(Node.name == bindparam("of_name"), Node.kind == bindparam("of_kind"))
_BEAT = _OWN.values(heartbeat_ms=bindparam("at_ms"), skew_ms=bindparam("by_ms"))
_SCANNED = _OWN.values(scanned_ms=bindparam("at_ms"))


def beat(name: str, kind: NodeKind, *, now_ms: Millis, skew_ms: Millis = 0) -> bool:
    """Record a heartbeat and the node's clock skew; False if its row is gone. A transaction of its own."""
    values = {"of_name": name, "of_kind": kind.value, "at_ms": now_ms, "by_ms": skew_ms}
    return single_statement.write(_BEAT, values) == 1


def mark_scanned(name: str, *, now_ms: Millis) -> None:
    """Record that the scheduler of a node has completed a scan. A transaction of its own."""
    single_statement.write(_SCANNED, {"of_name": name, "of_kind": NodeKind.WORKERS.value, "at_ms": now_ms})


def last_scan_ms(session: Session, *, now_ms: Millis) -> Millis:
    """Return when a scheduler last completed a scan; 0: none has.

    A time further ahead than SCAN_MAX_MS was written by a wrong clock and does not count.
    """
    newest = select(func.max(Node.scanned_ms)).where(
        Node.kind == NodeKind.WORKERS, Node.scanned_ms <= now_ms + SCAN_MAX_MS
    )
    return session.scalar(newest) or 0


def is_scheduling(session: Session, *, now_ms: Millis) -> bool:
    """Whether a scheduler of any node has completed a scan within SCAN_MAX_MS."""
    return now_ms - last_scan_ms(session, now_ms=now_ms) <= SCAN_MAX_MS


def end_node(session: Session, name: str, kind: NodeKind) -> None:
    """Record an orderly stop: the node counts as dead at once."""
    affected(session, update(Node).where(Node.name == name, Node.kind == kind).values(heartbeat_ms=0))


def clear_plain_fingerprints(session: Session) -> int:
    """Delete the token fingerprints of older versions, made without the application key; return how many."""
    plain = update(Node).where(Node.key_fingerprint == "", Node.token_fingerprint != "")
    return affected(session, plain.values(token_fingerprint=""))


def find_live(session: Session, *, now_ms: Millis) -> list[Node]:
    """Return the nodes with a heartbeat within NODE_DEAD_MS."""
    nodes = session.scalars(select(Node).order_by(Node.kind, Node.name))
    return [node for node in nodes if node.is_alive(now_ms)]


def find_last_zone(connection: Connection) -> str:
    """Return the time zone of the node that was seen last; empty if none has recorded its zone.

    An orderly stop deletes the heartbeat, so the start counts as well.
    """
    last_seen_ms = case((Node.heartbeat_ms > Node.started_ms, Node.heartbeat_ms), else_=Node.started_ms)
    latest = select(Node.time_zone).where(Node.time_zone != "").order_by(last_seen_ms.desc()).limit(1)
    return connection.scalar(latest) or ""


def find_last_started(session: Session, *, key_fingerprint: str) -> Node | None:
    """Return the node with an application key that was started last, None if there is none."""
    nodes = select(Node).where(Node.key_fingerprint == key_fingerprint, Node.token_fingerprint != "")
    return session.scalar(nodes.order_by(Node.started_ms.desc(), Node.id.desc()).limit(1))


def count_live(session: Session, kind: NodeKind, *, now_ms: Millis) -> int:
    """Return the number of live nodes of a kind."""
    return sum(node.kind == kind for node in find_live(session, now_ms=now_ms))


def find_dead(session: Session, kind: NodeKind, *, now_ms: Millis) -> list[str]:
    """Return the names of the nodes of a kind without a heartbeat for NODE_DEAD_MS."""
    nodes = session.scalars(select(Node).where(Node.kind == kind))
    return [node.name for node in nodes if not node.is_alive(now_ms)]


def delete_silent(session: Session, *, before_ms: Millis) -> int:
    """Delete nodes without start and heartbeat since an instant that own no fire; return how many."""
    owns = select(Fire.id).where(Fire.owner == Node.name).exists()
    # The clock of the database counts, because a node's own may be years behind.
    last_seen_ms = Node.heartbeat_ms - Node.skew_ms
    silent = delete(Node).where(last_seen_ms < before_ms, Node.started_ms < before_ms, ~owns)
    return affected(session, silent)


def find_nodes(session: Session, *, seen_after_ms: Millis) -> list[Node]:
    """Return the nodes with a heartbeat since then, dead or alive.

    Those that stopped in order are left out.
    """
    # A node counts by the clock of the database, as its own may be years behind, or by its own, as the
    # database's may be wrong as well.
    last_seen_ms = Node.heartbeat_ms - Node.skew_ms
    is_recent = or_(last_seen_ms >= seen_after_ms, Node.heartbeat_ms >= seen_after_ms)
    query = select(Node).where(is_recent, Node.heartbeat_ms > 0)
    return list(session.scalars(query.order_by(Node.kind, Node.name)))


def database_now_ms(session: Session) -> Millis | None:
    """Return the database server's clock; None for SQLite, which has no server."""
    statement = dialect_of(session).clock_statement
    return None if statement is None else int(session.execute(text(statement)).scalar_one())
