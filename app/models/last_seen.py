"""`xxl_job_last_seen`: former addresses of executors, and when each was last seen."""

from sqlalchemy import BigInteger, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base, BigId, exact_text


class LastSeen(Base):
    """Former address of an application.

    Written when the address leaves the registry, deleted when it registers again.
    """

    __tablename__ = "xxl_job_last_seen"
    __table_args__ = (Index("ux_xxl_job_last_seen", "app_name", "address", unique=True),)

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    app_name: Mapped[str] = mapped_column(exact_text(255))
    address: Mapped[str] = mapped_column(exact_text(255))
    #: the last heartbeat, or the time it deregistered
    last_seen_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: as in `xxl_job_registry`
    capabilities: Mapped[str] = mapped_column(String(255), default="", server_default="")
