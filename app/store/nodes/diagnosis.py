"""Statements of the doctor that nothing else needs; none reads a sealed column."""

from typing import NamedTuple

from sqlalchemy import and_, exists, func, or_, select, text
from sqlalchemy.orm import Session, aliased

from app.clock import Millis
from app.database.dialects.choice import dialect_of
from app.domain.enums import (
    AlarmReason,
    AlarmState,
    FireState,
    MisfireStrategy,
    Role,
    ScheduleType,
    TriggerStatus,
)
from app.models.alarm import Alarm
from app.models.channel import AlarmChannel, ChannelScope
from app.models.code import JobVersion
from app.models.fire import Fire
from app.models.group import Group, split_addresses
from app.models.job import Job
from app.models.round import After
from app.models.user import User

#: jobs examined for alarms that reach no one
JOBS_MAX = 100_000


class GroupRow(NamedTuple):
    """Executor group without its secrets."""

    id: int
    app_name: str
    address_type: int
    addresses: tuple[str, ...]
    alarm_urls: str


class JobRow(NamedTuple):
    """Job whose schedule is on."""

    id: int
    job_group: int
    alarm_email: str


class CronRow(NamedTuple):
    """Job with a cron."""

    id: int
    schedule_conf: str


class ChannelRow(NamedTuple):
    """What an alarm channel is for."""

    kind: str
    for_all: int
    group_id: int
    job_id: int


def server_version(session: Session) -> str:
    """Return the version of the database as it calls itself: ``3.40.1``, ``10.11.6-MariaDB-…``."""
    return str(session.scalar(text(dialect_of(session).version_statement)))


def connections_max(session: Session) -> int | None:
    """Return how many connections the server accepts; None for SQLite."""
    statement = dialect_of(session).connections_max_statement
    return None if statement is None else int(session.scalar(text(statement)) or 0)


def find_groups(session: Session) -> list[GroupRow]:
    """Return all executor groups by AppName."""
    columns = (Group.id, Group.app_name, Group.address_type, Group.address_list, Group.alarm_urls)
    return [
        GroupRow(
            row.id,
            row.app_name,
            row.address_type,
            tuple(split_addresses(row.address_list)),
            row.alarm_urls or "",
        )
        for row in session.execute(select(*columns).order_by(Group.app_name, Group.id))
    ]


def find_enabled_jobs(session: Session) -> list[JobRow]:
    """Return the jobs whose schedule is on, JOBS_MAX at most."""
    query = select(Job.id, Job.job_group, Job.alarm_email).where(Job.trigger_status == TriggerStatus.RUNNING)
    rows = session.execute(query.order_by(Job.id).limit(JOBS_MAX))
    return [JobRow(row.id, row.job_group, row.alarm_email or "") for row in rows]


def find_unversioned_lists(session: Session) -> list[CronRow]:
    """Return the jobs whose schedule is on, whose cron has a list, and that no one has saved here."""
    query = select(Job.id, Job.schedule_conf).where(
        Job.trigger_status == TriggerStatus.RUNNING,
        Job.schedule_type == ScheduleType.CRON,
        Job.schedule_conf.contains(","),
        ~exists().where(JobVersion.job_id == Job.id),
    )
    rows = session.execute(query.order_by(Job.id).limit(JOBS_MAX))
    return [CronRow(row.id, row.schedule_conf) for row in rows]


def find_filling_jobs(session: Session) -> list[int]:
    """Return the ids of the jobs whose parameter is filled in."""
    query = select(Job.id).where(Job.fill_parameter == 1).order_by(Job.id).limit(JOBS_MAX)
    return list(session.scalars(query))


def find_running_all(session: Session) -> list[int]:
    """Return the ids of the jobs that run all they have missed."""
    query = select(Job.id).where(Job.misfire_strategy == MisfireStrategy.RUN_ALL).order_by(Job.id)
    return list(session.scalars(query.limit(JOBS_MAX)))


def find_limited(session: Session) -> list[str]:
    """Return the jobs and groups that have a limit: ``job 7``, ``executor group 1``."""
    is_limited = or_(Job.max_running > 0, Job.limits.is_not(None))
    jobs = session.scalars(select(Job.id).where(is_limited).order_by(Job.id).limit(JOBS_MAX))
    groups = session.scalars(select(Group.id).where(Group.max_running > 0).order_by(Group.id).limit(JOBS_MAX))
    return [*(f"job {job_id}" for job_id in jobs), *(f"executor group {group_id}" for group_id in groups)]


