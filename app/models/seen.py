"""`xxl_job_seen`: when executors that are registered no more were last there."""

from sqlalchemy import BigInteger, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base, BigId, exact_text


class Sighting(Base):
    """One forgotten address of one application; written when the registry forgets it, gone when it registers again."""

    __tablename__ = "xxl_job_seen"
    __table_args__ = (Index("ux_xxl_job_seen", "app_name", "address", unique=True),)

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    app_name: Mapped[str] = mapped_column(exact_text(255))
    address: Mapped[str] = mapped_column(exact_text(255))
    #: the last heartbeat, or when it said that it goes
    seen_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: what it said of itself, as in `xxl_job_registry`; empty: nothing
    capabilities: Mapped[str] = mapped_column(String(255), default="", server_default="")
