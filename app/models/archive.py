"""Tables of the log archive: archived logs, the room that they take; and facts about the installation."""

from sqlalchemy import BigInteger, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base, BigId, LongText


class LogArchive(Base):
    """Archived log of a run: what is stored of it, and when it is fetched next."""

    __tablename__ = "xxl_job_log_archive"
    __table_args__ = (
        Index("ux_xxl_job_log_archive_log", "log_id", unique=True),
        Index("ix_xxl_job_log_archive_next", "state", "next_ms"),
        Index("ix_xxl_job_log_archive_ended", "state", "ended_ms"),
        Index("ix_xxl_job_log_archive_job", "job_id", "log_id"),
        Index("ix_xxl_job_log_archive_group", "job_group", "log_id"),
        Index("ix_xxl_job_log_archive_segment", "segment", "log_id"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    log_id: Mapped[int] = mapped_column(BigInteger)
    job_id: Mapped[int] = mapped_column(Integer)
    job_group: Mapped[int] = mapped_column(Integer)
    #: folder of its chunks below the archive: day of the logical time, job and run
    folder: Mapped[str] = mapped_column(String(80))
    #: ArchiveState
    state: Mapped[str] = mapped_column(String(10))
    #: 1: it is kept only if the run fails
    is_provisional: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: node that fetches it, until its lease ends
    owner: Mapped[str] = mapped_column(String(64), default="", server_default="")
    #: counts the changes of owner and chunks: a writer of an earlier one can write nothing more
    epoch: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    lease_until: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: when it is fetched next; 0: never
    next_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: pause before the last pull
    pause_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: when the run ended; 0: it is in progress
    ended_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: last pull that was answered; 0: none was
    pulled_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: last line that is stored or left out
    last_line: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: bytes of the stored text, and of its files
    size: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    stored: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    #: lines that were left out, as the log was longer than may be kept; 0: none
    gap_from: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    gap_to: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: Missing; empty: nothing is known to be missing
    reason: Mapped[str] = mapped_column(String(20), default="", server_default="")
    #: JSON text (``app.domain.archive.chunks``); null: nothing is stored
    chunks: Mapped[str | None] = mapped_column(LongText)
    #: number of the segment of the index that has its text; 0: none yet
    segment: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")


class ArchiveDay(Base):
    """Room that the archived logs of a job take, of the runs of one day by their logical time."""

    __tablename__ = "xxl_job_log_archive_day"
    __table_args__ = (Index("ux_xxl_job_log_archive_day_job", "job_id", "day", unique=True),)

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    job_id: Mapped[int] = mapped_column(Integer)
    #: as the folders begin, such as ``2026/11/30``
    day: Mapped[str] = mapped_column(String(10))
    #: bytes of the stored text, and of its files
    size: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    stored: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")


class Setting(Base):
    """Fact about the installation, such as what a setting means that is not set."""

    __tablename__ = "xxl_job_setting"
    __table_args__ = (Index("ux_xxl_job_setting_name", "name", unique=True),)

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    name: Mapped[str] = mapped_column(String(50))
    value: Mapped[str] = mapped_column(Text)
