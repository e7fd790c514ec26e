"""`xxl_job_mute`: mutes of jobs and executor groups."""

from sqlalchemy import BigInteger, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base


class Mute(Base):
    """Mute of a job or group; after its end the row stays until its summary has been sent."""

    __tablename__ = "xxl_job_mute"
    __table_args__ = (
        Index("ux_xxl_job_mute", "job_id", "group_id", unique=True),
        Index("ix_xxl_job_mute_due", "until_ms", "next_ms"),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    #: 0: the whole group is muted
    job_id: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: 0: a single job is muted, whatever its group
    group_id: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    since_ms: Mapped[Millis] = mapped_column(BigInteger)
    until_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: the user who muted it
    username: Mapped[str] = mapped_column(String(64), default="", server_default="")
    reason: Mapped[str] = mapped_column(String(200), default="", server_default="")
    #: attempts to send the summary
    attempts: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: node that sends the summary
    owner: Mapped[str] = mapped_column(String(64), default="", server_default="")
    #: earliest time of the next attempt; while the summary is being sent: end of the lease
    next_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: result of each target at the last attempt, JSON
    outcome: Mapped[str | None] = mapped_column(Text)
