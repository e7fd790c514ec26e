"""Which rows a clearing of the log deletes."""

from app.clock import MINUTE_MS
from app.db import transact
from app.models.base import use_zone
from app.models.log import JobLog
from app.store.log_clearing import Clearing, clear_batch
from tests.factories import BERLIN_FIRST_TWO, BERLIN_SECOND_TWO, all_rows, make_job, make_log


def test_the_newest_of_an_hour_that_occurs_twice_are_kept(database: str) -> None:
    use_zone("Europe/Berlin")
    job = make_job()
    earlier = make_log(job, trigger_time=BERLIN_FIRST_TWO - MINUTE_MS)
    for at_ms in (BERLIN_FIRST_TWO + 50 * MINUTE_MS, BERLIN_SECOND_TWO, BERLIN_SECOND_TWO + MINUTE_MS):
        newest = make_log(job, trigger_time=at_ms)
    clearing = Clearing(group_id=0, job_id=job.id, keep=2)
    assert transact(lambda session: clear_batch(session, clearing)) == 1
    left = [log.id for log in all_rows(JobLog)]
    assert earlier.id not in left
    assert newest.id in left
