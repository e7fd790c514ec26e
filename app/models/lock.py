"""`xxl_job_lock`: the lock row of the schedulers, and our own lock rows."""

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base

#: taken by scans, ours and those of a Java admin
SCHEDULE_LOCK = "schedule_lock"
#: our own, taken by imports of jobs
IMPORT_LOCK = "import_lock"
#: our own, present while the fires of a restored database are not settled
RESTORE_LOCK = "restore_unfinished"
#: our own, with a random identity behind it: copies of this database have it, other databases do not
DATABASE_ID = "database_id:"


class Lock(Base):
    """Named row lock."""

    __tablename__ = "xxl_job_lock"

    lock_name: Mapped[str] = mapped_column(String(50), primary_key=True)
