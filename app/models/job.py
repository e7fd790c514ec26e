"""`xxl_job_info`: jobs."""

from sqlalchemy import BigInteger, Index, Integer, SmallInteger, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.domain.jobs.children import child_ids_of
from app.models.base import Base, EpochMillis, LongText

#: `trigger_next_time` of a FIX_DELAY job while its run is in progress: never due
AFTER_THE_CURRENT_RUN: Millis = 2**63 - 1


class Job(Base):
    """Job. `trigger_status` is the switch of its schedule; it does not mean that a run is in progress."""

    __tablename__ = "xxl_job_info"
    __table_args__ = (
        Index("ix_xxl_job_info_due", "trigger_status", "trigger_next_time"),
        Index("ix_xxl_job_info_group", "job_group"),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    job_group: Mapped[int] = mapped_column(Integer)
    job_desc: Mapped[str] = mapped_column(String(255))
    add_time: Mapped[Millis | None] = mapped_column(EpochMillis)
    update_time: Mapped[Millis | None] = mapped_column(EpochMillis)
    author: Mapped[str | None] = mapped_column(String(64))
    alarm_email: Mapped[str | None] = mapped_column(String(255))
    schedule_type: Mapped[str] = mapped_column(String(50), default="NONE", server_default="NONE")
    schedule_conf: Mapped[str | None] = mapped_column(String(128))
    misfire_strategy: Mapped[str] = mapped_column(
        String(50), default="DO_NOTHING", server_default="DO_NOTHING"
    )
    executor_route_strategy: Mapped[str | None] = mapped_column(String(50))
    executor_handler: Mapped[str | None] = mapped_column(String(255))
    executor_param: Mapped[str | None] = mapped_column(String(2_048))
    executor_block_strategy: Mapped[str | None] = mapped_column(String(50))
    #: seconds; 0 or less: no timeout
    executor_timeout: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    executor_fail_retry_count: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    glue_type: Mapped[str] = mapped_column(String(50))
    glue_source: Mapped[str | None] = mapped_column(LongText)
    glue_remark: Mapped[str | None] = mapped_column(String(128))
    glue_updatetime: Mapped[Millis | None] = mapped_column(EpochMillis)
    #: comma separated job ids
    child_jobid: Mapped[str | None] = mapped_column(String(255))
    trigger_status: Mapped[int] = mapped_column(SmallInteger, default=0, server_default="0")
    trigger_last_time: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    trigger_next_time: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")

    #: IANA zone of the schedule; empty: the configured one
    time_zone: Mapped[str] = mapped_column(String(64), default="", server_default="")
    #: validity window of the schedule; 0: open
    not_before_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    not_after_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    delivery: Mapped[str] = mapped_column(String(20), default="auto", server_default="auto")
    retry_interval_s: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: backoff factor: each retry waits this percentage of the delay before it
    retry_backoff_percent: Mapped[int] = mapped_column(Integer, default=100, server_default="100")
    #: 1: placeholders of the parameter are filled in before a run is sent
    fill_parameter: Mapped[int] = mapped_column(SmallInteger, default=0, server_default="0")
    #: what it promises, as JSON text; null: nothing of its own
    promises: Mapped[str | None] = mapped_column(Text)
    #: further channel for incidents that are not acknowledged, as JSON text; null: that of its group
    escalation: Mapped[str | None] = mapped_column(Text)
    #: most runs at once, wherever they run; 0: no limit
    max_running: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: WhenFull
    when_full: Mapped[str] = mapped_column(String(10), default="wait", server_default="wait")
    #: place of waiting runs: 9 is first
    priority: Mapped[int] = mapped_column(SmallInteger, default=5, server_default="5")
    #: seconds after which a waiting run is skipped; 0: never
    max_wait_s: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: template over the parameter of a run; `max_running` counts for each text by itself; null: none
    limit_key: Mapped[str | None] = mapped_column(Text)
    #: named limits with weights, as JSON text; null: none
    limits: Mapped[str | None] = mapped_column(Text)
    #: what it runs after, as JSON text (``app.domain.rounds.runs_after``); null: nothing
    runs_after: Mapped[str | None] = mapped_column(Text)
    #: 1: other jobs run after it
    has_followers: Mapped[int] = mapped_column(SmallInteger, default=0, server_default="0")
    #: on which days its schedule runs, as JSON text (``app.domain.calendars.day_rule``); null: on all
    calendar: Mapped[str | None] = mapped_column(Text)
    #: of the misfire strategy RUN_ALL: most missed instants that run, the newest, and how old they may be
    misfire_max: Mapped[int] = mapped_column(Integer, default=100, server_default="100")
    misfire_max_age_s: Mapped[int] = mapped_column(Integer, default=86_400, server_default="86400")
    #: ArchiveMode: of which of its runs the logs are archived; empty: as its group says
    log_archive: Mapped[str] = mapped_column(String(10), default="", server_default="")
    #: days that archived logs and that runs are kept; 0: as its group says
    log_days: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    run_days: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: latest instant that became a fire or a skip
    last_fire_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")

    @property
    def child_ids(self) -> list[int]:
        """The ids of the child jobs; pieces that are not numbers are ignored."""
        return child_ids_of(self.child_jobid)
