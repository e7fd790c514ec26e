"""`xxl_job_start_page`: start pages of users."""

from sqlalchemy import Index, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base


class StartPage(Base):
    """Start page of a user; without a row it is the dashboard."""

    __tablename__ = "xxl_job_start_page"
    __table_args__ = (Index("ux_xxl_job_start_page_user", "user_id", unique=True),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    user_id: Mapped[int] = mapped_column(Integer)
    #: ``jobs``, ``logs``, the name of a built-in view, ``view:12``
    target: Mapped[str] = mapped_column(String(20))
