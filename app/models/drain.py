"""`xxl_job_drain`: drained addresses of executor groups."""

from sqlalchemy import BigInteger, Index, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base


class Drain(Base):
    """Drained address; the row stays until a user undrains it, whether the address is registered or not."""

    __tablename__ = "xxl_job_drain"
    __table_args__ = (Index("ux_xxl_job_drain", "group_id", "address", unique=True),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    group_id: Mapped[int] = mapped_column(Integer)
    #: normalized by ``app.domain.executors.draining.bare_address``
    address: Mapped[str] = mapped_column(String(255))
    since_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: the user who drained it
    username: Mapped[str] = mapped_column(String(64), default="", server_default="")
