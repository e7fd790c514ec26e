"""`xxl_job_span`, `xxl_job_day`, `xxl_job_seal`: what was expected of jobs, and what became of it by days."""

from sqlalchemy import BigInteger, Index, Integer, SmallInteger, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base, BigId


class JobSpan(Base):
    """Part of the history of a job in which its switch and schedule did not change; never deleted."""

    __tablename__ = "xxl_job_span"
    __table_args__ = (
        Index("ix_xxl_job_span_job", "job_id", "until_ms"),
        Index("ix_xxl_job_span_until", "until_ms"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    job_id: Mapped[int] = mapped_column(Integer)
    group_id: Mapped[int] = mapped_column(Integer)
    is_on: Mapped[int] = mapped_column(SmallInteger)
    #: exclusive
    from_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: inclusive; null: it has not ended
    until_ms: Mapped[Millis | None] = mapped_column(BigInteger)
    schedule_type: Mapped[str] = mapped_column(String(50))
    schedule_conf: Mapped[str] = mapped_column(String(128))
    #: IANA zone, never empty
    time_zone: Mapped[str] = mapped_column(String(64))
    not_before_ms: Mapped[Millis] = mapped_column(BigInteger)
    not_after_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: first instant of a fixed rate; 0: of another schedule
    anchor_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: the job's day rule, as JSON text; null: it had none
    calendar: Mapped[str | None] = mapped_column(Text)
    #: up to where the instants that its calendar and blackouts exclude are written as skips
    explained_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: EndReason; empty: it has not ended
    end_reason: Mapped[str] = mapped_column(String(20), default="", server_default="")


#: `job_id` of the row that has, in `open_from_ms`, up to when all jobs are counted, but for those still open,
#: and in its numbers what was found after that when it was looked at last
WATERMARK_JOB = 0


class JobDay(Base):
    """What became of the instants of a job that were expected on a day of the configured zone."""

    __tablename__ = "xxl_job_day"
    __table_args__ = (
        Index("ux_xxl_job_day_job", "job_id", "day", unique=True),
        Index("ix_xxl_job_day_day", "day", "group_id"),
        Index("ix_xxl_job_day_open", "open_from_ms"),
        Index("ix_xxl_job_day_changed", "changed"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    job_id: Mapped[int] = mapped_column(Integer)
    #: ``2026-11-29``
    day: Mapped[str] = mapped_column(String(10))
    group_id: Mapped[int] = mapped_column(Integer)
    expected: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    on_time: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    late: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    not_started: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    skipped: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: of those skipped: by a calendar or a blackout
    excluded: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    unexplained: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    unexpected: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    unknown: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    java: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    finished: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    failed: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    unresolved: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: numbers of ``not_started`` and ``skipped`` by reason, as JSON text; null: none
    reasons: Mapped[str | None] = mapped_column(Text)
    #: instants whose rows were deleted before they were counted, as JSON text: term -> number; null: none
    removed: Mapped[str | None] = mapped_column(Text)
    #: 1: rows of counted instants were deleted, so that they cannot be counted again
    cleared: Mapped[int] = mapped_column(SmallInteger, default=0, server_default="0")
    #: from this instant on the day is not counted, because a run waits or is open; 0: it is
    open_from_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: 1: a run that was counted got another result since, and the day is to be counted again
    changed: Mapped[int] = mapped_column(SmallInteger, default=0, server_default="0")


class DaySeal(Base):
    """Totals of a day, chained to the seal before it by a hash; corrections follow with higher numbers."""

    __tablename__ = "xxl_job_seal"
    __table_args__ = (Index("ux_xxl_job_seal_day", "day", "number", unique=True),)

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    day: Mapped[str] = mapped_column(String(10))
    number: Mapped[int] = mapped_column(Integer)
    #: 1: the first seal after the database was restored from a backup
    restored: Mapped[int] = mapped_column(SmallInteger, default=0, server_default="0")
    #: as JSON text
    totals: Mapped[str] = mapped_column(Text)
    #: SHA-256 of the rows of the day in canonical form, in hexadecimal
    rows_hash: Mapped[str] = mapped_column(String(64))
    #: SHA-256 of the hash before it and of this row
    hash: Mapped[str] = mapped_column(String(64))
    sealed_ms: Mapped[Millis] = mapped_column(BigInteger)
