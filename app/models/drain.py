"""`xxl_job_drain`: addresses of executor groups that get no new runs."""

from sqlalchemy import BigInteger, Index, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base


class Drain(Base):
    """One drained address; the row stays until somebody undoes it, whether the address is registered or not."""

    __tablename__ = "xxl_job_drain"
    __table_args__ = (Index("ux_xxl_job_drain", "group_id", "address", unique=True),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    group_id: Mapped[int] = mapped_column(Integer)
    #: as ``app.domain.draining.bare_address`` writes it
    address: Mapped[str] = mapped_column(String(255))
    since_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: who drained it
    username: Mapped[str] = mapped_column(String(64), default="", server_default="")
