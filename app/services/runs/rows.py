"""What the lists show beside a row's own columns: last runs, online executors, what the reader may do."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.permissions import Actor, Right
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.services.alarms.muted_alarms import find_mutes
from app.store import drains, favourites, job_tags, last_seen, overview, recent_runs
from app.store import groups as group_store
from app.store import jobs as job_store
from app.store.recent_runs import Run

#: runs of the strip of one job, bars of all strips of a page, runs of a strip that is one of many
STRIP_MAX, BARS_MAX, STRIP_MIN = 30, 1_000, 10


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job of a list."""

    job: Job
    group: Group | None
    #: the newest runs, newest first
    runs: list[Run]
    #: runs sent without a result
    out: int
    #: fires due and not sent
    waiting: int
    tags: tuple[str, ...]
    #: whether the reader has starred it
    starred: bool
    #: until when its alarms are muted, by itself or with its group; None: they are told
    muted_until_ms: Millis | None
    may_operate: bool
    may_edit: bool
    may_glue: bool

    @property
    def last(self) -> Run | None:
        """The newest run, None where there was none."""
        return self.runs[0] if self.runs else None

    @property
    def addresses(self) -> int:
        """How many executors of the job's group are online."""
        return len(self.group.addresses) if self.group is not None else 0


@dataclass(frozen=True, slots=True)
class LogRow:
    """A run of a list; ``job`` None: it was deleted, or moved to where the reader may not see it."""

    log: JobLog
    job: Job | None
    group: Group | None
    may_operate: bool


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group of a list."""

    group: Group
    #: the last heartbeat of any of its executors, also of those that are forgotten; None: nobody remembers one
    last_seen_ms: Millis | None
    #: how many addresses get no new runs
    drained: int


def job_rows(session: Session, jobs: Sequence[Job], *, actor: Actor, now_ms: Millis) -> list[JobRow]:
    """Return the rows of these jobs, with seven queries however many they are."""
    ids = [job.id for job in jobs]
    groups = group_store.find_groups(session, {job.job_group for job in jobs})
    runs = recent_runs.find_newest_of_jobs(
        session, ids, limit=_strip_length(len(ids)), group_ids=actor.group_ids(Right.VIEW)
    )
    out = overview.count_out(session, ids)
    waiting = overview.count_waiting(session, ids, now_ms=now_ms)
    tags, starred = job_tags.find_tags(session, ids), favourites.find_favourites(session, actor.user_id, ids)
    mutes = find_mutes(session, jobs, now_ms=now_ms)
    return [
        JobRow(
            job=job,
            group=groups.get(job.job_group),
            runs=runs.get(job.id, []),
            out=out.get(job.id, 0),
            waiting=waiting.get(job.id, 0),
            tags=tags.get(job.id, ()),
            starred=job.id in starred,
            muted_until_ms=mutes[job.id].until_ms if job.id in mutes else None,
            may_operate=actor.may(job.job_group, Right.OPERATE),
            may_edit=actor.may(job.job_group, Right.EDIT),
            may_glue=actor.may(job.job_group, Right.GLUE),
        )
        for job in jobs
    ]


def _strip_length(jobs: int) -> int:
    """Return how many runs of each job a list of so many shows: a longer list has shorter strips."""
    return min(STRIP_MAX, max(STRIP_MIN, BARS_MAX // max(1, jobs)))


def log_rows(session: Session, logs: Sequence[JobLog], *, actor: Actor) -> list[LogRow]:
    """Return the rows of these runs."""
    jobs = visible_jobs(session, {log.job_id for log in logs}, actor)
    groups = group_store.find_groups(session, {log.job_group for log in logs})
    return [
        LogRow(
            log,
            jobs.get(log.job_id),
            groups.get(log.job_group),
            may_operate=actor.may(log.job_group, Right.OPERATE),
        )
        for log in logs
    ]


def visible_jobs(session: Session, job_ids: Collection[int], actor: Actor) -> dict[int, Job]:
    """Return those of the jobs the actor may see: a run stays in its group when its job is moved, and tells no more of the job."""
    found = job_store.find_jobs(session, job_ids)
    return {job_id: job for job_id, job in found.items() if actor.may(job.job_group, Right.VIEW)}


def group_rows(session: Session, groups: Sequence[Group]) -> list[GroupRow]:
    """Return the rows of these groups."""
    last = last_seen.find_last(session, {group.app_name for group in groups})
    drained = drains.find_drained(session, {group.id for group in groups})
    return [GroupRow(group, last.get(group.app_name), len(drained.get(group.id, ()))) for group in groups]
