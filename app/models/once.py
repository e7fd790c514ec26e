"""`xxl_job_once`: what was asked for under a name, so that asking a second time does nothing."""

from sqlalchemy import BigInteger, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base, BigId


class Once(Base):
    """One thing that was done, such as the run of one job that one form asked for."""

    __tablename__ = "xxl_job_once"
    __table_args__ = (Index("ux_xxl_job_once", "name", unique=True),)

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    name: Mapped[str] = mapped_column(String(64))
    done_ms: Mapped[Millis] = mapped_column(BigInteger)
