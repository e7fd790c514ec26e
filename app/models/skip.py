"""`xxl_job_skip`: skipped instants of jobs, which were due and deliberately not fired."""

from sqlalchemy import BigInteger, Index, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base, BigId

#: missed instants are counted up to this number
SKIPPED_MAX = 10_000


class Skip(Base):
    """Consecutive skipped instants of a job, both ends inclusive."""

    __tablename__ = "xxl_job_skip"
    __table_args__ = (
        Index("ix_xxl_job_skip_job", "job_id", "recorded_ms"),
        Index("ix_xxl_job_skip_to", "to_ms"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    job_id: Mapped[int] = mapped_column(Integer)
    from_ms: Mapped[Millis] = mapped_column(BigInteger)
    to_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: how many, at most SKIPPED_MAX; of crons of five fields counting stops earlier
    skipped: Mapped[int] = mapped_column(Integer)
    #: ``misfire``, ``stopped``, ``edited``, ``invalid``, ``restored``, ``lost``, ``limit``, ``withdrawn``,
    #: ``predecessor``, ``deadline``
    reason: Mapped[str] = mapped_column(String(20))
    #: TriggerType of a run by hand, child or retry that was skipped; empty: instants of the schedule
    trigger_type: Mapped[str] = mapped_column(String(20), default="", server_default="")
    #: number of the trigger of a run by hand that was skipped
    trigger_key: Mapped[int | None] = mapped_column(BigInteger)
    #: round of a run that its predecessors prevented
    round_id: Mapped[int | None] = mapped_column(BigInteger)
    recorded_ms: Mapped[Millis] = mapped_column(BigInteger)
