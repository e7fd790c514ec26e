"""Which rows a clearing of the log deletes."""

from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from app.clock import MINUTE_MS
from app.db import session_scope, transact
from app.models.base import use_zone
from app.models.log import JobLog
from app.store.log_clearing import Clearing, clear_batch
from tests.factories import BERLIN_FIRST_TWO, BERLIN_SECOND_TWO, all_rows, make_job, make_log, make_run


def test_the_newest_of_an_hour_that_occurs_twice_are_kept(database: str) -> None:
    use_zone("Europe/Berlin")
    job = make_job()
    earlier = make_log(job, trigger_time=BERLIN_FIRST_TWO - MINUTE_MS)
    for at_ms in (BERLIN_FIRST_TWO + 50 * MINUTE_MS, BERLIN_SECOND_TWO, BERLIN_SECOND_TWO + MINUTE_MS):
        newest = make_log(job, trigger_time=at_ms)
    clearing = Clearing(group_id=0, job_id=job.id, keep=2)
    assert transact(lambda session: clear_batch(session, clearing)) == (1, True)
    left = [log.id for log in all_rows(JobLog)]
    assert earlier.id not in left
    assert newest.id in left


def test_runs_that_another_clearing_deletes_are_not_counted(database: str) -> None:
    if database.startswith("sqlite"):
        pytest.skip("a SQLite writer waits for the other's whole transaction")
    make_run(job := make_job())
    clearing = Clearing(job.job_group, job.id)
    with ThreadPoolExecutor(1) as other:
        with session_scope() as session:
            assert clear_batch(session, clearing) == (1, True)
            second = other.submit(transact, lambda clears: clear_batch(clears, clearing))
            wait([second], 0.5)
        assert second.result(10) == (0, True)
