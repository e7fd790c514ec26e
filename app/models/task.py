"""`xxl_job_task`, `xxl_job_task_line`: background tasks, done piece by piece, and their results."""

from sqlalchemy import BigInteger, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base, BigId, LongText


class Task(Base):
    """One background task of one user."""

    __tablename__ = "xxl_job_task"
    __table_args__ = (
        Index("ux_xxl_job_task_key", "idempotency_key", unique=True),
        Index("ix_xxl_job_task_due", "state", "lease_until"),
        Index("ix_xxl_job_task_user", "user_id", "id"),
        Index("ix_xxl_job_task_finished", "finished_ms"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    #: the same form sent twice by one user has the same key
    idempotency_key: Mapped[str] = mapped_column(String(64))
    kind: Mapped[str] = mapped_column(String(20))
    #: of a bulk change, a ``BulkAction``; otherwise empty
    action: Mapped[str] = mapped_column(String(20), default="", server_default="")
    #: JSON; emptied where it is long and the task has ended
    parameters: Mapped[str] = mapped_column(LongText)
    user_id: Mapped[int] = mapped_column(Integer)
    username: Mapped[str] = mapped_column(String(64), default="", server_default="")
    #: remote address of the request
    address: Mapped[str] = mapped_column(String(64), default="", server_default="")
    state: Mapped[str] = mapped_column(String(12), default="PENDING", server_default="PENDING")
    #: objects to do, and objects done
    total: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    done: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: packed text, see ``app.domain.packed_text``; None: no failure
    error: Mapped[str | None] = mapped_column(Text)
    created_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: 0: not yet
    started_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    updated_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    finished_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: node that works on it, until its lease ends
    owner: Mapped[str] = mapped_column(String(64), default="", server_default="")
    #: counts the claims: an owner of an earlier one can write nothing more
    epoch: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: claims since the last progress
    claims: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    lease_until: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")


class TaskLine(Base):
    """Result for one object of a task."""

    __tablename__ = "xxl_job_task_line"
    __table_args__ = (Index("ux_xxl_job_task_line", "task_id", "number", unique=True),)

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    task_id: Mapped[int] = mapped_column(BigInteger)
    number: Mapped[int] = mapped_column(Integer)
    object_id: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    name: Mapped[str] = mapped_column(String(255), default="", server_default="")
    outcome: Mapped[str] = mapped_column(String(12))
    #: JSON, packed; None: nothing to add
    detail: Mapped[str | None] = mapped_column(LongText)
