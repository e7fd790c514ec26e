"""The newest runs of many jobs in one query, and the indexes used."""

from collections.abc import Callable

import pytest
from sqlalchemy.orm import Session

from app.database.engine import read_scope
from app.models.job import Job
from app.models.skip import Skip
from app.store.jobs import skips
from app.store.pickers.overview import find_open_runs
from app.store.runs import recent as recent_runs
from app.store.runs.recent import Run
from tests.support.factories import T0, make_group, make_job, make_log, save
from tests.support.store_runs import plan

SECOND = 1_000


def runs(job: Job, *seconds: int, **more: int) -> list[int]:
    """Store runs this many seconds before T0; return their ids."""
    return [make_log(job, trigger_time=T0 - ago * SECOND, **more).id for ago in seconds]


def test_each_job_gets_its_newest_runs(database: str) -> None:
    first_job, second_job, never = make_job(), make_job(), make_job()
    old = runs(first_job, 50, 40, 30, 20)
    new = runs(second_job, 10)
    with read_scope() as session:
        found = recent_runs.find_newest_of_jobs(
            session, [first_job.id, second_job.id, never.id], group_ids=None, limit=2
        )
        since_ms, before_ms = T0 - 40 * SECOND, T0 - 20 * SECOND
        bounded = recent_runs.find_newest_of_jobs(
            session, [first_job.id], group_ids=None, limit=9, since_ms=since_ms, before_ms=before_ms
        )
        none = recent_runs.find_newest_of_jobs(session, [], group_ids=None, limit=2)
    assert {job_id: [run.id for run in of_job] for job_id, of_job in found.items()} == {
        first_job.id: [old[3], old[2]],
        second_job.id: new,
    }
    assert [run.id for run in bounded[first_job.id]] == [old[2], old[1]]
    assert none == {}
    first = found[second_job.id][0]
    assert (first.job_id, first.trigger_time, first.trigger_code, first.handle_time, first.handle_code) == (
        second_job.id,
        T0 - 10 * SECOND,
        200,
        None,
        0,
    )


def test_a_run_has_the_values_of_its_row(database: str) -> None:
    job = make_job()
    running = make_log(job, trigger_time=T0, trigger_code=200)
    ended = make_log(
        job,
        trigger_time=T0 - SECOND,
        trigger_code=200,
        handle_time=T0,
        handle_code=500,
        duration_ms=850,
        killed=1,
    )
    with read_scope() as session:
        found = recent_runs.find_newest_of_jobs(session, [job.id], group_ids=None, limit=2)
    of_job = {"job_id": job.id, "job_group": job.job_group, "trigger_code": 200}
    assert found[job.id] == [
        Run(running.id, trigger_time=T0, handle_time=None, handle_code=0, **of_job),
        Run(
            ended.id,
            trigger_time=T0 - SECOND,
            handle_time=T0,
            handle_code=500,
            duration_ms=850,
            killed=1,
            **of_job,
        ),
    ]


def test_runs_of_the_same_second_are_ordered_by_id(database: str) -> None:
    job = make_job()
    ids = runs(job, 5, 5, 5)
    with read_scope() as session:
        found = recent_runs.find_newest_of_jobs(session, [job.id], group_ids=None, limit=2)
    assert [run.id for run in found[job.id]] == [ids[2], ids[1]]


@pytest.mark.parametrize("count", [1, 2, 11, 31, 101])
def test_any_number_of_jobs_is_found(database: str, count: int) -> None:
    job = make_job()
    (run_id,) = runs(job, 1)
    others = [job.id + number for number in range(1, count)]
    with read_scope() as session:
        found = recent_runs.find_newest_of_jobs(session, [*others, job.id], group_ids=None, limit=3)
    assert [run.id for run in found.pop(job.id)] == [run_id]
    assert found == {}


