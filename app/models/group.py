"""`xxl_job_group`: executor groups."""

from sqlalchemy import BigInteger, Integer, SmallInteger, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base, EpochMillis, exact_text
from app.models.sealed_text import SealedText


class Group(Base):
    """Executor group: executors that share an AppName."""

    __tablename__ = "xxl_job_group"

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    app_name: Mapped[str] = mapped_column(exact_text(64))
    title: Mapped[str] = mapped_column(String(64))
    address_type: Mapped[int] = mapped_column(SmallInteger, default=0, server_default="0")
    #: comma separated; automatic groups: sorted, from the registry
    address_list: Mapped[str | None] = mapped_column(Text)
    update_time: Mapped[Millis | None] = mapped_column(EpochMillis)

    #: overrides the global token
    access_token: Mapped[str | None] = mapped_column(SealedText)
    #: the token before, valid as well while executors are given the new one
    former_token: Mapped[str | None] = mapped_column(SealedText)
    #: since when both are valid; 0: only one is
    changeover_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: Apprise URLs, one per line
    alarm_urls: Mapped[str | None] = mapped_column(Text)
    #: what its jobs promise if they have no promise of the same kind, as JSON text
    promises: Mapped[str | None] = mapped_column(Text)
    #: further channel for incidents of its jobs that are not acknowledged, as JSON text; null: none
    escalation: Mapped[str | None] = mapped_column(Text)
    #: most runs of its jobs at once; 0: no limit
    max_running: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: ArchiveMode for its jobs that say nothing; empty: as the installation says
    log_archive: Mapped[str] = mapped_column(String(10), default="", server_default="")
    #: days that archived logs and that runs are kept; 0: as the installation says
    log_days: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    run_days: Mapped[int] = mapped_column(Integer, default=0, server_default="0")

    @property
    def addresses(self) -> list[str]:
        """The addresses as a list."""
        return split_addresses(self.address_list)

    @property
    def tokens(self) -> tuple[str, ...]:
        """Its own access tokens, the one to send first; empty: the global token."""
        return tokens_in_order(self.access_token, self.former_token)


def split_addresses(address_list: str | None) -> list[str]:
    """Return the addresses of a group, or those entered for a run, as a list."""
    return [text.strip() for text in (address_list or "").split(",") if text.strip()]


def tokens_in_order(access_token: str | None, former_token: str | None) -> tuple[str, ...]:
    """Return a group's own access tokens, the one to send first; empty: the global token."""
    return tuple(filter(None, (access_token, former_token))) if access_token else ()
