"""`xxl_job_log`: one row per trigger, and per shard of a broadcast."""

from sqlalchemy import BigInteger, Computed, Index, Integer, SmallInteger, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import SECOND_MS, Millis
from app.models.base import Base, BigId, EpochMillis, LongText, as_repeated

#: a run has failed if it could not be sent, or if its result is neither pending nor a success
#: (docs/reference/scheduling.md, section 6.2)
FAILED = "CASE WHEN trigger_code NOT IN (0, 200) OR handle_code NOT IN (0, 200) THEN 1 ELSE 0 END"

#: columns that only the page of a run reads
REPORTS = "reports"


def _partial_index(name: str, *columns: str, where: str) -> Index:
    """Return an index that is partial on SQLite and PostgreSQL; MySQL has no partial indexes.

    Migrations create it. ``postgresql_where`` here would load a dialect of 2 MB in every process.
    """
    return Index(name, *columns, sqlite_where=text(where))


class JobLog(Base):
    """Run: its sending (`trigger_*`) and its result (`handle_*`)."""

    __tablename__ = "xxl_job_log"
    __table_args__ = (
        Index("I_trigger_time", "trigger_time"),
        Index("I_handle_code", "handle_code"),
        Index("ix_xxl_job_log_job", "job_id", "trigger_time"),
        Index("ix_xxl_job_log_group", "job_group", "trigger_time"),
        _partial_index(
            "ix_xxl_job_log_failures",
            "failed",
            "trigger_time",
            "id",
            "job_group",
            "job_id",
            where="failed = 1",
        ),
        _partial_index("ix_xxl_job_log_source", "source_log_id", where="source_log_id IS NOT NULL"),
        _partial_index("ix_xxl_job_log_trigger", "trigger_key", where="trigger_key IS NOT NULL"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    job_group: Mapped[int] = mapped_column(Integer)
    job_id: Mapped[int] = mapped_column(Integer)
    executor_address: Mapped[str | None] = mapped_column(String(255))
    executor_handler: Mapped[str | None] = mapped_column(String(255))
    executor_param: Mapped[str | None] = mapped_column(String(2_048))
    #: ``index/total`` of a shard
    executor_sharding_param: Mapped[str | None] = mapped_column(String(20))
    #: retries left
    executor_fail_retry_count: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    trigger_time: Mapped[Millis | None] = mapped_column(EpochMillis)
    trigger_code: Mapped[int] = mapped_column(Integer, default=0)
    trigger_msg: Mapped[str | None] = mapped_column(Text)
    handle_time: Mapped[Millis | None] = mapped_column(EpochMillis)
    handle_code: Mapped[int] = mapped_column(Integer, default=0)
    handle_msg: Mapped[str | None] = mapped_column(Text)
    alarm_status: Mapped[int] = mapped_column(SmallInteger, default=0, server_default="0")

    #: the scheduled instant; null for manual, child and retry runs
    fire_time: Mapped[Millis | None] = mapped_column(BigInteger)
    #: what the run stands for, where that is not `fire_time`, else `trigger_time`: its logical time
    logical_ms: Mapped[Millis | None] = mapped_column(BigInteger)
    #: ParamForm: whether `executor_param` is what is sent, or a template that is filled in
    param_form: Mapped[int] = mapped_column(SmallInteger, default=0, server_default="0")
    #: what was sent of a template; each ``${`` of a value is written ``$${``, and secrets stay placeholders
    filled_param: Mapped[str | None] = mapped_column(LongText, deferred=True, deferred_group=REPORTS)
    #: TriggerType; null: an adopted row, or one of a Java admin
    trigger_type: Mapped[str | None] = mapped_column(String(20))
    #: the run of which this one is a child or retry
    source_log_id: Mapped[int | None] = mapped_column(BigInteger)
    #: number of the trigger by a user or program (app.domain.runs.trigger_keys); null: there was none
    trigger_key: Mapped[int | None] = mapped_column(BigInteger)
    #: number of the trigger that asked for the chain; 0: nothing follows it; null: it is in no chain
    chain: Mapped[int | None] = mapped_column(BigInteger)
    #: round that it follows; null: none
    round_id: Mapped[int | None] = mapped_column(BigInteger)
    #: from its sending to its result; null: running, adopted, or of a Java admin
    duration_ms: Mapped[Millis | None] = mapped_column(BigInteger)
    #: how long after its due time it was sent first; null: not sent, not known, or of a Java admin
    late_ms: Mapped[Millis | None] = mapped_column(BigInteger)
    #: NotStarted; empty: an executor may have taken it
    not_started: Mapped[str] = mapped_column(String(20), default="", server_default="")
    #: Killed
    killed: Mapped[int] = mapped_column(SmallInteger, default=0, server_default="0")
    #: what our executor kept for a retry of the run, as JSON text; before that, what the run was given
    checkpoint: Mapped[str | None] = mapped_column(Text, deferred=True, deferred_group=REPORTS)
    #: last progress of the run, as JSON text
    progress: Mapped[str | None] = mapped_column(Text, deferred=True, deferred_group=REPORTS)
    #: 1 or 0, computed by the database
    failed: Mapped[int] = mapped_column(SmallInteger, Computed(FAILED))

    @property
    def started_ms(self) -> Millis | None:
        """When it was triggered: of two equal local times the second if it was not due before."""
        first = self.trigger_time
        if first is None or self.fire_time is None or first >= self.fire_time // SECOND_MS * SECOND_MS:
            return first
        return as_repeated(first)

    @property
    def ended_ms(self) -> Millis | None:
        """When its result arrived: of two equal local times the one that its start and duration fit."""
        first, start_ms = self.handle_time, self.started_ms
        if first is None or start_ms is None:
            return first
        if self.duration_ms is None:
            return first if first >= start_ms else as_repeated(first)
        end_ms = start_ms + self.duration_ms
        return min(first, as_repeated(first), key=lambda at_ms: abs(at_ms - end_ms))
