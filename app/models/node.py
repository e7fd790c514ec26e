"""`xxl_job_node`: live console and workers processes."""

from sqlalchemy import BigInteger, Index, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base

#: period of the heartbeat
NODE_BEAT_MS: Millis = 1_000
#: a node without a heartbeat for this long is dead
NODE_DEAD_MS: Millis = 2_500
#: a node whose clock differs more from the database's does not fire
SKEW_MAX_MS: Millis = 1_000
#: jobs are fired if a scheduler has completed a scan within this: it scans every second, recorded every 2.5 s
SCAN_MAX_MS: Millis = 10_000


class Node(Base):
    """Node: a console or workers process and its last heartbeat."""

    __tablename__ = "xxl_job_node"
    __table_args__ = (Index("ux_xxl_job_node_name", "name", "kind", unique=True),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    name: Mapped[str] = mapped_column(String(64))
    kind: Mapped[str] = mapped_column(String(12))
    #: number of starts of this node
    epoch: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    started_ms: Mapped[Millis] = mapped_column(BigInteger)
    heartbeat_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: how far its clock is ahead of the database's; 0 also where it has none (SQLite)
    skew_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: workers: when the scheduler last completed a scan; written every few seconds
    scanned_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    version: Mapped[str] = mapped_column(String(32))
    #: fingerprints of the access tokens, made with the application key; nodes of one database must agree
    token_fingerprint: Mapped[str] = mapped_column(String(64), default="", server_default="")
    #: fingerprint of the application key, which must be the same on all nodes too; empty: an older version
    key_fingerprint: Mapped[str] = mapped_column(String(64), default="", server_default="")
    #: time zone of the installation, which must be the same on all nodes too; empty: an older version
    time_zone: Mapped[str] = mapped_column(String(64), default="", server_default="")

    def last_seen_ms(self, now_ms: Millis) -> Millis:
        """Time of the last heartbeat, by its own or the database's clock: the later, as one may be wrong.

        Its own clock does not count where it is ahead of this host's: the node may have ended long ago.
        """
        by_database_ms = self.heartbeat_ms - self.skew_ms
        if self.heartbeat_ms > now_ms + SKEW_MAX_MS:
            return by_database_ms
        return max(self.heartbeat_ms, by_database_ms)

    def is_alive(self, now_ms: Millis) -> bool:
        """Whether its last heartbeat is at most NODE_DEAD_MS ago."""
        return self.last_seen_ms(now_ms) >= now_ms - NODE_DEAD_MS
