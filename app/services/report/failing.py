"""Failing jobs: which are failing, since when, how often in a row, and when they last succeeded.

The rule is in ``app.domain.jobs.failing``. Who needs what:

- which jobs are failing, and their last failures, for filters and lists: ``find_failing``. Its keys are the
  ids of the failing jobs, the one that failed last first; a filter is ``Job.id.in_(list(failing))``. For
  a page that is refreshed every few seconds: ``find_failing_lately``.
- how many there are, for the menu of every page: ``known_number``, else the length of the latter.
- since when and how often in a row: ``of_jobs`` for the jobs of a page of a list, whose dict lacks those that
  are not failing, ``of_newest`` if their newest runs were read already, and ``of_job`` for one.
"""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy.orm import Session

from app.clock import Millis, monotonic_ms
from app.domain.jobs.failing import Failing, failing_of, outcome
from app.services.answer_cache import LATELY_MS, AnswerCache
from app.store.pickers.overview import GroupIds
from app.store.runs import failing as failing_runs
from app.store.runs import recent as recent_runs
from app.store.runs.recent import Run

#: newest runs of a job in which its last success is looked for, in a list
LOOKED_AT = 101
#: the same on the page of a job: more only if the first are all failures
LOOKED_AT_OF_ONE = (11, 501)
#: most runs read for all rows of a list: of more than 25 jobs that fail often, fewer each
READ_MAX = 2_525
#: how long the failing jobs of how many sets of groups are known in a process, if each job was looked up
KNOWN_MS: Millis = 60_000
KNOWN_MAX = 100
#: more failing jobs are not looked up again for a while
AGAIN_MAX, AGAIN_MS = 2_000, 10_000
#: how long their number is known for the menu of every page
NUMBER_KNOWN_MS: Millis = 30_000
#: groups (None: all) -> the number of failing jobs, and until when it is known
_numbers: dict[frozenset[int] | None, tuple[int, Millis]] = {}
#: groups (None: all) -> the failing jobs, and until when they are known
_last_failures: dict[frozenset[int] | None, tuple[dict[int, Run], Millis]] = {}
_lately = AnswerCache[dict[int, Run]](LATELY_MS)


def find_failing(session: Session, group_ids: GroupIds) -> dict[int, Run]:
    """Return job id -> last failure of the failing jobs of these groups (None: of all), newest first."""
    return {run.job_id: run for run in failing_runs.find_last_failures(session, group_ids).runs}


def find_failing_lately(session: Session, group_ids: GroupIds) -> dict[int, Run]:
    """Return what ``find_failing`` does, up to LATELY_MS ago; faster where it has to look up each job.

    For up to KNOWN_MS this process then looks up only the jobs that were failing, and those of the newest
    failed runs. A job is missing meanwhile if its last run fails that was triggered before all of these, and
    with more than AGAIN_MAX failing jobs the result is up to AGAIN_MS old. So it is for what a page shows,
    not to choose jobs for a change. The caller must not modify the result.
    """
    return _lately.get(group_ids, lambda: _find_lately(session, group_ids))


def _find_lately(session: Session, group_ids: GroupIds) -> dict[int, Run]:
    groups, at_ms = None if group_ids is None else frozenset(group_ids), monotonic_ms()
    failures, until_ms = _last_failures.get(groups, ({}, at_ms))
    is_known = at_ms < until_ms
    if is_known and len(failures) > AGAIN_MAX:
        _keep_number(groups, len(failures), at_ms)
        return failures
    last = failing_runs.find_last_failures(session, group_ids, known_ids=failures if is_known else None)
    failing = {run.job_id: run for run in last.runs}
    if last.is_of_each_job:
        until_ms = at_ms + (AGAIN_MS if len(failing) > AGAIN_MAX else KNOWN_MS)
        if len(_last_failures) >= KNOWN_MAX:
            _last_failures.clear()
    if last.is_of_each_job or is_known:
        _last_failures[groups] = failing, until_ms
    _keep_number(groups, len(failing), at_ms)
    return failing


def _keep_number(groups: frozenset[int] | None, number: int, at_ms: Millis) -> None:
    if len(_numbers) >= KNOWN_MAX:
        _numbers.clear()
    _numbers[groups] = number, at_ms + NUMBER_KNOWN_MS


def known_number(group_ids: GroupIds) -> int | None:
    """Return how many jobs of these groups were failing less than NUMBER_KNOWN_MS ago; None: not known."""
    number, until_ms = _numbers.get(None if group_ids is None else frozenset(group_ids), (0, 0))
    return number if monotonic_ms() < until_ms else None


def of_jobs(
    session: Session, job_ids: Collection[int], *, group_ids: GroupIds, looked_at: int = LOOKED_AT
) -> dict[int, Failing[Run]]:
    """Return job id -> its failures since its last success, for those of the jobs that are failing.

    Only the newest ``looked_at`` runs of each are read; those in other groups do not count.
    """
    runs_by_job = recent_runs.find_newest_of_jobs(session, job_ids, group_ids=None, limit=looked_at)
    failing_by_job = {}
    for job_id, runs in runs_by_job.items():
        visible = [run for run in runs if group_ids is None or run.job_group in group_ids]
        if failing := failing_of(visible, is_all=len(runs) < looked_at):
            failing_by_job[job_id] = failing
    return failing_by_job


def of_newest(
    session: Session,
    runs_by_job: Mapping[int, Sequence[Run]],
    has_older: Collection[int],
    *,
    group_ids: GroupIds,
) -> dict[int, Failing[Run]]:
    """Return what ``of_jobs`` does, from the newest runs of jobs in these groups, newest first.

    ``has_older``: the jobs that may have others. More are read only of those without a success among these.
    """
    failing_by_job, unknown = dict[int, Failing[Run]](), list[int]()
    for job_id, runs in runs_by_job.items():
        failing = failing_of(runs, is_all=job_id not in has_older)
        if failing is not None:
            failing_by_job[job_id] = failing
        if job_id in has_older and not any(outcome(run) == "success" for run in runs):
            unknown.append(job_id)
    if not unknown:
        return failing_by_job
    looked_at = min(LOOKED_AT, READ_MAX // len(unknown))
    return failing_by_job | of_jobs(session, unknown, group_ids=group_ids, looked_at=looked_at)


def of_job(session: Session, job_id: int, *, group_ids: GroupIds) -> Failing[Run] | None:
    """Return the failures of a job since its last success; None if it is not failing."""
    failing = None
    for looked_at in LOOKED_AT_OF_ONE:
        failing = of_jobs(session, [job_id], group_ids=group_ids, looked_at=looked_at).get(job_id)
        if failing is None or not failing.is_cut:
            break
    return failing
