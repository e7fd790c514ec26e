"""`xxl_job_view`: saved views."""

from sqlalchemy import Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, exact_text


class SavedView(Base):
    """Saved view of a user: filters of a list under a name."""

    __tablename__ = "xxl_job_view"
    __table_args__ = (Index("ux_xxl_job_view", "user_id", "list_name", "name_key", unique=True),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    user_id: Mapped[int] = mapped_column(Integer)
    #: ``jobs`` or ``logs``
    list_name: Mapped[str] = mapped_column(String(10))
    #: as entered
    name: Mapped[str] = mapped_column(String(40))
    name_key: Mapped[str] = mapped_column(exact_text(120))
    #: filters of the list only: ``jobGroup=2&author=ann``
    filters: Mapped[str] = mapped_column(Text)
