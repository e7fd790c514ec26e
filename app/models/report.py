"""`xxl_job_log_report`: counts per day."""

from sqlalchemy import Index, Integer
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base, EpochMillis


class DayReport(Base):
    """How many runs of one local day are running, succeeded, failed."""

    __tablename__ = "xxl_job_log_report"
    __table_args__ = (Index("i_trigger_day", "trigger_day", unique=True),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    #: local midnight
    trigger_day: Mapped[Millis | None] = mapped_column(EpochMillis)
    running_count: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    suc_count: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    fail_count: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    update_time: Mapped[Millis | None] = mapped_column(EpochMillis)
