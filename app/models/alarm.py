"""`xxl_job_alarm`: alarms to be told."""

from sqlalchemy import BigInteger, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base, BigId


class Alarm(Base):
    """The alarm of one log row."""

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
    #: ``failed``, ``unresolved``
    reason: Mapped[str] = mapped_column(String(20))
    state: Mapped[str] = mapped_column(String(12), default="PENDING", server_default="PENDING")
    attempts: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    owner: Mapped[str] = mapped_column(String(64), default="", server_default="")
    lease_until: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    created_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: not told before; once told: when that was
    next_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: what each channel said at the last attempt
    outcome: Mapped[str | None] = mapped_column(Text)
    #: the mute that holds it back, until its end has been told
    mute_id: Mapped[int | None] = mapped_column(Integer)
