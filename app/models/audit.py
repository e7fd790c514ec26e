"""`xxl_job_audit`: changes made by users."""

from sqlalchemy import BigInteger, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base, BigId


class AuditEntry(Base):
    """Audited change or refusal. Rows are only added."""

    __tablename__ = "xxl_job_audit"
    __table_args__ = (
        Index("ix_xxl_job_audit_time", "at_ms"),
        Index("ix_xxl_job_audit_object", "object_type", "object_id"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    at_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: null: no user is logged in (a refused login, an executor)
    user_id: Mapped[int | None] = mapped_column(Integer)
    username: Mapped[str] = mapped_column(String(64), default="", server_default="")
    #: source address of the request
    address: Mapped[str] = mapped_column(String(64), default="", server_default="")
    #: what the user acted through: ``token NAME``; empty: the console
    via: Mapped[str] = mapped_column(String(80), default="", server_default="")
    #: ``job.start``, ``login.refused``, …
    action: Mapped[str] = mapped_column(String(40))
    object_type: Mapped[str] = mapped_column(String(20), default="", server_default="")
    object_id: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    #: JSON of the changed fields, secrets blanked
    changes: Mapped[str | None] = mapped_column(Text)
