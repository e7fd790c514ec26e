"""`xxl_job_registry`: heartbeats of executors."""

from sqlalchemy import Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base, BigId, EpochMillis, exact_text


class Registration(Base):
    """Registered address of an application, and its last heartbeat."""

    __tablename__ = "xxl_job_registry"
    __table_args__ = (Index("i_g_k_v", "registry_group", "registry_key", "registry_value", unique=True),)

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    registry_group: Mapped[str] = mapped_column(exact_text(50))
    registry_key: Mapped[str] = mapped_column(exact_text(255))
    registry_value: Mapped[str] = mapped_column(exact_text(255))
    update_time: Mapped[Millis | None] = mapped_column(EpochMillis)

    #: sent by our own client in a header: ``durable-dedup``; empty for others
    capabilities: Mapped[str] = mapped_column(String(255), default="", server_default="")
    #: changes with every start of our own client
    boot_id: Mapped[str] = mapped_column(String(64), default="", server_default="")
    #: names of its handlers, as our own client sends them; None: never sent
    handlers: Mapped[str | None] = mapped_column(Text)
    #: digest of the schemas of its handlers, then the schemas as JSON, by handler; None: never sent
    schemas: Mapped[str | None] = mapped_column(Text, deferred=True)
