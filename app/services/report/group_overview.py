"""Overview of an executor group: its instances, its last failures, and its jobs, failing ones first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor
from app.domain.executors.run_hours import Hour, run_hours
from app.models.group import Group
from app.services.executors.instance_records import PERIOD_MS, InstanceRecord, find_records
from app.services.executors.instances import Instances
from app.services.executors.last_checks import LastCheck, last_checks
from app.services.runs import logs
from app.services.runs.rows import JobRow, LogRow, job_rows, log_rows
from app.settings.config import Network
from app.store.executors import address_runs
from app.store.executors.address_runs import READ_MAX
from app.store.jobs import listing as job_lists
from app.store.jobs import scheduling as job_store
from app.store.jobs.filtering import JobFilter
from app.store.runs.listing import LogFilter, LogStatus, find_without_messages

#: failures and jobs that are listed
FAILURES_MAX, JOBS_MAX = 6, 12


@dataclass(frozen=True, slots=True)
class GroupOverview:
    """What the page of a group shows besides its settings."""

    records: Sequence[InstanceRecord]
    #: bare address of an instance -> its runs in each of the last hours
    hours: Mapping[str, list[Hour]]
    #: None: not checked
    check: LastCheck | None
    #: id of a run -> the run, for the last failures of the instances
    failed_runs: Mapping[int, LogRow]
    #: the last failed runs of the period, newest first
    failures: Sequence[LogRow]
    #: some of the jobs, those that failed last first
    jobs: Sequence[JobRow]
    job_count: int

    @property
    def is_cut(self) -> bool:
        """Whether only the newest runs of the period were counted."""
        return sum(record.evidence.runs for record in self.records) >= READ_MAX


def read_overview(
    session: Session,
    group: Group,
    instances: Instances,
    *,
    networks: tuple[Network, ...],
    actor: Actor,
    now_ms: Millis,
) -> GroupOverview:
    """Read the overview of a group; the number of statements depends on neither instances nor runs."""
    checks = last_checks(session, [group])
    records = find_records(session, [group], {group.id: instances}, checks, networks=networks, now_ms=now_ms)[
        group.id
    ]
    criteria = LogFilter(group_id=group.id, status=LogStatus.FAILED, from_ms=now_ms - PERIOD_MS)
    failed_logs, _after = logs.list_from(session, criteria, actor=actor, limit=FAILURES_MAX)
    read_ids = {log.id for log in failed_logs}
    last_ids = {record.failed_id for record in records if record.failed_id is not None}
    others = find_without_messages(session, sorted(last_ids - read_ids))
    rows = {row.log.id: row for row in log_rows(session, [*failed_logs, *others], actor=actor)}
    failures = [rows[log.id] for log in failed_logs]
    newest = address_runs.list_newest(session, group.id, since_ms=now_ms - PERIOD_MS)
    return GroupOverview(
        records,
        run_hours(newest, now_ms=now_ms),
        checks.get(group.id),
        rows,
        failures,
        _jobs(session, group.id, [log.job_id for log in failed_logs], actor=actor, now_ms=now_ms),
        job_lists.count_of_group(session, group.id),
    )


def _jobs(
    session: Session, group_id: int, failed_ids: Sequence[int], *, actor: Actor, now_ms: Millis
) -> list[JobRow]:
    """Return rows of jobs of the group: those that failed last, then the newest."""
    failed = job_store.find_jobs(session, set(failed_ids))
    newest = job_lists.list_before(
        session, JobFilter(group_id=group_id), group_ids=None, before_id=0, limit=JOBS_MAX
    )
    job_by_id = {job_id: failed[job_id] for job_id in failed_ids if job_id in failed}
    job_by_id = {job_id: job for job_id, job in job_by_id.items() if job.job_group == group_id}
    job_by_id |= {job.id: job for job in newest if job.id not in job_by_id}
    return job_rows(session, list(job_by_id.values())[:JOBS_MAX], actor=actor, now_ms=now_ms)
