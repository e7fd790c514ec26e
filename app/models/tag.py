"""`xxl_job_tag`: the free words jobs are sorted by."""

from sqlalchemy import Index, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, BigId, exact_text


class JobTag(Base):
    """One tag of one job; the console alone reads it, the pipeline never."""

    __tablename__ = "xxl_job_tag"
    __table_args__ = (
        Index("ux_xxl_job_tag_job", "job_id", "tag_key", unique=True),
        Index("ix_xxl_job_tag_key", "tag_key", "job_id"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    job_id: Mapped[int] = mapped_column(Integer)
    #: as it was typed
    tag: Mapped[str] = mapped_column(String(30))
    #: what makes it the same tag in whatever case, see ``folded``
    tag_key: Mapped[str] = mapped_column(exact_text(90))
