"""`xxl_job_right`: rights of users on executor groups."""

from sqlalchemy import Index, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base


class Right(Base):
    """Rights of a normal user on a group; they refine the original's `permission` list."""

    __tablename__ = "xxl_job_right"
    __table_args__ = (Index("ux_xxl_job_right", "user_id", "group_id", unique=True),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    user_id: Mapped[int] = mapped_column(Integer)
    group_id: Mapped[int] = mapped_column(Integer)
    #: comma separated: ``view,operate,edit,glue``
    rights: Mapped[str] = mapped_column(String(64))
