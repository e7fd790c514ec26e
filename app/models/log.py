"""`xxl_job_log`: one row per trigger, and per shard of a broadcast."""

from sqlalchemy import BigInteger, Index, Integer, SmallInteger, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base, BigId, EpochMillis


class JobLog(Base):
    """One run: how it was sent (`trigger_*`) and what came of it (`handle_*`)."""

    __tablename__ = "xxl_job_log"
    __table_args__ = (
        Index("I_trigger_time", "trigger_time"),
        Index("I_handle_code", "handle_code"),
        Index("ix_xxl_job_log_job", "job_id", "trigger_time"),
        Index("ix_xxl_job_log_group", "job_group", "trigger_time"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    job_group: Mapped[int] = mapped_column(Integer)
    job_id: Mapped[int] = mapped_column(Integer)
    executor_address: Mapped[str | None] = mapped_column(String(255))
    executor_handler: Mapped[str | None] = mapped_column(String(255))
    executor_param: Mapped[str | None] = mapped_column(String(512))
    #: ``index/total`` of a shard
    executor_sharding_param: Mapped[str | None] = mapped_column(String(20))
    #: retries left
    executor_fail_retry_count: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    trigger_time: Mapped[Millis | None] = mapped_column(EpochMillis)
    trigger_code: Mapped[int] = mapped_column(Integer, default=0)
    trigger_msg: Mapped[str | None] = mapped_column(Text)
    handle_time: Mapped[Millis | None] = mapped_column(EpochMillis)
    handle_code: Mapped[int] = mapped_column(Integer, default=0)
    handle_msg: Mapped[str | None] = mapped_column(Text)
    alarm_status: Mapped[int] = mapped_column(SmallInteger, default=0, server_default="0")

    #: the scheduled instant; null for manual, child and retry runs
    fire_time: Mapped[Millis | None] = mapped_column(BigInteger)
