"""`xxl_job_promise`, `xxl_job_check`, `xxl_job_incident`, `xxl_job_incident_message`: what jobs promise."""

from sqlalchemy import BigInteger, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base, BigId


class JobPromise(Base):
    """Promise of a job, its own or one of its group's defaults, while it holds."""

    __tablename__ = "xxl_job_promise"
    __table_args__ = (
        Index("ux_xxl_job_promise_job", "job_id", "number", unique=True),
        Index("ix_xxl_job_promise_kind", "kind"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    job_id: Mapped[int] = mapped_column(Integer)
    #: stays with the promise, however the others of the job change; from 1 on
    number: Mapped[int] = mapped_column(Integer)
    #: PromiseKind
    kind: Mapped[str] = mapped_column(String(20))
    #: the whole promise, as JSON text
    definition: Mapped[str] = mapped_column(String(255))
    #: instants and runs before it are not covered
    since_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: checks of all instants up to it are planned
    planned_until_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: span of the job's history by which they are planned; 0: none is
    span_id: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    #: usual durations of runs, as JSON text: hour of the day, or ``all`` -> ms; null: not computed
    usual: Mapped[str | None] = mapped_column(Text)
    #: when they were computed; 0: never
    usual_at_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: day -> how often it was kept, broken and excused, as JSON text
    days: Mapped[str | None] = mapped_column(Text)
    #: latest instant, or beginning of a run, for which it was kept since it was broken; 0: none yet
    kept_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: latest one for which it was broken; 0: none yet
    broken_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")


class PromiseCheck(Base):
    """Check: when a promise is evaluated. Deleted once that is done."""

    __tablename__ = "xxl_job_check"
    __table_args__ = (
        Index("ux_xxl_job_check", "job_id", "number", "logical_ms", "log_id", unique=True),
        Index("ix_xxl_job_check_due", "due_ms"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    job_id: Mapped[int] = mapped_column(Integer)
    #: of the promise; 0: all those of the job that are evaluated when a run ends
    number: Mapped[int] = mapped_column(Integer)
    #: first of its instants; 0: it is not about an instant
    logical_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: last of its instants
    until_ms: Mapped[Millis] = mapped_column(BigInteger)
    due_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: run that has ended; 0: it is not about a run
    log_id: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")


class Incident(Base):
    """Broken promises of one instant, window or series of failures, until they are kept again."""

    __tablename__ = "xxl_job_incident"
    __table_args__ = (
        Index("ux_xxl_job_incident_key", "incident_key", unique=True),
        Index("ix_xxl_job_incident_state", "state", "opened_ms"),
        Index("ix_xxl_job_incident_job", "job_id", "opened_ms"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    #: ``i:<job>:<instant>``, ``w:<job>:<number>:<begin of the window>``, ``r:<job>:<first failed run>``
    incident_key: Mapped[str] = mapped_column(String(64))
    job_id: Mapped[int] = mapped_column(Integer)
    #: of the job when it was opened
    group_id: Mapped[int] = mapped_column(Integer)
    #: IncidentState
    state: Mapped[str] = mapped_column(String(12))
    #: instant, beginning of the window, or of the first failed run
    logical_ms: Mapped[Millis] = mapped_column(BigInteger)
    opened_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: number of a promise -> its definition, as JSON text
    kinds: Mapped[str] = mapped_column(Text)
    #: run that it is about, the latest if there are several; 0: there was none
    log_id: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    acknowledged_by: Mapped[str] = mapped_column(String(50), default="", server_default="")
    acknowledged_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: 0: it has not ended
    ended_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")


class IncidentMessage(Base):
    """Message about an incident: that it was opened, an escalation, that its promises are kept again."""

    __tablename__ = "xxl_job_incident_message"
    __table_args__ = (
        Index("ux_xxl_job_incident_message", "incident_id", "step", unique=True),
        Index("ix_xxl_job_incident_message_due", "state", "next_ms"),
        Index("ix_xxl_job_incident_message_job", "job_id", "state"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    incident_id: Mapped[int] = mapped_column(BigInteger)
    job_id: Mapped[int] = mapped_column(Integer)
    #: MessageStep
    step: Mapped[str] = mapped_column(String(12))
    #: AlarmState
    state: Mapped[str] = mapped_column(String(12), default="PENDING", server_default="PENDING")
    attempts: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    owner: Mapped[str] = mapped_column(String(64), default="", server_default="")
    lease_until: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    created_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: earliest time of the next attempt; once sent: time of the last attempt
    next_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: result of each target at the last attempt, JSON
    outcome: Mapped[str | None] = mapped_column(Text)
