"""`xxl_job_limit`, `xxl_job_limit_use`: limits of runs at once, and which jobs share a named one."""

from sqlalchemy import BigInteger, Index, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, BigId, exact_text

#: most characters of a name
NAME_MAX = 64


class Limit(Base):
    """Limit that a claim locks; a named one has its slots here.

    Rows of jobs and groups are written by the first claim that needs one: their slots are `max_running` of
    the job or group.
    """

    __tablename__ = "xxl_job_limit"
    __table_args__ = (
        Index("ux_xxl_job_limit_name", "kind", "name", unique=True),
        Index("ix_xxl_job_limit_group", "group_id"),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    #: LimitKind
    kind: Mapped[str] = mapped_column(String(10))
    #: of a job or group its id
    name: Mapped[str] = mapped_column(exact_text(NAME_MAX))
    #: named: the only group whose jobs may use it, null: all; of a group: its id
    group_id: Mapped[int | None] = mapped_column(Integer)
    #: named: how many runs at once, counted with their weights; otherwise 0
    slots: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: incremented by each claim that takes a slot, so that nodes of a cluster notice each other
    epoch: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")


class LimitUse(Base):
    """Use of a named limit by a job, as in `xxl_job_info.limits`."""

    __tablename__ = "xxl_job_limit_use"
    __table_args__ = (
        Index("ux_xxl_job_limit_use_job", "job_id", "limit_id", unique=True),
        Index("ix_xxl_job_limit_use_limit", "limit_id"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    job_id: Mapped[int] = mapped_column(Integer)
    limit_id: Mapped[int] = mapped_column(Integer)
    #: slots that a run takes
    weight: Mapped[int] = mapped_column(Integer, default=1, server_default="1")
