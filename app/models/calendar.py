"""`xxl_job_calendar`, `xxl_job_blackout` and others: on which days schedules run, and when they must not."""

from sqlalchemy import BigInteger, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base, BigId, LongText, exact_text

#: most characters of the name of a calendar, and of the reason of a blackout
NAME_MAX, REASON_MAX = 64, 200


class JobCalendar(Base):
    """Calendar; what it says is in its versions."""

    __tablename__ = "xxl_job_calendar"
    __table_args__ = (Index("ux_xxl_job_calendar_name", "name", unique=True),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    name: Mapped[str] = mapped_column(exact_text(NAME_MAX))
    #: its latest version
    version_id: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")


class CalendarVersion(Base):
    """Version of a calendar; never changed, and kept when the calendar is deleted."""

    __tablename__ = "xxl_job_calendar_version"
    __table_args__ = (Index("ix_xxl_job_calendar_version_name", "name", "from_ms"),)

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    calendar_id: Mapped[int] = mapped_column(Integer)
    name: Mapped[str] = mapped_column(exact_text(NAME_MAX))
    #: 1 for the first version of a calendar
    number: Mapped[int] = mapped_column(Integer)
    #: it holds for instants from this one on
    from_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: weekdays that are no workdays, as ``6,7``: 1 is Monday
    weekend: Mapped[str] = mapped_column(String(20))
    #: JSON text: day -> ``workday`` or ``holiday``, or that and the name of the day
    days: Mapped[str] = mapped_column(LongText)
    #: the last day that it knows, as ``2026-12-31``; empty: it knows all
    valid_until: Mapped[str] = mapped_column(String(10), default="", server_default="")
    #: UnknownDays
    unknown: Mapped[str] = mapped_column(String(10), default="weekday", server_default="weekday")
    author: Mapped[str] = mapped_column(String(64), default="", server_default="")


class JobBlackout(Base):
    """Time in which nothing may start, once or again and again."""

    __tablename__ = "xxl_job_blackout"
    __table_args__ = (Index("ix_xxl_job_blackout_until", "until_ms"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    #: of a recurring one: a window that is open by then begins with it
    from_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: its end, exclusive, which is that of a blackout that a user has ended; null: it has none yet
    until_ms: Mapped[Millis | None] = mapped_column(BigInteger)
    #: when the windows of a recurring one begin; empty: it is on once
    cron: Mapped[str] = mapped_column(String(128), default="", server_default="")
    #: length of a window
    duration_s: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: IANA zone of `cron`
    zone: Mapped[str] = mapped_column(String(64), default="", server_default="")
    #: the group whose jobs it concerns; null: see the others, all jobs if none is set
    group_id: Mapped[int | None] = mapped_column(Integer)
    job_id: Mapped[int | None] = mapped_column(Integer)
    #: tag of the jobs that it concerns, as entered; empty: none
    tag: Mapped[str] = mapped_column(String(30), default="", server_default="")
    #: Afterwards
    afterwards: Mapped[str] = mapped_column(String(10), default="skip", server_default="skip")
    reason: Mapped[str] = mapped_column(Text)
    author: Mapped[str] = mapped_column(String(64), default="", server_default="")
    created_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: when a user ended it; null: it was not ended
    ended_ms: Mapped[Millis | None] = mapped_column(BigInteger)


class BlackoutJob(Base):
    """Time in which a job had the tag of a blackout."""

    __tablename__ = "xxl_job_blackout_job"
    __table_args__ = (
        Index("ix_xxl_job_blackout_job_blackout", "blackout_id"),
        Index("ix_xxl_job_blackout_job_job", "job_id"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    blackout_id: Mapped[int] = mapped_column(Integer)
    job_id: Mapped[int] = mapped_column(Integer)
    from_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: exclusive; null: it still has it
    until_ms: Mapped[Millis | None] = mapped_column(BigInteger)


class RuleChange(Base):
    """Change of the calendars or blackouts; only the latest is kept."""

    __tablename__ = "xxl_job_rule_change"

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    #: when it was made, in microseconds, and later than the one before: no two databases have the same
    number: Mapped[int] = mapped_column(BigInteger)
