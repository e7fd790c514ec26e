"""`xxl_job_backfill`, `xxl_job_backfill_instant`: runs of a job for past instants, made up for on request."""

from sqlalchemy import BigInteger, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base, BigId


class Backfill(Base):
    """Backfill of one job, with what its user has asked for."""

    __tablename__ = "xxl_job_backfill"
    __table_args__ = (
        Index("ix_xxl_job_backfill_state", "state", "ended_ms"),
        Index("ix_xxl_job_backfill_job", "job_id", "id"),
        Index("ix_xxl_job_backfill_group", "job_group", "id"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    job_id: Mapped[int] = mapped_column(Integer)
    #: executor group of the job at that time
    job_group: Mapped[int] = mapped_column(Integer)
    #: its name at that time
    job_name: Mapped[str] = mapped_column(String(255), default="", server_default="")
    #: range of logical times [from, to); of instants that were given, the first and the end of the last
    from_ms: Mapped[Millis] = mapped_column(BigInteger)
    to_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: Which
    which: Mapped[str] = mapped_column(String(10))
    #: Order
    run_order: Mapped[str] = mapped_column(String(15))
    #: most of its runs at once
    max_running: Mapped[int] = mapped_column(Integer, default=1, server_default="1")
    #: Children
    children: Mapped[str] = mapped_column(String(15))
    #: OnFailure
    on_failure: Mapped[str] = mapped_column(String(10))
    #: BackfillState
    state: Mapped[str] = mapped_column(String(12), default="running", server_default="running")
    #: counts the times it was resumed after a failure, from 1
    attempt: Mapped[int] = mapped_column(Integer, default=1, server_default="1")
    #: instants to run
    total: Mapped[int] = mapped_column(Integer)
    #: what its list said of the whole range, as JSON text: term -> number of instants
    summary: Mapped[str] = mapped_column(Text)
    #: why it has ended before its end, as JSON text (``app.domain.packed_text``); null: no reason to give
    reason: Mapped[str | None] = mapped_column(Text)
    user_id: Mapped[int] = mapped_column(Integer)
    username: Mapped[str] = mapped_column(String(64), default="", server_default="")
    created_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: last change of its state or of an instant
    updated_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: 0: it has not ended
    ended_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")


class BackfillInstant(Base):
    """Instant of a backfill, and what became of it."""

    __tablename__ = "xxl_job_backfill_instant"
    __table_args__ = (
        Index("ux_xxl_job_backfill_instant_time", "backfill_id", "logical_ms", unique=True),
        Index("ix_xxl_job_backfill_instant_state", "backfill_id", "state", "number"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    backfill_id: Mapped[int] = mapped_column(BigInteger)
    logical_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: its place in the order of the backfill, from 0
    number: Mapped[int] = mapped_column(Integer)
    #: InstantState
    state: Mapped[str] = mapped_column(String(12), default="waiting", server_default="waiting")
    #: attempt of the backfill that has run it last; 0: none has
    attempt: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: its last run; null: it has none yet
    log_id: Mapped[int | None] = mapped_column(BigInteger)
    #: when its first run of the attempt was asked for, and when the last one had ended; 0: not yet
    begun_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    ended_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
