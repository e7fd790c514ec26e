"""Built-in views of the job list: how many jobs each has, and which are the failing and the drifted ones."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, Right
from app.domain.jobs.failing import Failing
from app.domain.lists.job_search import CodeState, LastRun
from app.services.answer_cache import LATELY_MS, AnswerCache
from app.services.code.ownership import SEARCHED_MAX, drifted_ids, newest_states
from app.services.report.failing import find_failing, find_failing_lately, of_newest
from app.services.runs.rows import JobRow
from app.store.jobs import listing as job_lists
from app.store.jobs import states
from app.store.jobs.filtering import JobFilter
from app.store.jobs.states import ViewCounts
from app.store.runs.recent import Run

_running = AnswerCache[frozenset[int]](LATELY_MS)


@dataclass(frozen=True, slots=True)
class Views:
    """Numbers of jobs of the built-in views."""

    counts: ViewCounts
    failing: int
    #: code manages jobs, and there may be more that differ from it
    has_code: bool
    is_drift_cut: bool


def count_views(session: Session, job_filter: JobFilter, *, actor: Actor) -> Views:
    """Return how many of the jobs that the actor may see each view has.

    ``job_filter``: the filter of the list beside them, whose failing jobs are not searched for again.
    """
    group_ids, code = actor.group_ids(Right.VIEW), newest_states(session)
    failing = (
        job_filter.failing_ids if _needs_failing(job_filter) else find_failing_lately(session, group_ids)
    )
    counts = states.count_views(
        session,
        group_ids,
        username=actor.username,
        user_id=actor.user_id,
        running=_running.get(group_ids, lambda: states.find_running(session, group_ids)),
        drift_ids=drifted_ids(code),
    )
    return Views(counts, len(failing), has_code=bool(code), is_drift_cut=len(code) == SEARCHED_MAX)


def with_states(session: Session, job_filter: JobFilter, *, actor: Actor, is_exact: bool) -> JobFilter:
    """Return a filter with the ids of the jobs that are failing, or differ from their code, if it needs them.

    ``is_exact``: the jobs may be changed, so they have to be the failing ones of now.
    """
    group_ids = actor.group_ids(Right.VIEW)
    if job_filter.code == CodeState.DRIFTED:
        job_filter = replace(job_filter, job_ids=drifted_ids(newest_states(session)))
    if _needs_failing(job_filter):
        find = find_failing if is_exact else find_failing_lately
        job_filter = replace(job_filter, failing_ids=tuple(find(session, group_ids)))
    return job_filter


def failing_of_rows(session: Session, rows: Sequence[JobRow], *, actor: Actor) -> dict[int, Failing[Run]]:
    """Return job id -> its failures since its last success, for the failing jobs of a list."""
    has_older = {row.job.id for row in rows if row.has_older}
    runs_by_job = {row.job.id: row.runs for row in rows}
    return of_newest(session, runs_by_job, has_older, group_ids=actor.group_ids(Right.VIEW))


def _needs_failing(job_filter: JobFilter) -> bool:
    return job_filter.last == LastRun.FAILING or job_lists.is_failing_first(job_filter)


def count_of_groups(
    session: Session, job_filter: JobFilter, group_ids: Collection[int], *, actor: Actor
) -> dict[int, int]:
    """Return how many of the jobs that match the filter each of these groups has."""
    visible = actor.group_ids(Right.VIEW)
    return job_lists.count_of_groups(session, job_filter, group_ids=visible, among_ids=group_ids)
