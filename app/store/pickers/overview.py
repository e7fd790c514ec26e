"""Overview queries: last runs, running runs, waiting fires, heartbeats and counts for the pages.

Reads only.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Select,
    Subquery,
    and_,
    bindparam,
    case,
    func,
    select,
)
from sqlalchemy.orm import InstrumentedAttribute, Session, defer, undefer
from sqlalchemy.sql.base import ExecutableOption

from app.clock import MINUTE_MS, Millis
from app.database.rows import bulk
from app.database.sql import direct
from app.database.sql.in_list import WANTED, among
from app.database.sql.planner_hints import unindexed_on_postgresql, unindexed_on_sqlite
from app.domain.enums import APART, NOT_OUT, FireState, HandleCode, RegistryGroup, TriggerCode, TriggerStatus
from app.domain.runs.logical_times import SHOWN_FROM_MS
from app.domain.schedules.schedule import RESTING
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.models.registry import Registration

K = TypeVar("K", int, str)

#: a fire this late is shown as waiting
WAITING_AFTER_MS: Millis = 1_000
#: newest runs without a result, refused ones among them, that are searched for open ones in 0.1 to 0.3 s
WITHOUT_RESULT_MAX = 100_000
#: newest running and unresolved runs that are read
OPEN_MAX = 2_000
#: id of runs without a result: PostgreSQL finds those by the result, and not by the id
_open_id = unindexed_on_postgresql(JobLog.id)
#: older runs are not searched for running ones
RUNNING_WITHIN_MS: Millis = 24 * 60 * MINUTE_MS

#: None: all groups
GroupIds = Collection[int] | None


@dataclass(frozen=True, slots=True)
class WaitingFire:
    """A fire that is due and has not been sent."""

    job_id: int
    job_group: int
    job_desc: str
    due_time: Millis
    trigger_type: str
    state: str
    #: what its run stands for
    logical_ms: Millis

    @property
    def shown_logical_ms(self) -> Millis | None:
        """Its logical time, where that differs from its due time so much that it is shown."""
        return self.logical_ms if abs(self.logical_ms - self.due_time) >= SHOWN_FROM_MS else None


class LateFires(NamedTuple):
    """Waiting fires of a job, and those without a recent run, with the time the oldest of these was due."""

    total: int
    without_run: int
    oldest_ms: Millis | None


class OpenRun(NamedTuple):
    """A run without a result that runs or is unresolved."""

    id: int
    job_id: int
    job_group: int
    trigger_time: Millis
    trigger_code: int


class Load(NamedTuple):
    """Runs of an address: running ones, and those that wait there or have not been sent yet."""

    running: int
    waiting: int


def in_groups(column: "InstrumentedAttribute[int]", group_ids: GroupIds) -> list[ColumnElement[bool]]:
    """Return the condition that restricts a query to these groups."""
    return [] if group_ids is None else [column.in_(list(group_ids))]


def _select_newest_ids() -> Select[Any]:
    newest = (
        select(JobLog.id)
        .where(JobLog.job_id == Job.id)
        .order_by(JobLog.trigger_time.desc(), JobLog.id.desc())
        .limit(1)
        .correlate(Job)
        .scalar_subquery()
    )
    return select(newest).select_from(Job).where(among(Job.id))


_NEWEST_IDS = _select_newest_ids()


def find_newest_ids(session: Session, job_ids: Collection[int]) -> set[int]:
    """Return the ids of the newest run of each of the jobs.

    One index lookup per job, however long the log is.
    """
    rows = bulk.read_rows(session, _NEWEST_IDS, {WANTED: list(job_ids)})
    return {row[0] for row in rows if row[0]}


def find_job_logs(session: Session, job_id: int, *, group_ids: GroupIds, limit: int) -> list[JobLog]:
    """Return the newest runs of a job in these groups (None: in any), without their messages."""
    query = _without_messages().where(JobLog.job_id == job_id, *in_groups(JobLog.job_group, group_ids))
    query = query.order_by(JobLog.trigger_time.desc(), JobLog.id.desc())
    return list(session.scalars(query.limit(limit)))


def find_running_of_job(
    session: Session, job_id: int, *, group_ids: GroupIds, now_ms: Millis, limit: int
) -> list[JobLog]:
    """Return the running runs of a job in these groups (None: in any), newest first."""
    running = select(JobLog).where(
        JobLog.job_id == job_id,
        JobLog.trigger_code == TriggerCode.ACCEPTED,
        JobLog.handle_code == HandleCode.NONE,
        JobLog.trigger_time >= now_ms - RUNNING_WITHIN_MS,
        *in_groups(JobLog.job_group, group_ids),
    )
    return list(session.scalars(running.order_by(JobLog.trigger_time.desc(), JobLog.id.desc()).limit(limit)))


def count_out(session: Session, job_ids: Collection[int]) -> dict[int, int]:
    """Return how many runs of each job have been claimed and have no result yet."""
    query = select(Fire.job_id, func.count()).where(
        Fire.job_id.in_(list(job_ids)), Fire.state.not_in(NOT_OUT)
    )
    return {row[0]: row[1] for row in session.execute(query.group_by(Fire.job_id))}


def _is_waiting(now_ms: Millis | BindParameter[Millis]) -> list[ColumnElement[bool]]:
    return [Fire.state == FireState.PENDING, Fire.due_time < now_ms - WAITING_AFTER_MS]


_is_out = case((Fire.state.not_in(NOT_OUT), 1), else_=0)
_is_late = case((and_(*_is_waiting(bindparam("now", type_=BigInteger))), 1), else_=0)
_FIRES = (
    select(Fire.job_id, func.sum(_is_out), func.sum(_is_late)).where(among(Fire.job_id)).group_by(Fire.job_id)
)


def count_fires(
    session: Session, job_ids: Collection[int], *, now_ms: Millis
) -> tuple[dict[int, int], dict[int, int]]:
    """Return job id -> runs that are out, as ``count_out`` does, and -> fires that are due and not sent."""
    rows = direct.read(session, _FIRES, {WANTED: list(job_ids), "now": now_ms})
    return {row[0]: int(row[1]) for row in rows}, {row[0]: int(row[2]) for row in rows}


def count_by_address(
    session: Session, group_ids: Collection[int], *, now_ms: Millis
) -> dict[int, dict[str | None, Load]]:
    """Return group id -> address -> load by the group's runs, including those on their way there.

    The address None has runs that are due and not routed yet. An executor runs one run of a job at a time;
    further runs of the job wait there.
    """
    sent_job = case((Fire.state.not_in([*NOT_OUT, FireState.ROUTING]), Fire.job_id))
    counts = select(Job.job_group, Fire.address, func.count(), func.count(sent_job.distinct()))
    due = counts.join(Job, Job.id == Fire.job_id).where(
        Job.job_group.in_(list(group_ids)), Fire.due_time <= now_ms, Fire.state.not_in(APART)
    )
    loads_by_group: dict[int, dict[str | None, Load]] = {}
    for group_id, address, count, running in session.execute(due.group_by(Job.job_group, Fire.address)):
        loads_by_group.setdefault(group_id, {})[address] = Load(running=running, waiting=count - running)
    return loads_by_group


def find_waiting(
    session: Session, group_ids: GroupIds, *, now_ms: Millis, limit: int, job_id: int | None = None
) -> list[WaitingFire]:
    """Return fires that are due and have not been sent, oldest first."""
    columns = (Fire.job_id, Job.job_group, Job.job_desc, Fire.due_time, Fire.trigger_type, Fire.state)
    logical_ms = func.coalesce(Fire.logical_ms, Fire.due_time)
    query = (
        select(*columns, logical_ms)
        .join(Job, Job.id == Fire.job_id)
        .where(*_is_waiting(now_ms), *in_groups(Job.job_group, group_ids))
    )
    if job_id is not None:
        query = query.where(Fire.job_id == job_id)
    return [WaitingFire(*row) for row in session.execute(query.order_by(Fire.due_time, Fire.id).limit(limit))]


def find_waiting_jobs(
    session: Session, group_ids: GroupIds, *, since_ms: Millis, now_ms: Millis, limit: int
) -> dict[int, LateFires]:
    """Return job id -> its waiting fires, oldest first; runs are recent from ``since_ms`` on."""
    # A fire that is prepared or was given back has a run.
    due_without = case((JobLog.id.is_(None), Fire.due_time))
    query = (
        select(Fire.job_id, func.count(), func.count(due_without), func.min(due_without))
        .outerjoin(JobLog, and_(JobLog.id == Fire.log_id, JobLog.trigger_time >= since_ms))
        .where(*_is_waiting(now_ms))
        .group_by(Fire.job_id)
        .order_by(func.min(Fire.due_time), Fire.job_id)
    )
    if group_ids is not None:
        query = query.join(Job, Job.id == Fire.job_id).where(*in_groups(Job.job_group, group_ids))
    return {row[0]: LateFires(*row[1:]) for row in session.execute(query.limit(limit))}


def find_registrations(session: Session, app_names: Collection[str]) -> list[Registration]:
    """Return the registered executors of applications, by address."""
    query = select(Registration).where(
        Registration.registry_group == RegistryGroup.EXECUTOR, Registration.registry_key.in_(list(app_names))
    )
    return list(session.scalars(query.order_by(Registration.registry_key, Registration.registry_value)))


def count_jobs(session: Session, group_ids: GroupIds) -> tuple[int, int]:
    """Return the number of jobs, and of those whose schedule is on."""
    on = func.sum(case((Job.trigger_status == TriggerStatus.RUNNING, 1), else_=0))
    count, enabled_count = session.execute(
        select(func.count(Job.id), on).where(*in_groups(Job.job_group, group_ids))
    ).one()
    return count, int(enabled_count or 0)


def find_groups_with_schedules(session: Session, group_ids: Collection[int]) -> set[int]:
    """Return those of the groups that have a job whose schedule is on."""
    # By the groups, which have few jobs: SQLite would read all schedules that are on.
    on = select(Job.job_group).where(
        unindexed_on_sqlite(Job.trigger_status) == TriggerStatus.RUNNING, Job.job_group.in_(group_ids)
    )
    return set(session.scalars(on.distinct()))


def find_parents(session: Session, job_id: int, *, group_ids: GroupIds) -> list[int]:
    """Return the ids of the jobs of these groups (None: of all) that have this one as a child."""
    query = select(Job).where(
        Job.child_jobid.contains(str(job_id), autoescape=True), *in_groups(Job.job_group, group_ids)
    )
    return [job.id for job in session.scalars(query.order_by(Job.id)) if job_id in job.child_ids]


def find_upcoming(session: Session, group_ids: GroupIds, *, limit: int) -> list[Job]:
    """Return the jobs that fire next."""
    query = select(Job).where(
        Job.trigger_status == TriggerStatus.RUNNING,
        Job.trigger_next_time > 0,
        Job.trigger_next_time < RESTING,
        *in_groups(Job.job_group, group_ids),
    )
    return list(session.scalars(query.order_by(Job.trigger_next_time, Job.id).limit(limit)))


def find_open_runs(session: Session, group_ids: GroupIds) -> list[OpenRun]:
    """Return the running and the unresolved runs of these groups, newest first.

    Reads the newest OPEN_MAX among the newest WITHOUT_RESULT_MAX runs without a result.
    """
    open_runs = [OpenRun._make(row) for row in bulk.read_rows(session, _OPEN)]
    return [run for run in open_runs if group_ids is None or run.job_group in group_ids]


def newest_without_result(*columns: "InstrumentedAttribute[Any]") -> Subquery:
    """Return the newest runs without a result, also those that were refused: no index tells them apart."""
    newest = select(*columns).where(JobLog.handle_code == HandleCode.NONE)
    return newest.order_by(_open_id.desc()).limit(WITHOUT_RESULT_MAX).subquery()


def _select_open() -> Select[Any]:
    newest = newest_without_result(*(getattr(JobLog, name) for name in OpenRun._fields))
    is_open = newest.c.trigger_code.in_([TriggerCode.ACCEPTED, TriggerCode.UNRESOLVED])
    return select(newest).where(is_open).order_by(newest.c.id.desc()).limit(OPEN_MAX)


_OPEN = _select_open()


def is_running(run: OpenRun, *, now_ms: Millis) -> bool:
    """Whether an open run is shown as running."""
    return run.trigger_code == TriggerCode.ACCEPTED and run.trigger_time >= now_ms - RUNNING_WITHIN_MS


def is_unresolved(run: OpenRun) -> bool:
    """Whether it is unknown if an open run has run."""
    return run.trigger_code == TriggerCode.UNRESOLVED


def find_running(
    session: Session, open_runs: Sequence[OpenRun], *, now_ms: Millis, limit: int
) -> list[JobLog]:
    """Return those of the open runs that run, the longest first, with their progress, without messages."""
    running = [run for run in open_runs if is_running(run, now_ms=now_ms)]
    running.sort(key=lambda run: (run.trigger_time, run.id))
    return _find_in_order(session, running[:limit], undefer(JobLog.progress))


def find_unresolved(session: Session, open_runs: Sequence[OpenRun], *, limit: int) -> list[JobLog]:
    """Return those of the open runs that are unresolved, the newest of them, without their messages."""
    unresolved_runs = [run for run in open_runs if is_unresolved(run)]
    return _find_in_order(session, unresolved_runs[:limit])


def _find_in_order(session: Session, runs: Sequence[OpenRun], *options: ExecutableOption) -> list[JobLog]:
    if not runs:
        return []
    query = _without_messages().options(*options).where(JobLog.id.in_([run.id for run in runs]))
    rows = session.scalars(query)
    log_by_id = {log.id: log for log in rows}
    return [log_by_id[run.id] for run in runs if run.id in log_by_id]


def oldest_waiting_ms(session: Session, group_ids: GroupIds, *, now_ms: Millis) -> tuple[int, Millis | None]:
    """Return how many fires are due and have not been sent, and when the oldest was due."""
    query = select(func.count(), func.min(Fire.due_time)).where(*_is_waiting(now_ms))
    if group_ids is not None:
        query = query.join(Job, Job.id == Fire.job_id).where(*in_groups(Job.job_group, group_ids))
    count, oldest_ms = session.execute(query).one()
    return count, oldest_ms


def count_running(session: Session, group_ids: GroupIds) -> int:
    """Return how many runs of jobs of these groups have been claimed and have no result yet."""
    query = select(func.count(Fire.id)).where(Fire.state.not_in(NOT_OUT))
    if group_ids is not None:
        query = query.join(Job, Job.id == Fire.job_id).where(*in_groups(Job.job_group, group_ids))
    return session.scalar(query) or 0


def _without_messages() -> Select[tuple[JobLog]]:
    return select(JobLog).options(defer(JobLog.trigger_msg), defer(JobLog.handle_msg))
