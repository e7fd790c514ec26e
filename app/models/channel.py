"""`xxl_job_channel` and `xxl_job_channel_scope`: alarm channels, and their scopes: groups and jobs."""

from sqlalchemy import BigInteger, Index, Integer, SmallInteger, String
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base
from app.models.sealed_text import SealedText


class AlarmChannel(Base):
    """Alarm channel: a receiver of alarms with a name, set up in the console."""

    __tablename__ = "xxl_job_channel"
    __table_args__ = (Index("ux_xxl_job_channel_name", "name", unique=True),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    name: Mapped[str] = mapped_column(String(64))
    #: ``mail``, ``slack``, …
    kind: Mapped[str] = mapped_column(String(20))
    #: JSON of the fields of its kind, encrypted, because it holds webhook addresses and tokens
    settings: Mapped[str] = mapped_column(SealedText)
    #: 1: for all jobs; 0: for those of its scopes
    for_all: Mapped[int] = mapped_column(SmallInteger, default=0, server_default="0")
    #: 1: it gets a message each morning about the instants of the day before
    daily: Mapped[int] = mapped_column(SmallInteger, default=0, server_default="0")
    #: the latest day that it got that message of, as ``2026-11-29``
    daily_day: Mapped[str] = mapped_column(String(10), default="", server_default="")
    daily_attempts: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: earliest time of the next attempt
    daily_next_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    updated_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")


class ChannelScope(Base):
    """Group or job that a channel is for; one of both ids is 0."""

    __tablename__ = "xxl_job_channel_scope"
    __table_args__ = (Index("ux_xxl_job_channel_scope", "channel_id", "group_id", "job_id", unique=True),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    channel_id: Mapped[int] = mapped_column(Integer)
    group_id: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    job_id: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
