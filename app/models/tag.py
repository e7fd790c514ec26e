"""`xxl_job_tag`: tags of jobs."""

from sqlalchemy import Index, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, BigId, exact_text


class JobTag(Base):
    """Tag of a job; not used by the pipeline."""

    __tablename__ = "xxl_job_tag"
    __table_args__ = (
        Index("ux_xxl_job_tag_job", "job_id", "tag_key", unique=True),
        Index("ix_xxl_job_tag_key", "tag_key", "job_id"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    job_id: Mapped[int] = mapped_column(Integer)
    #: as entered
    tag: Mapped[str] = mapped_column(String(30))
    #: equal for tags that differ only in case, see ``folded``
    tag_key: Mapped[str] = mapped_column(exact_text(90))
