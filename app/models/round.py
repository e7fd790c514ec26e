"""`xxl_job_after`, `xxl_job_round`, `xxl_job_arrival`: which jobs run after which, and what has arrived."""

from sqlalchemy import BigInteger, Index, Integer, SmallInteger, String
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base, BigId

#: most characters of a key
KEY_MAX = 64


class After(Base):
    """A predecessor of a job, as in `xxl_job_info.runs_after`."""

    __tablename__ = "xxl_job_after"
    __table_args__ = (
        Index("ux_xxl_job_after_job", "job_id", "predecessor_id", unique=True),
        Index("ix_xxl_job_after_predecessor", "predecessor_id"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    job_id: Mapped[int] = mapped_column(Integer)
    predecessor_id: Mapped[int] = mapped_column(Integer)


class Round(Base):
    """Round: runs of the predecessors that belong together, and the run of the job that follows them."""

    __tablename__ = "xxl_job_round"
    __table_args__ = (
        Index("ux_xxl_job_round_key", "job_id", "round_key", unique=True),
        Index("ix_xxl_job_round_job", "job_id", "id"),
        Index("ix_xxl_job_round_due", "due_ms"),
        Index("ix_xxl_job_round_chain", "chain"),
        Index("ix_xxl_job_round_opened", "opened_ms"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    job_id: Mapped[int] = mapped_column(Integer)
    #: what belongs together (``app.domain.rounds.round_keys``)
    round_key: Mapped[str] = mapped_column(String(KEY_MAX))
    #: logical time of the run that follows
    logical_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: number of the trigger that asked for the chain; null: none did
    chain: Mapped[int | None] = mapped_column(BigInteger)
    #: RoundState
    state: Mapped[str] = mapped_column(String(12), default="open", server_default="open")
    #: RoundReason of one that was not run; otherwise empty
    reason: Mapped[str] = mapped_column(String(20), default="", server_default="")
    #: incremented by each change, so that nodes of a cluster notice each other
    epoch: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    opened_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: end of the wait; 0: none
    deadline_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: when the monitor looks at it next; 0: never
    due_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    decided_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: run because of which it was not run; null: none, or a skip
    cause_log_id: Mapped[int | None] = mapped_column(BigInteger)
    #: 1: started at its deadline without all that it waited for
    incomplete: Mapped[int] = mapped_column(SmallInteger, default=0, server_default="0")
    #: first run of the job in it
    log_id: Mapped[int | None] = mapped_column(BigInteger)
    #: when the instant of a schedule took it, of a round since the last one; 0: none has
    taken_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")


class Arrival(Base):
    """What became of a predecessor, or of one of its shards, in a round."""

    __tablename__ = "xxl_job_arrival"
    __table_args__ = (Index("ux_xxl_job_arrival_shard", "round_id", "predecessor_id", "shard", unique=True),)

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    round_id: Mapped[int] = mapped_column(BigInteger)
    predecessor_id: Mapped[int] = mapped_column(Integer)
    #: number of the shard; 0 of a run without shards
    shard: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: number of shards of its broadcast
    total: Mapped[int] = mapped_column(Integer, default=1, server_default="1")
    #: ArrivalOutcome
    outcome: Mapped[str] = mapped_column(String(12))
    #: reason of the skip or round of one that did not run; otherwise empty
    reason: Mapped[str] = mapped_column(String(20), default="", server_default="")
    #: its run; of one that did not run the run that caused it; null: none
    log_id: Mapped[int | None] = mapped_column(BigInteger)
    at_ms: Mapped[Millis] = mapped_column(BigInteger)
