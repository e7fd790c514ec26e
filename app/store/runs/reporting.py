"""Daily run counts, and deletion of old rows in batches."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from sqlalchemy import Select, and_, case, delete, exists, func, insert, select, update
from sqlalchemy.orm import Session

from app.clock import LATEST_MS, Millis
from app.database.engine import affected
from app.database.rows import bulk
from app.domain.rounds.kinds import RoundState
from app.models.audit import AuditEntry
from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.models.report import WHOLE_DAY, DayReport, GroupDay
from app.models.round import After, Arrival, Round
from app.models.session import LoginSession
from app.models.skip import Skip
from app.store.base.paging import ID_MAX
from app.store.completeness.removal import keep_terms
from app.store.fires import logs
from app.store.fires import queue as fires
from app.store.runs.archived_logs import mark_deleted


class Counts(NamedTuple):
    """Runs of a day. Those neither running nor successful have failed."""

    running: int
    succeeded: int
    failed: int


def count_runs(session: Session, *, from_ms: Millis, until_ms: Millis) -> dict[int, Counts]:
    """Return job group -> counts of the runs triggered from ``from_ms`` to before ``until_ms``.

    Source: XXL-JOB 2.4.1 log report.
    """
    running = and_(JobLog.trigger_code.in_([0, 200]), JobLog.handle_code == 0)
    query = select(
        JobLog.job_group,
        func.count().label("total"),
        func.sum(case((running, 1), else_=0)).label("running"),
        func.sum(case((JobLog.handle_code == 200, 1), else_=0)).label("succeeded"),
    ).where(JobLog.trigger_time >= from_ms, JobLog.trigger_time < until_ms)
    counts = {}
    for row in session.execute(query.group_by(JobLog.job_group)):
        running_count, success_count = int(row.running or 0), int(row.succeeded or 0)
        counts[row.job_group] = Counts(
            running_count, success_count, row.total - running_count - success_count
        )
    return counts


def save_report(session: Session, day_ms: Millis, counts: Mapping[int, Counts], *, now_ms: Millis) -> None:
    """Store the counts of a day, in total and by group.

    If another node inserts the day at the same time, the unique index refuses one of the two.
    """
    values = {
        "running_count": sum(count.running for count in counts.values()),
        "suc_count": sum(count.succeeded for count in counts.values()),
        "fail_count": sum(count.failed for count in counts.values()),
        "update_time": now_ms,
    }
    if not affected(session, update(DayReport).where(DayReport.trigger_day == day_ms).values(values)):
        session.execute(insert(DayReport).values(trigger_day=day_ms, **values))
    save_groups(session, day_ms, counts)


def save_groups(session: Session, day_ms: Millis, counts: Mapping[int, Counts]) -> None:
    """Store the counts of a day by group.

    Stored groups without runs are set to zero; a deleted group gets no new row.
    """
    existing = {WHOLE_DAY, *session.scalars(select(Group.id))}
    row_by_group = {
        row.job_group: row for row in session.scalars(select(GroupDay).where(GroupDay.trigger_day == day_ms))
    }
    updates, inserts = list[bulk.Row](), list[bulk.Row]()
    for group_id in sorted({WHOLE_DAY, *(existing & counts.keys()), *row_by_group}):
        count, row = counts.get(group_id, Counts(0, 0, 0)), row_by_group.get(group_id)
        values = {"running_count": count.running, "suc_count": count.succeeded, "fail_count": count.failed}
        if row is None:
            inserts.append({"trigger_day": day_ms, "job_group": group_id, **values})
        elif (row.running_count, row.suc_count, row.fail_count) != count:
            updates.append({"id": row.id, **values})
    bulk.update_many(session, GroupDay, updates)
    bulk.insert_many(session, GroupDay, inserts)


def find_uncounted_days(
    session: Session, *, from_ms: Millis = 0, to_ms: Millis = LATEST_MS, limit: int
) -> list[Millis]:
    """Return the days with runs that have not been counted by group, newest first."""
    has_runs = DayReport.running_count + DayReport.suc_count + DayReport.fail_count > 0
    days = select(DayReport.trigger_day).where(has_runs, DayReport.trigger_day.between(from_ms, to_ms))
    query = select(GroupDay.trigger_day).where(
        GroupDay.job_group == WHOLE_DAY, GroupDay.trigger_day.between(from_ms, to_ms)
    )
    counted_days = set(session.scalars(query))
    newest_first = session.scalars(days.order_by(DayReport.trigger_day.desc()))
    return [day for day in newest_first if day is not None and day not in counted_days][:limit]


def delete_of_group(session: Session, group_id: int) -> None:
    """Delete the counts of a group."""
    affected(session, delete(GroupDay).where(GroupDay.job_group == group_id))


def delete_logs_before(session: Session, *, before_ms: Millis, limit: int) -> int:
    """Delete the oldest log rows triggered before an instant, with their fires; return how many."""
    oldest = select(JobLog.id).where(JobLog.trigger_time < before_ms)
    return _delete(session, oldest.order_by(JobLog.trigger_time, JobLog.id).limit(limit))


def delete_logs_of_jobs(session: Session, job_ids: Sequence[int], *, before_ms: Millis, limit: int) -> int:
    """Delete the oldest log rows of jobs triggered before an instant; return how many.

    Runs that are in progress, wait, or have arrived in a round that waits stay.
    """
    waits = (
        select(Arrival.log_id)
        .join(Round, Round.id == Arrival.round_id)
        .join(After, and_(After.job_id == Round.job_id, After.predecessor_id == Arrival.predecessor_id))
        .where(
            After.predecessor_id.in_(job_ids),
            Round.state == RoundState.OPEN.value,
            Arrival.log_id.is_not(None),
        )
    )
    oldest = select(JobLog.id).where(
        JobLog.job_id.in_(job_ids),
        JobLog.trigger_time < before_ms,
        ~exists().where(Fire.log_id == JobLog.id),
        JobLog.id.not_in(waits),
    )
    return _delete(session, oldest.order_by(JobLog.job_id, JobLog.trigger_time).limit(limit))


def find_jobs_except(session: Session, job_ids: Collection[int]) -> list[int]:
    """Return the ids of all jobs but these; also of those that are gone and have runs.

    Another program may have deleted a job and left its runs. Their ids lie between those of the jobs: an
    index leads to each.
    """
    existing = list(session.scalars(select(Job.id).order_by(Job.id)))
    gaps = ((low, high) for low, high in pairwise([-1, *existing, ID_MAX]) if high - low > 1)
    deleted_ids = [job_id for low, high in gaps for job_id in _with_runs(session, low, high)]
    return [*(job_id for job_id in existing if job_id not in job_ids), *deleted_ids]


def _with_runs(session: Session, low: int, high: int) -> Iterator[int]:
    """Yield the job ids between two that have runs."""
    lowest = select(func.min(JobLog.job_id))
    while (job_id := session.scalar(lowest.where(JobLog.job_id > low, JobLog.job_id < high))) is not None:
        yield job_id
        low = job_id


def _delete(session: Session, query: Select[tuple[int]]) -> int:
    ids = list(session.scalars(query))
    if ids:
        logs.lock_traced(session, ids)  # Results lock them before their fires, too.
        fires.delete_of_logs(session, ids)
        keep_terms(session, ids)
        affected(session, delete(JobLog).where(JobLog.id.in_(ids)))
        mark_deleted(session, ids)
    return len(ids)


def delete_expired_sessions(session: Session, *, now_ms: Millis) -> int:
    """Delete expired logins."""
    return affected(session, delete(LoginSession).where(LoginSession.expires_ms < now_ms))


def delete_traces_before(session: Session, *, before_ms: Millis, limit: int) -> int:
    """Delete the oldest skips and audit rows recorded before an instant, up to ``limit`` of each.

    Return the larger of the two numbers.
    """
    skips = select(Skip.id).where(Skip.recorded_ms < before_ms).order_by(Skip.id).limit(limit)
    entries = select(AuditEntry.id).where(AuditEntry.at_ms < before_ms).order_by(AuditEntry.id).limit(limit)
    skip_ids, entry_ids = list(session.scalars(skips)), list(session.scalars(entries))
    affected(session, delete(Skip).where(Skip.id.in_(skip_ids)))
    affected(session, delete(AuditEntry).where(AuditEntry.id.in_(entry_ids)))
    return max(len(skip_ids), len(entry_ids))
