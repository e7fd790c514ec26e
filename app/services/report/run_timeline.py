"""Run timeline data: the runs of the last hours by job, bounded and limited to the groups a user may view."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor, Right
from app.domain.runs.timeline import Activity, fair_share, rank_jobs
from app.models.skip import Skip
from app.services.answer_cache import LATELY_MS, AnswerCache
from app.store.jobs import scheduling as job_store
from app.store.jobs import skips
from app.store.jobs.scheduling import JobName
from app.store.pickers import overview
from app.store.pickers.overview import LateFires, OpenRun
from app.store.runs import recent as recent_runs
from app.store.runs.recent import Run

#: most rows, and most bars in all rows together
JOBS_MAX, RUNS_MAX = 30, 2_000
#: limits of runs, failed runs, skips and waiting jobs that are read to choose the rows
LOOKED_AT, FAILED_LOOKED_AT, SKIPS_LOOKED_AT, WAITING_LOOKED_AT = 2_000, 1_000, 1_000, 100
#: intended skips: shown, but not a problem
INTENDED = frozenset(
    {"stopped", "edited", "restored", "lost", "limit", "withdrawn", "predecessor", "calendar", "blackout"}
)


@dataclass(frozen=True, slots=True)
class WaitingFires:
    """Waiting fires of one job that have no run yet, or an earlier one: those are not among its runs."""

    count: int
    oldest_ms: Millis


@dataclass(frozen=True, slots=True)
class JobRuns:
    """Row: runs by trigger time, skips by their first instant, and waiting fires."""

    job: JobName
    runs: list[Run]
    skips: list[Skip]
    waiting: WaitingFires | None
    #: number of runs, including those not shown
    total: int


@dataclass(frozen=True, slots=True)
class RunTimeline:
    """Rows, those with most problems first, and what they omit."""

    from_ms: Millis
    to_ms: Millis
    rows: list[JobRuns]
    #: whether more jobs ran than there are rows
    jobs_cut: bool
    #: whether there were more runs than were read: jobs that ran rarely may be missing
    looked_cut: bool
    #: maximum runs shown per job; None if all are shown
    runs_cut: int | None


#: by length of the period, of which the dashboard has three
_timelines = defaultdict[Millis, AnswerCache[RunTimeline]](lambda: AnswerCache(LATELY_MS))


def run_timeline(
    session: Session, actor: Actor, open_runs: Sequence[OpenRun], *, within_ms: Millis, now_ms: Millis
) -> RunTimeline:
    """Return the runs, skips and waiting fires of the last ``within_ms``, found up to LATELY_MS ago.

    ``open_runs`` are those that the actor may view.
    """
    return _timelines[within_ms].get(
        actor.group_ids(Right.VIEW),
        lambda: _find(session, actor, open_runs, within_ms=within_ms, now_ms=now_ms),
    )


def _find(
    session: Session, actor: Actor, open_runs: Sequence[OpenRun], *, within_ms: Millis, now_ms: Millis
) -> RunTimeline:
    group_ids, since_ms = actor.group_ids(Right.VIEW), (now_ms - within_ms) // 1000 * 1000
    recent = recent_runs.count_by_job(session, group_ids, since_ms=since_ms, limit=LOOKED_AT)
    failed = recent_runs.count_failed(session, group_ids, since_ms=since_ms, limit=FAILED_LOOKED_AT)
    skip_rows = skips.find_recent(session, group_ids, since_ms=since_ms, limit=SKIPS_LOOKED_AT)
    long = recent_runs.find_still_running(session, open_runs, before_ms=since_ms, now_ms=now_ms)
    late = overview.find_waiting_jobs(
        session, group_ids, since_ms=since_ms, now_ms=now_ms, limit=WAITING_LOOKED_AT
    )
    counts = recent.counts + Counter(run.job_id for run in long)
    troubles = _count_troubles(failed, skip_rows, late)
    active = [
        Activity(job_id, max(counts.get(job_id, 0), failed.get(job_id, 0)), troubles.get(job_id, 0))
        for job_id in {**counts, **troubles}
    ]
    jobs = _jobs(session, actor, rank_jobs(active, limit=2 * JOBS_MAX))
    job_ids = list(jobs)
    totals = recent_runs.count_of_jobs(session, job_ids, since_ms=since_ms)
    share = fair_share(totals.values(), total=RUNS_MAX)
    runs = _runs(session, actor, job_ids, share=share, since_ms=since_ms, long=long)
    skips_by_job = defaultdict(list)
    for skip in skip_rows:
        skips_by_job[skip.job_id].append(skip)
    return RunTimeline(
        from_ms=since_ms,
        to_ms=now_ms,
        rows=[
            JobRuns(
                job,
                runs[job.id],
                skips_by_job[job.id],
                _waiting_fires(late.get(job.id)),
                len(runs[job.id]) + max(0, totals.get(job.id, 0) - share),
            )
            for job in jobs.values()
        ],
        jobs_cut=len(job_ids) == JOBS_MAX < len(active),
        looked_cut=recent.is_cut,
        runs_cut=share if any(total > share for total in totals.values()) else None,
    )


def _count_troubles(
    failed: Counter[int], skip_rows: Sequence[Skip], late: Mapping[int, LateFires]
) -> Counter[int]:
    """Return the number of problems of each job: failed runs, unintended skips and waiting fires."""
    troubles = Counter(failed)
    for skip in skip_rows:
        troubles[skip.job_id] += 0 if skip.reason in INTENDED else skip.skipped
    troubles.update({job_id: fires.total for job_id, fires in late.items()})
    return troubles


def _waiting_fires(fires: LateFires | None) -> WaitingFires | None:
    if fires is None or fires.oldest_ms is None:
        return None
    return WaitingFires(fires.without_run, fires.oldest_ms)


def _jobs(session: Session, actor: Actor, job_ids: list[int]) -> dict[int, JobName]:
    """Return the first JOBS_MAX jobs in order, except deleted ones and those hidden from the actor."""
    names = job_store.find_names(session, job_ids)
    visible = [
        names[job_id]
        for job_id in job_ids
        if job_id in names and actor.may(names[job_id].job_group, Right.VIEW)
    ]
    return {job.id: job for job in visible[:JOBS_MAX]}


def _runs(
    session: Session, actor: Actor, job_ids: list[int], *, share: int, since_ms: Millis, long: list[Run]
) -> dict[int, list[Run]]:
    """Return the runs of each job, oldest first, including earlier ones that reach into the period."""
    group_ids = actor.group_ids(Right.VIEW)
    newest = (
        recent_runs.find_newest_of_jobs(session, job_ids, group_ids=group_ids, limit=share, since_ms=since_ms)
        if share
        else {}
    )
    before = recent_runs.find_newest_of_jobs(
        session, job_ids, group_ids=group_ids, limit=1, before_ms=since_ms
    )
    reaching = {run.id: run for runs in before.values() for run in runs if (run.handle_time or 0) > since_ms}
    reaching.update({run.id: run for run in long})
    runs: dict[int, list[Run]] = {job_id: newest.get(job_id, [])[::-1] for job_id in job_ids}
    for run in sorted(reaching.values(), key=lambda run: (run.trigger_time, run.id), reverse=True):
        if run.job_id in runs:
            runs[run.job_id].insert(0, run)
    return runs
