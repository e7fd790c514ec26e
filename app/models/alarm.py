"""`xxl_job_alarm`: alarms, recoveries and their outcome."""

from sqlalchemy import BigInteger, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base, BigId


class Alarm(Base):
    """Alarm of a run, or the message that its job has recovered with it."""

    __tablename__ = "xxl_job_alarm"
    __table_args__ = (
        Index("ux_xxl_job_alarm_log", "log_id", unique=True),
        Index("ix_xxl_job_alarm_due", "state", "next_ms"),
        Index("ix_xxl_job_alarm_job", "job_id", "state"),
        Index("ix_xxl_job_alarm_mute", "mute_id", "job_id"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    log_id: Mapped[int] = mapped_column(BigInteger)
    job_id: Mapped[int] = mapped_column(Integer)
    #: AlarmReason
    reason: Mapped[str] = mapped_column(String(20))
    state: Mapped[str] = mapped_column(String(12), default="PENDING", server_default="PENDING")
    attempts: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    owner: Mapped[str] = mapped_column(String(64), default="", server_default="")
    lease_until: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    created_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: earliest time of the next attempt; once sent: time of the last attempt
    next_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: result of each target at the last attempt, JSON
    outcome: Mapped[str | None] = mapped_column(Text)
    #: the mute that holds it back, until the summary of the mute has been sent
    mute_id: Mapped[int | None] = mapped_column(Integer)
