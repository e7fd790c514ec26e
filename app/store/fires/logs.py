"""Statements of the pipeline on `xxl_job_log`; those of the console are in ``runs.listing``."""

from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, literal_column, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database import single_statement
from app.database.rows import bulk, deletion
from app.database.sql.in_list import WANTED, among
from app.domain.enums import HandleCode, KillReason, TriggerCode, TriggerType
from app.domain.runs.log_copies import Width
from app.models.log import JobLog
from app.store.base.text_widths import width_of


def is_failed() -> ColumnElement[bool]:
    """Return the condition for failed runs.

    Without a parameter, so that the planner finds the partial index.
    """
    return JobLog.failed == literal_column("1")


#: columns with copies of texts of the job, in adopted tables perhaps narrower than the job's
COPIES = ("executor_handler", "executor_param")


def insert_logs(session: Session, rows: Sequence[bulk.Row]) -> list[int]:
    """Insert log rows, with copies that fit; return their ids, which never change from here on.

    Those with a filled parameter, which have more columns, are the last.
    """
    widths = {name: width_of(session, JobLog, name) for name in COPIES}
    new_rows = [row | _copies(row, widths) for row in rows]
    plain = [row for row in new_rows if "param_form" not in row]
    templates = new_rows[len(plain) :]
    ids = bulk.insert_with_ids(session, JobLog, plain)
    return [*ids, *bulk.insert_with_ids(session, JobLog, templates)] if templates else ids


def copies_of(session: Session, row: Mapping[str, Any]) -> dict[str, str]:
    """Return the COPIES that are in a row, cut where their column is narrower."""
    return _copies(row, {name: width_of(session, JobLog, name) for name in COPIES})


def _copies(row: Mapping[str, Any], widths: Mapping[str, Width]) -> dict[str, str]:
    return {name: width.copy_of(text) for name, width in widths.items() if (text := row.get(name))}


def is_cut(session: Session, name: str, copy: str | None) -> bool:
    """Whether one of the COPIES of a log row is only the beginning of its text."""
    return copy is not None and width_of(session, JobLog, name).is_cut(copy)


def delete_logs(session: Session, log_ids: Sequence[int]) -> None:
    """Delete log rows of runs that were never sent."""
    deletion.by_values(session, JobLog, "id", log_ids)


def find_recent_addresses(session: Session, job_id: int, *, limit: int) -> list[str]:
    """Return the addresses of a job's last runs, newest first."""
    rows = select(JobLog.executor_address).where(
        JobLog.job_id == job_id, JobLog.executor_address.is_not(None)
    )
    addresses = session.scalars(rows.order_by(JobLog.trigger_time.desc(), JobLog.id.desc()).limit(limit))
    return [address for address in addresses if address]


class TracedRun(NamedTuple):
    """A log row as the outcome of its send needs it."""

    id: int
    trigger_code: int
    trigger_msg: str | None


class RunState(NamedTuple):
    """A log row as its completion reads it."""

    id: int
    job_id: int
    trigger_code: int
    trigger_msg: str | None
    handle_code: int
    alarm_status: int
    executor_param: str | None
    executor_sharding_param: str | None
    executor_fail_retry_count: int
    executor_address: str | None
    job_group: int
    #: TriggerType; None: an adopted row, or one of a Java admin
    trigger_type: str | None
    trigger_time: Millis | None
    fire_time: Millis | None
    logical_ms: Millis | None
    #: ParamForm
    param_form: int = 0
    killed: int = 0
    #: number of the trigger that asked for the chain
    chain: int | None = None
    #: round that it follows
    round_id: int | None = None

    @property
    def is_replaced(self) -> bool:
        """Whether it was killed for a newer run of its job."""
        return self.killed in (KillReason.REPLACED, KillReason.CONFIRMED)


_COMPLETED_BY = tuple(getattr(JobLog, name) for name in RunState._fields)
_LOCKED = select(*_COMPLETED_BY).where(among(JobLog.id)).order_by(JobLog.id).with_for_update()


