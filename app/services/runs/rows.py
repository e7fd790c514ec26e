"""Rows of the lists, with data of other tables: last runs, online executors, rights of the user."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor, Right
from app.domain.lists.job_search import CodeState
from app.domain.runs.outcome import outcome_of
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.services.alarms.muted_alarms import find_mutes
from app.services.code.ownership import code_states
from app.services.runs import reasons
from app.store.executors import groups as group_store
from app.store.jobs import favourites
from app.store.jobs import scheduling as job_store
from app.store.jobs import tags as job_tags
from app.store.jobs.listing import ListedJob
from app.store.pickers import overview
from app.store.runs import recent as recent_runs
from app.store.runs.recent import Run

#: most runs in a strip, bars in all strips of a page, and least runs in a strip
STRIP_MAX, BARS_MAX, STRIP_MIN = 20, 800, 8


@dataclass(frozen=True, slots=True)
class JobRow:
    """Row of the job list."""

    job: Job | ListedJob
    group: Group | None
    #: the newest runs, newest first
    runs: list[Run]
    #: why the newest run failed or waits, in English; empty: it succeeded, is running or there is none
    reason: str
    #: number of runs that were sent and have no result
    out: int
    #: number of fires that are due and not sent
    waiting: int
    tags: tuple[str, ...]
    #: whether the job is a favourite of the user
    is_starred: bool
    #: end of the mute of the job or its group; None: not muted
    muted_until_ms: Millis | None
    may_operate: bool
    may_edit: bool
    may_glue: bool
    #: None: no code manages it
    code: CodeState | None = None
    #: the job may have older runs than ``runs``
    has_older: bool = False

    @property
    def last(self) -> Run | None:
        """The newest run, or None."""
        return self.runs[0] if self.runs else None

    @property
    def addresses(self) -> int:
        """Number of addresses of the job's group."""
        return len(self.group.addresses) if self.group is not None else 0

    @property
    def may_kill(self) -> bool:
        """Whether there is a run to kill, and the user may."""
        last = self.last
        runs = last is not None and outcome_of(last.trigger_code, last.handle_code, last.killed) == "running"
        return self.may_operate and (self.out > 0 or runs)


@dataclass(frozen=True, slots=True)
class LogRow:
    """Row of the run list; ``job`` None: it was deleted, or is not visible to the user."""

    log: JobLog
    job: Job | None
    group: Group | None
    may_operate: bool
    #: why the run failed or waits, in English; empty: it succeeded or is running
    reason: str


def job_rows(
    session: Session, jobs: Sequence[Job | ListedJob], *, actor: Actor, now_ms: Millis
) -> list[JobRow]:
    """Return the rows of these jobs; the number of queries does not depend on theirs."""
    ids = [job.id for job in jobs]
    strip = _strip_length(len(ids))
    groups = group_store.find_groups(session, {job.job_group for job in jobs})
    group_ids = actor.group_ids(Right.VIEW)
    all_runs = recent_runs.find_newest_of_jobs(session, ids, limit=strip, group_ids=None)
    runs = {job_id: _in_groups(newest, group_ids) for job_id, newest in all_runs.items()}
    why = reasons.find_reasons(session, [newest[0] for newest in runs.values() if newest])
    out, waiting = overview.count_fires(session, ids, now_ms=now_ms)
    tags, stars = job_tags.find_tags(session, ids), favourites.find_favourites(session, actor.user_id, ids)
    mutes = find_mutes(session, jobs, now_ms=now_ms)
    code = code_states(session, ids)
    return [
        JobRow(
            job=job,
            group=groups.get(job.job_group),
            runs=(newest := runs.get(job.id, [])),
            reason=why.get(newest[0].id, "") if newest else "",
            out=out.get(job.id, 0),
            waiting=waiting.get(job.id, 0),
            tags=tags.get(job.id, ()),
            is_starred=job.id in stars,
            muted_until_ms=mutes[job.id].until_ms if job.id in mutes else None,
            may_operate=actor.may(job.job_group, Right.OPERATE),
            may_edit=actor.may(job.job_group, Right.EDIT),
            may_glue=actor.may(job.job_group, Right.GLUE),
            code=code.get(job.id),
            has_older=len(all_runs.get(job.id, ())) == strip,
        )
        for job in jobs
    ]


def _in_groups(runs: list[Run], group_ids: Collection[int] | None) -> list[Run]:
    return runs if group_ids is None else [run for run in runs if run.job_group in group_ids]


def _strip_length(jobs: int) -> int:
    """Return the length of each strip in a list of ``jobs`` jobs: a longer list has shorter strips."""
    return min(STRIP_MAX, max(STRIP_MIN, BARS_MAX // max(1, jobs)))


def log_rows(session: Session, logs: Sequence[JobLog], *, actor: Actor) -> list[LogRow]:
    """Return the rows of these runs."""
    jobs = visible_jobs(session, {log.job_id for log in logs}, actor)
    groups = group_store.find_groups(session, {log.job_group for log in logs})
    why = reasons.find_reasons(session, logs)
    return [
        LogRow(
            log,
            jobs.get(log.job_id),
            groups.get(log.job_group),
            may_operate=actor.may(log.job_group, Right.OPERATE),
            reason=why.get(log.id, ""),
        )
        for log in logs
    ]


def visible_jobs(session: Session, job_ids: Collection[int], actor: Actor) -> dict[int, Job]:
    """Return those of the jobs the actor may see.

    A run stays in its group when its job is moved, so the actor may see a run and not its job.
    """
    jobs = job_store.find_jobs(session, job_ids)
    return {job_id: job for job_id, job in jobs.items() if actor.may(job.job_group, Right.VIEW)}
