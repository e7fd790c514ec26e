"""`xxl_job_logglue`: versions of GLUE sources."""

from sqlalchemy import Index, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base, EpochMillis, LongText


class GlueVersion(Base):
    """Saved version of a job's source."""

    __tablename__ = "xxl_job_logglue"
    __table_args__ = (Index("ix_xxl_job_logglue_job", "job_id"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    job_id: Mapped[int] = mapped_column(Integer)
    glue_type: Mapped[str | None] = mapped_column(String(50))
    glue_source: Mapped[str | None] = mapped_column(LongText)
    glue_remark: Mapped[str] = mapped_column(String(128))
    add_time: Mapped[Millis | None] = mapped_column(EpochMillis)
    update_time: Mapped[Millis | None] = mapped_column(EpochMillis)

    author: Mapped[str] = mapped_column(String(64), default="", server_default="")