def lock_runs(session: Session, log_ids: Collection[int]) -> dict[int, RunState]:
    """Lock and return the log rows that exist, by id."""
    rows = bulk.read_among(session, _LOCKED, sorted(log_ids))
    return {row[0]: RunState._make(row) for row in rows}


_TRACED = (
    select(JobLog.id, JobLog.trigger_code, JobLog.trigger_msg)
    .where(among(JobLog.id))
    .order_by(JobLog.id)
    .with_for_update()
)


def lock_traced(session: Session, log_ids: Collection[int]) -> dict[int, TracedRun]:
    """Lock and return the log rows that exist, by id, with what the outcome of a send changes."""
    rows = bulk.read_among(session, _TRACED, sorted(log_ids))
    return {row[0]: TracedRun._make(row) for row in rows}


_REPLACED = select(JobLog.id).where(
    among(JobLog.id), JobLog.handle_code == HandleCode.NONE, JobLog.killed == KillReason.REPLACED
)


def has_replaced(log_ids: Collection[int]) -> bool:
    """Whether the kill of one of the runs for a newer one is not confirmed yet; opens its own transaction."""
    return bool(single_statement.read(_REPLACED, {WANTED: sorted(log_ids)}))


def mark_killed(session: Session, log_ids: Collection[int], reason: KillReason = KillReason.BY_USER) -> None:
    """Record that a kill ended these runs, or is about to."""
    bulk.update_many(session, JobLog, [{"id": log_id, "killed": reason.value} for log_id in log_ids])


def find_checkpoints(session: Session, log_ids: Collection[int]) -> dict[int, str]:
    """Return log id -> checkpoint of failed runs, for those that have one."""
    rows = select(JobLog.id, JobLog.checkpoint).where(
        JobLog.id.in_(log_ids), JobLog.checkpoint.is_not(None), is_failed()
    )
    return {row.id: row.checkpoint for row in session.execute(rows)}


def write_reports(session: Session, rows: Sequence[bulk.Row]) -> None:
    """Write what executors report beside results; the caller holds the locks of the log rows."""
    for name in ("checkpoint", "progress"):
        columns = [{"id": row["id"], name: row[name]} for row in rows if row[name] is not None]
        bulk.update_many(session, JobLog, sorted(columns, key=itemgetter("id")))


def find_group_ids(session: Session, log_ids: Collection[int]) -> dict[int, int]:
    """Return log id -> the executor group it was sent to, for the runs that exist."""
    rows = select(JobLog.id, JobLog.job_group).where(JobLog.id.in_(sorted(log_ids)))
    return {row.id: row.job_group for row in bulk.read_rows(session, rows)}


def find_trigger_times(session: Session, log_ids: Collection[int]) -> dict[int, Millis]:
    """Return log id -> when the run was triggered; an executor names its log file after both."""
    rows = session.execute(select(JobLog.id, JobLog.trigger_time).where(JobLog.id.in_(log_ids)))
    return {row.id: row.trigger_time or 0 for row in rows}


class Origin(NamedTuple):
    """First run of a chain of retries."""

    trigger_type: str
    #: retries it had left, which are all
    retries: int
    #: run that it follows; 0: none
    source_id: int
    #: its instant, of a run without one when it was triggered; 0: unknown
    due_ms: Millis


_ORIGINS = select(
    JobLog.id,
    JobLog.trigger_type,
    JobLog.executor_fail_retry_count,
    JobLog.source_log_id,
    JobLog.fire_time,
    JobLog.trigger_time,
).where(among(JobLog.id))


