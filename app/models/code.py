"""`xxl_job_version`, `xxl_job_managed`, `xxl_job_apply`: versions of jobs, and objects managed as code."""

from sqlalchemy import BigInteger, Index, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base, BigId, LongText, exact_text


class JobVersion(Base):
    """Version of a job: its fields after a change. Its source has versions of its own (`xxl_job_logglue`)."""

    __tablename__ = "xxl_job_version"
    __table_args__ = (Index("ux_xxl_job_version_number", "job_id", "number", unique=True),)

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    job_id: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: 1 for the first version of the job
    number: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    at_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    username: Mapped[str] = mapped_column(String(64), default="", server_default="")
    #: where the change came from: empty for the console, else ``import jobs.json``, ``apply infra@1a2b3c``, …
    source: Mapped[str] = mapped_column(String(255), default="", server_default="")
    #: JSON of the fields
    fields: Mapped[str] = mapped_column(LongText)


class CodeObject(Base):
    """Object managed as code: a job, group or channel with the key and the fields its file has."""

    __tablename__ = "xxl_job_managed"
    __table_args__ = (
        Index("ux_xxl_job_managed_key", "kind", "managed_key", unique=True),
        Index("ux_xxl_job_managed_object", "kind", "object_id", unique=True),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    #: ``job``, ``group`` or ``channel``
    kind: Mapped[str] = mapped_column(String(16), default="", server_default="")
    #: stable key in the files, the same in every installation
    managed_key: Mapped[str] = mapped_column(exact_text(190))
    object_id: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: JSON: the fields that the code owns, each with the value applied last
    fields: Mapped[str] = mapped_column(LongText)
    #: folder and commit, as the apply named them
    source: Mapped[str] = mapped_column(String(255), default="", server_default="")
    apply_id: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    applied_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")


class Apply(Base):
    """Apply: one transaction that made objects as their code says, with what it takes to undo it."""

    __tablename__ = "xxl_job_apply"

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    at_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    username: Mapped[str] = mapped_column(String(64), default="", server_default="")
    source: Mapped[str] = mapped_column(String(255), default="", server_default="")
    #: JSON of the changes
    plan: Mapped[str] = mapped_column(LongText)
    #: JSON of the objects as they were
    before: Mapped[str] = mapped_column(LongText)
    #: 0: not undone
    undone_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
