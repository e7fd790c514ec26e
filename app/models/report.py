"""`xxl_job_log_report` and `xxl_job_group_day`: run counts per day."""

from sqlalchemy import BigInteger, Index, Integer
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base, EpochMillis


class DayReport(Base):
    """Running, successful and failed runs of a local day."""

    __tablename__ = "xxl_job_log_report"
    __table_args__ = (Index("i_trigger_day", "trigger_day", unique=True),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    #: local midnight
    trigger_day: Mapped[Millis | None] = mapped_column(EpochMillis)
    running_count: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    suc_count: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    fail_count: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    update_time: Mapped[Millis | None] = mapped_column(EpochMillis)


#: job group of the row that marks a day as counted by group
WHOLE_DAY = 0


class GroupDay(Base):
    """The same for one executor group; the original's table has only totals."""

    __tablename__ = "xxl_job_group_day"
    __table_args__ = (Index("ux_xxl_job_group_day", "trigger_day", "job_group", unique=True),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    #: local midnight
    trigger_day: Mapped[Millis] = mapped_column(BigInteger)
    #: or WHOLE_DAY, whose row has no counts
    job_group: Mapped[int] = mapped_column(Integer)
    running_count: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    suc_count: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    fail_count: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
