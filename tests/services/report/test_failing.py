"""Which jobs are failing, among many runs and in the groups of a user."""

from collections.abc import Callable
from typing import Any

import pytest

from app.database.engine import read_scope
from app.models.job import Job
from app.services.answer_cache import LATELY_MS, AnswerCache
from app.services.report import failing
from app.store.runs import failing as failing_runs
from app.store.runs import recent as recent_runs
from app.store.runs.recent import Run
from tests.support.factories import T0, make_job, make_log, remove

SECOND = 1_000
OK, FAILED, RUNNING = {"handle_code": 200}, {"handle_code": 500}, dict[str, int]()


def runs(job: Job, *results: dict[str, Any]) -> list[int]:
    """Store runs of a job, the oldest first, a second apart and the last at T0; return their ids."""
    first_ms = T0 - (len(results) - 1) * SECOND
    return [
        make_log(job, trigger_code=200, trigger_time=first_ms + number * SECOND, **values).id
        for number, values in enumerate(results)
    ]


def failing_ids(group_ids: list[int] | None = None) -> dict[int, int]:
    """Return job id -> id of its last failure."""
    with read_scope() as session:
        return {job_id: run.id for job_id, run in failing.find_failing(session, group_ids).items()}


def is_searched_again(monkeypatch: pytest.MonkeyPatch, is_cut: bool) -> None:
    """Let the newest failed run be all that is searched, or not."""
    monkeypatch.setattr(failing_runs, "SEARCHED_MAX", 1 if is_cut else 1_000)


@pytest.mark.parametrize("is_cut", [False, True])
def test_jobs_are_failing_until_they_succeed(
    database: str, monkeypatch: pytest.MonkeyPatch, is_cut: bool
) -> None:
    is_searched_again(monkeypatch, is_cut)
    broken, tried_again, recovered, running, never, deleted = (make_job() for _ in range(6))
    last = runs(broken, OK, FAILED, FAILED)[-1]
    tried = runs(tried_again, FAILED, RUNNING)[0]
    runs(recovered, FAILED, OK)
    runs(running, OK, RUNNING)
    runs(deleted, FAILED)
    remove(deleted)
    assert never.id not in failing_ids()
    assert list(failing_ids().items()) == [(broken.id, last), (tried_again.id, tried)]


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_busy_job_hides_no_old_failure(
    database: str, monkeypatch: pytest.MonkeyPatch, is_cut: bool
) -> None:
    is_searched_again(monkeypatch, is_cut)
    quiet, busy = make_job(), make_job()
    old = make_log(quiet, trigger_time=T0 - 90 * 24 * 3600 * SECOND, trigger_code=500)
    newest = runs(busy, *[FAILED] * 5)[-1]
    assert failing_ids() == {busy.id: newest, quiet.id: old.id}


@pytest.mark.parametrize("is_cut", [False, True])
def test_only_runs_and_jobs_of_the_groups_count(
    database: str, monkeypatch: pytest.MonkeyPatch, is_cut: bool
) -> None:
    is_searched_again(monkeypatch, is_cut)
    visible, hidden = make_job(), make_job()
    moved = make_job(job_group=visible.job_group)
    last = runs(visible, FAILED)[0]
    runs(hidden, FAILED)
    make_log(moved, trigger_time=T0, trigger_code=500, job_group=hidden.job_group)
    assert failing_ids([visible.job_group]) == {visible.id: last}
    assert failing_ids([]) == {}


def test_failures_of_jobs(database: str) -> None:
    broken, fine, hidden = make_job(), make_job(), make_job()
    ids = runs(broken, OK, FAILED, FAILED, RUNNING)
    runs(fine, FAILED, OK)
    runs(hidden, FAILED)
    with read_scope() as session:
        all_ids = [broken.id, fine.id, hidden.id]
        found = failing.of_jobs(session, all_ids, group_ids=[broken.job_group, fine.job_group])
        cut = failing.of_jobs(session, [broken.id], group_ids=None, looked_at=3)[broken.id]
    assert list(found) == [broken.id]
    result = found[broken.id]
    assert (result.last.id, result.failures, result.is_cut) == (ids[2], 2, False)
    assert result.success is not None
    assert result.success.id == ids[0]
    assert (cut.failures, cut.success, cut.is_cut) == (2, None, True)


@pytest.fixture
def lately(database: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """Return a function that finds the failing jobs lately, some ms later than before."""
    now_ms = 0
    monkeypatch.setattr(failing, "_last_failures", {})
    monkeypatch.setattr(failing, "monotonic_ms", lambda: now_ms)

    def find(later_ms: int = 0, group_ids: list[int] | None = None) -> list[int]:
        nonlocal now_ms
        now_ms += later_ms
        with read_scope() as session:
            return list(failing.find_failing_lately(session, group_ids))

    return find


def succeed(job: Job) -> None:
    """Store a success after the runs of a job."""
    make_log(job, trigger_code=200, handle_code=200, trigger_time=T0 + SECOND)


def test_known_failing_jobs_are_looked_up_again(
    lately: Callable[..., list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    is_searched_again(monkeypatch, is_cut=True)
    first, second, slow, hidden = (make_job() for _ in range(4))
    make_log(first, trigger_time=T0 - 90 * SECOND, trigger_code=500)
    runs(second, FAILED)
    assert lately() == [second.id, first.id]
    make_log(slow, trigger_time=T0 - SECOND, trigger_code=500)
    make_log(first, trigger_time=T0 + SECOND, trigger_code=500)
    succeed(second)
    assert lately() == [first.id], "triggered before the newest failed runs"
    assert lately(group_ids=[hidden.job_group]) == [], "for these groups alone"
    assert lately(later_ms=failing.KNOWN_MS) == [first.id, slow.id]


def test_very_many_failing_jobs_are_kept_for_a_while(
    lately: Callable[..., list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    is_searched_again(monkeypatch, is_cut=True)
    monkeypatch.setattr(failing, "AGAIN_MAX", 0)
    job = make_job()
    runs(job, FAILED)
    assert lately() == [job.id]
    succeed(job)
    assert lately() == [job.id]
    assert failing_ids() == {}
    assert lately(later_ms=failing.AGAIN_MS) == []


def test_readers_share_the_failing_jobs_for_a_moment(
    lately: Callable[..., list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AnswerCache, "is_on", True)
    monkeypatch.setattr(failing, "_lately", AnswerCache[dict[int, Run]](LATELY_MS))
    job = make_job()
    runs(job, FAILED)
    assert lately() == [job.id]
    succeed(job)
    assert lately() == [job.id]
    assert failing_ids() == {}, "what is changed is chosen by the failures of now"


def test_nothing_is_kept_where_few_runs_failed(lately: Callable[..., list[int]]) -> None:
    job = make_job()
    runs(job, FAILED)
    assert lately() == [job.id]
    succeed(job)
    assert lately() == []
    assert failing._last_failures == {}


def test_runs_that_were_read_need_no_others_but_for_those_without_success(database: str) -> None:
    broken, recovered, tried, fine = (make_job() for _ in range(4))
    runs(broken, OK, *[FAILED] * 5)
    runs(recovered, FAILED, OK, FAILED)
    runs(tried, FAILED, *[RUNNING] * 3)
    runs(fine, FAILED, OK)
    ids = [job.id for job in (broken, recovered, tried, fine)]
    with read_scope() as session:
        newest = recent_runs.find_newest_of_jobs(session, ids, limit=2, group_ids=None)
        assert failing.of_newest(session, newest, ids, group_ids=None) == failing.of_jobs(
            session, ids, group_ids=None
        )