def test_jobs_are_counted_among_the_newest_visible_runs(database: str) -> None:
    visible, other = make_group(), make_group(app_name="other-app")
    first_job, second_job, foreign = (
        make_job(job_group=visible.id),
        make_job(job_group=visible.id),
        make_job(job_group=other.id),
    )
    runs(first_job, 30, 20, 10)
    runs(second_job, 90, 15)
    runs(foreign, 5, 5)
    since_ms = T0 - 60 * SECOND
    with read_scope() as session:
        all_counts = recent_runs.count_by_job(session, None, since_ms=since_ms, limit=100)
        newest = recent_runs.count_by_job(session, None, since_ms=since_ms, limit=3)
        seen = recent_runs.count_by_job(session, [visible.id], since_ms=since_ms, limit=100)
        cut = recent_runs.count_by_job(session, [visible.id], since_ms=since_ms, limit=2)
        no_groups = recent_runs.count_by_job(session, [], since_ms=since_ms, limit=100)
        totals = recent_runs.count_of_jobs(session, [first_job.id, second_job.id], since_ms=since_ms)
    assert (all_counts.counts, all_counts.is_cut) == (
        {first_job.id: 3, second_job.id: 1, foreign.id: 2},
        False,
    )
    assert (newest.counts, newest.is_cut) == ({foreign.id: 2, first_job.id: 1}, True)
    assert (seen.counts, seen.is_cut) == ({first_job.id: 3, second_job.id: 1}, False)
    assert (cut.counts, cut.is_cut) == ({first_job.id: 1, second_job.id: 1}, True)
    assert (no_groups.counts, no_groups.is_cut) == ({}, False)
    assert totals == {first_job.id: 3, second_job.id: 1}


def test_failed_and_running_runs_are_those_of_visible_groups(database: str) -> None:
    visible, other = make_group(), make_group(app_name="other-app")
    job, foreign = make_job(job_group=visible.id), make_job(job_group=other.id)
    runs(job, 25 * 3_600)
    (foreign_long,) = runs(foreign, 600)
    (long,) = runs(job, 500)
    runs(job, 10, 20, handle_code=500)
    runs(job, 30, trigger_code=504)
    runs(job, 40, handle_code=200)
    runs(foreign, 10, handle_code=502)
    since_ms = T0 - 60 * SECOND
    with read_scope() as session:
        all_failed = recent_runs.count_failed(session, None, since_ms=since_ms, limit=100)
        failed = recent_runs.count_failed(session, [visible.id], since_ms=since_ms, limit=100)
        running, mine_running = (
            recent_runs.find_still_running(
                session, find_open_runs(session, group_ids), before_ms=since_ms, now_ms=T0
            )
            for group_ids in (None, [visible.id])
        )
    assert all_failed == {job.id: 3, foreign.id: 1}
    assert failed == {job.id: 3}
    assert [run.id for run in running] == [foreign_long, long]
    assert [run.id for run in mine_running] == [long]


def test_skips_are_those_of_visible_groups_within_the_period(database: str) -> None:
    visible, other = make_group(), make_group(app_name="other-app")
    job, foreign = make_job(job_group=visible.id), make_job(job_group=other.id)
    for owner, begin, end in ((job, 900, 700), (job, 90, 50), (foreign, 30, 30)):
        from_ms, to_ms = T0 - begin * SECOND, T0 - end * SECOND
        save(
            Skip(
                job_id=owner.id, from_ms=from_ms, to_ms=to_ms, skipped=2, reason="misfire", recorded_ms=to_ms
            )
        )
    since_ms = T0 - 60 * SECOND
    with read_scope() as session:
        assert [skip.job_id for skip in skips.find_recent(session, None, since_ms=since_ms, limit=9)] == [
            job.id,
            foreign.id,
        ]
        assert [skip.job_id for skip in skips.find_recent(session, None, since_ms=since_ms, limit=1)] == [
            foreign.id
        ]
        assert [
            skip.job_id for skip in skips.find_recent(session, [visible.id], since_ms=since_ms, limit=9)
        ] == [job.id]
        assert skips.find_recent(session, [], since_ms=since_ms, limit=9) == []


@pytest.mark.parametrize(
    ("ask", "index"),
    [
        (
            lambda session: recent_runs.find_newest_of_jobs(session, [1, 2], group_ids=None, limit=5),
            "ix_xxl_job_log_job",
        ),
        (
            lambda session: recent_runs.count_of_jobs(session, [1, 2], since_ms=T0),
            "COVERING INDEX ix_xxl_job_log_job",
        ),
        (
            lambda session: recent_runs.count_by_job(session, [1, 2], since_ms=T0, limit=9),
            "ix_xxl_job_log_group",
        ),
        (lambda session: recent_runs.count_by_job(session, None, since_ms=T0, limit=9), "I_trigger_time"),
        (
            lambda session: recent_runs.count_failed(session, None, since_ms=T0, limit=9),
            "ix_xxl_job_log_failures",
        ),
    ],
)
def test_every_query_uses_an_index(database: str, ask: Callable[[Session], object], index: str) -> None:
    if "sqlite" not in database:
        pytest.skip("planners of servers choose by statistics")
    with read_scope() as session:
        steps = plan(session, ask)
    assert any(index in step for step in steps), steps
    slow = ("USE TEMP B-TREE FOR ORDER BY", "SCAN xxl_job_log")
    assert not any(step.startswith(slow) for step in steps), steps
