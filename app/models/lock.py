"""`xxl_job_lock`: the row all schedulers of a database exclude each other by, and rows of our own."""

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base

#: the one row the scan takes; a Java admin takes the same
SCHEDULE_LOCK = "schedule_lock"


#: our own: who stores jobs of a file takes it
IMPORT_LOCK = "import_lock"


class Lock(Base):
    """A named row lock."""

    __tablename__ = "xxl_job_lock"

    lock_name: Mapped[str] = mapped_column(String(50), primary_key=True)
