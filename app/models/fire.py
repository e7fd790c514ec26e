"""`xxl_job_fire`: fires in the pipeline, from their scan to their result."""

from sqlalchemy import BigInteger, Index, Integer, SmallInteger, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base, BigId

#: `fail_retry_count` of a fire that uses the job's
RETRIES_OF_THE_JOB = -1


class Fire(Base):
    """Fire. The table stays small, so a log of ten million rows does not slow it down."""

    __tablename__ = "xxl_job_fire"
    __table_args__ = (
        Index("ux_xxl_job_fire_key", "fire_key", unique=True),
        Index("ix_xxl_job_fire_due", "state", "due_time"),
        Index("ix_xxl_job_fire_lease", "state", "lease_until"),
        Index("ix_xxl_job_fire_look", "state", "deadline_ms"),
        Index("ix_xxl_job_fire_job", "job_id", "state"),
        Index("ix_xxl_job_fire_log", "log_id"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    job_id: Mapped[int] = mapped_column(Integer)
    #: idempotency key: ``cron:<job>:<due_ms>``, ``manual:<due_ms>-<uuid>@<request>``, ``once:…`` likewise, …
    fire_key: Mapped[str] = mapped_column(String(120))
    due_time: Mapped[Millis] = mapped_column(BigInteger)
    #: logical time; null: `due_time`
    logical_ms: Mapped[Millis | None] = mapped_column(BigInteger)
    trigger_type: Mapped[str] = mapped_column(String(20))
    #: null: the job's
    executor_param: Mapped[str | None] = mapped_column(Text)
    #: ParamForm of `executor_param`, if that is not null
    param_form: Mapped[int] = mapped_column(SmallInteger, default=0, server_default="0")
    #: addresses a manual run is restricted to; null: the group's
    address_list: Mapped[str | None] = mapped_column(Text)
    sharding_param: Mapped[str | None] = mapped_column(String(20))
    fail_retry_count: Mapped[int] = mapped_column(Integer, default=RETRIES_OF_THE_JOB, server_default="-1")
    state: Mapped[str] = mapped_column(String(12), default="PENDING", server_default="PENDING")
    log_id: Mapped[int | None] = mapped_column(BigInteger)
    address: Mapped[str | None] = mapped_column(String(255))
    attempt: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: node that wrote or claimed the row; a hint while PENDING
    owner: Mapped[str] = mapped_column(String(64), default="", server_default="")
    #: incremented by each claim; writes of an older epoch change nothing
    epoch: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: end of the claim's lease; UNKNOWN: time since which the fate is unknown; WAITING: end of the wait
    lease_until: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    sent_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    accepted_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: next check by the resolver, 0: none; WAITING: its place in the order
    deadline_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: boot id of the executor that accepted the run; if sent again to a durable one: its boot id at the check
    boot_id: Mapped[str] = mapped_column(String(64), default="", server_default="")
    #: run that a user repeats by this one
    repeats_log_id: Mapped[int | None] = mapped_column(BigInteger)
    probe_count: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: when a run of a job with limits got its slots; 0: it has none
    admitted_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: text of the job's `limit_key` for this run
    limit_key: Mapped[str] = mapped_column(String(64), default="", server_default="")
    #: number of the trigger that asked for the chain; 0: nothing follows it; null: it is in no chain
    chain: Mapped[int | None] = mapped_column(BigInteger)
    #: round that it waits for or belongs to; null: none
    round_id: Mapped[int | None] = mapped_column(BigInteger)
    #: why it waits (``app.domain.limits.waits``)
    waits_for: Mapped[str] = mapped_column(String(80), default="", server_default="")