def find_origins(session: Session, log_ids: Collection[int], *, most: int | None = None) -> dict[int, Origin]:
    """Return log id -> first of the runs up to this one.

    Missing if that run was deleted, is of a Java admin, or is more than ``most`` retries before. A statement
    per retry.
    """
    origins: dict[int, Origin] = {}
    earlier = {log_id: log_id for log_id in log_ids}
    steps = 0
    while earlier and (most is None or steps <= most):
        steps += 1
        rows = bulk.read_among(session, _ORIGINS, sorted(set(earlier.values())))
        row_by_id: dict[int, tuple[str | None, int, int, Millis]] = {
            row[0]: (row[1], row[2], row[3] or 0, row[4] or row[5] or 0) for row in rows
        }
        runs = {
            log_id: (run_id, *row_by_id[run_id]) for log_id, run_id in earlier.items() if run_id in row_by_id
        }
        origins |= {
            log_id: Origin(kind, retries, source_id, due_ms)
            for log_id, (_, kind, retries, source_id, due_ms) in runs.items()
            if kind and kind != TriggerType.RETRY
        }
        # Ids of earlier runs are lower, so that the search ends.
        earlier = {
            log_id: source_id
            for log_id, (run_id, kind, _, source_id, _) in runs.items()
            if kind == TriggerType.RETRY and 0 < source_id < run_id
        }
    return origins


#: runs of no backfill, but for retries of such. null: a run of a Java admin
NO_BACKFILL = JobLog.trigger_type.is_(None) | (JobLog.trigger_type != TriggerType.BACKFILL)


def find_of_backfills(session: Session, type_by_id: Mapping[int, str | None]) -> set[int]:
    """Return those of the runs, log id -> trigger type, that are of backfills, or retries of such runs."""
    retry_ids = [log_id for log_id, kind in type_by_id.items() if kind == TriggerType.RETRY]
    origins = find_origins(session, retry_ids) if retry_ids else {}
    kinds = {**type_by_id, **{log_id: origin.trigger_type for log_id, origin in origins.items()}}
    return {log_id for log_id, kind in kinds.items() if kind == TriggerType.BACKFILL}


class UnfinishedRun(NamedTuple):
    """A run that waits for its result: when it was triggered, where it was sent last, what it executes."""

    #: as its row returns it
    trigger_ms: Millis
    address: str | None
    #: its executor group, which stays when its job is moved to another; 0: that of the job, as it is new
    job_group: int = 0
    handler: str | None = None
    param: str | None = None
    #: retries left
    retries: int = 0
    #: ParamForm of what was sent
    param_form: int = 0


def find_unfinished(session: Session, log_ids: Collection[int]) -> dict[int, UnfinishedRun]:
    """Return the runs that still wait for a result, by log id.

    A missing run has a result, or its row was deleted: a Java admin on the same database does both without
    touching our fires.
    """
    if not log_ids:
        return {}
    query = select(
        JobLog.id,
        JobLog.trigger_time,
        JobLog.executor_address,
        JobLog.job_group,
        JobLog.executor_handler,
        JobLog.executor_param,
        JobLog.executor_fail_retry_count,
        JobLog.param_form,
        JobLog.trigger_code,
        JobLog.handle_code,
    )
    rows = session.execute(query.where(JobLog.id.in_(log_ids)))
    return {
        row.id: UnfinishedRun(row.trigger_time or 0, *row[2:8])
        for row in rows
        if is_unfinished(row.trigger_code, row.handle_code)
    }


#: by id alone: the database might prefer an index on the codes, of which there are few
_CODES = select(JobLog.id, JobLog.trigger_code, JobLog.handle_code).where(among(JobLog.id))


def is_unsent() -> ColumnElement[bool]:
    """Return the condition for log rows whose runs have neither an outcome nor a result."""
    return and_(JobLog.trigger_code == TriggerCode.NONE, JobLog.handle_code == HandleCode.NONE)


def find_ended(session: Session, log_ids: Sequence[int]) -> set[int]:
    """Return those of the log rows whose runs have a result, or were refused."""
    rows = bulk.read_among(session, _CODES, log_ids)
    return {row[0] for row in rows if not is_unfinished(row[1], row[2])}


def is_unfinished(trigger_code: int, handle_code: int) -> bool:
    """Whether a log row with these codes waits for a result."""
    return handle_code == HandleCode.NONE and trigger_code in (TriggerCode.NONE, TriggerCode.ACCEPTED)


def find_logs(session: Session, log_ids: Collection[int]) -> list[JobLog]:
    """Return the log rows that exist, ids ascending."""
    return list(session.scalars(select(JobLog).where(JobLog.id.in_(log_ids)).order_by(JobLog.id)))
