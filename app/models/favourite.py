"""`xxl_job_favourite`: favourite jobs of users."""

from sqlalchemy import Index, Integer
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, BigId


class Favourite(Base):
    """Favourite job of a user."""

    __tablename__ = "xxl_job_favourite"
    __table_args__ = (
        Index("ux_xxl_job_favourite", "user_id", "job_id", unique=True),
        Index("ix_xxl_job_favourite_job", "job_id"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    user_id: Mapped[int] = mapped_column(Integer)
    job_id: Mapped[int] = mapped_column(Integer)