def find_following(session: Session) -> list[int]:
    """Return the ids of the jobs that run after others."""
    query = select(Job.id).where(Job.runs_after.is_not(None)).order_by(Job.id)
    return list(session.scalars(query.limit(JOBS_MAX)))


def find_with_calendar(session: Session) -> list[int]:
    """Return the ids of the jobs that have a calendar."""
    query = select(Job.id).where(Job.calendar.is_not(None)).order_by(Job.id)
    return list(session.scalars(query.limit(JOBS_MAX)))


class DeadEdge(NamedTuple):
    """A job, and a predecessor that never runs by itself."""

    job_id: int
    predecessor_id: int
    #: False: it has a schedule that is off
    is_gone: bool


def find_dead_edges(session: Session) -> list[DeadEdge]:
    """Return the predecessors that are gone, or have a schedule that is off and follow no other job."""
    job, before = aliased(Job), aliased(Job)
    follows = exists().where(After.job_id == before.id)
    is_silent = and_(
        before.schedule_type != ScheduleType.NONE,
        before.trigger_status == TriggerStatus.STOPPED,
        ~follows.correlate(before),
    )
    query = (
        select(After.job_id, After.predecessor_id, before.id)
        .join(job, job.id == After.job_id)
        .outerjoin(before, before.id == After.predecessor_id)
        .where(or_(before.id.is_(None), is_silent))
        .order_by(After.job_id, After.predecessor_id)
        .limit(JOBS_MAX)
    )
    return [DeadEdge(row[0], row[1], row[2] is None) for row in session.execute(query)]


def find_waiting_jobs(session: Session, *, due_before_ms: Millis) -> list[int]:
    """Return the jobs of the runs that were due before and wait for a limit."""
    query = select(Fire.job_id).where(Fire.state == FireState.WAITING, Fire.due_time < due_before_ms)
    return list(session.scalars(query.distinct().order_by(Fire.job_id).limit(JOBS_MAX)))


def find_channels(session: Session) -> list[ChannelRow]:
    """Return the alarm channels, one row for each group and job they are for."""
    query = select(
        AlarmChannel.kind,
        AlarmChannel.for_all,
        func.coalesce(ChannelScope.group_id, 0),
        func.coalesce(ChannelScope.job_id, 0),
    ).outerjoin(ChannelScope, ChannelScope.channel_id == AlarmChannel.id)
    return [ChannelRow(*row) for row in session.execute(query)]


def find_channel_names(session: Session) -> set[str]:
    """Return the names of the alarm channels."""
    return set(session.scalars(select(AlarmChannel.name)))


def find_escalations(session: Session) -> list[tuple[str, str]]:
    """Return the groups and jobs with an escalation, as a finding names them, and its stored text."""
    groups = select(Group.app_name, Group.escalation).where(Group.escalation.is_not(None))
    jobs = select(Job.id, Job.escalation).where(Job.escalation.is_not(None))
    return [
        *((f"group {name}", text or "") for name, text in session.execute(groups.order_by(Group.id))),
        *((f"job {id_}", text or "") for id_, text in session.execute(jobs.order_by(Job.id).limit(JOBS_MAX))),
    ]


def count_alarms(session: Session, *states: AlarmState, from_ms: Millis, to_ms: Millis) -> int:
    """Return how many alarms in one of the states are of that time, ``to_ms`` excluded; no recoveries."""
    query = select(func.count()).select_from(Alarm)
    query = query.where(Alarm.state.in_(states), Alarm.reason != AlarmReason.RECOVERED)
    return session.scalar(query.where(Alarm.created_ms >= from_ms, Alarm.created_ms < to_ms)) or 0


def find_admins(session: Session, *, limit: int) -> list[tuple[str, str, int]]:
    """Return name, stored password and its mark (``WeakPassword``) of the first enabled administrators."""
    query = select(User.username, User.password, User.weak_password).where(
        User.role == Role.ADMIN, User.disabled == 0
    )
    return [(*row,) for row in session.execute(query.order_by(User.id).limit(limit))]
