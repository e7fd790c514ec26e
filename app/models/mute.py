"""`xxl_job_mute`: jobs and executor groups whose alarms are not told for a while."""

from sqlalchemy import BigInteger, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base


class Mute(Base):
    """One muted job or group; the row stays after its end until what it held back has been summed up."""

    __tablename__ = "xxl_job_mute"
    __table_args__ = (
        Index("ux_xxl_job_mute", "job_id", "group_id", unique=True),
        Index("ix_xxl_job_mute_due", "until_ms", "next_ms"),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    #: 0: the whole group is muted
    job_id: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: 0: one job is muted, whatever its group
    group_id: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    since_ms: Mapped[Millis] = mapped_column(BigInteger)
    until_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: who muted it
    username: Mapped[str] = mapped_column(String(64), default="", server_default="")
    reason: Mapped[str] = mapped_column(String(200), default="", server_default="")
    #: telling the summary, as alarms are told
    attempts: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    owner: Mapped[str] = mapped_column(String(64), default="", server_default="")
    #: not told before; while it is being told: when another node may take it over
    next_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: what each channel said at the last attempt
    outcome: Mapped[str | None] = mapped_column(Text)
