"""Which rows a clearing of the log deletes."""

from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import pytest

from app.clock import MINUTE_MS
from app.database.engine import session_scope, transact
from app.models.alarm import Alarm
from app.models.base import use_zone
from app.models.job import Job
from app.models.log import JobLog
from app.models.mute import Mute
from app.store.jobs.removal import delete_jobs
from app.store.runs.clearing import Clearing, clear_batch
from tests.support.factories import (
    BERLIN_FIRST_TWO,
    BERLIN_SECOND_TWO,
    T0,
    all_rows,
    make_job,
    make_log,
    make_run,
    remove,
    save,
)
from tests.support.plan import every_database


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


@every_database
@pytest.mark.parametrize("way", ["clearing", "deletion of the job"])
def test_clearing_keeps_the_alarms_from_which_a_message_may_follow(database: str, way: str) -> None:
    job = make_job()
    held_by = save(Mute(job_id=job.id, since_ms=T0, until_ms=T0)).id
    for state in ("SENT", "CLOSED", "PARTLY", "PENDING", "SENDING", "FAILED", "MUTED", "SILENT"):
        save(alarm_of(make_run(job).id, job, state=state, mute_id=held_by if state == "MUTED" else None))
    save(alarm_of(make_run(job).id, job, state="MUTED", mute_id=held_by + 1))
    save(alarm_of(make_run(job).id, job, state="SENT", reason="recovered"))
    if way == "clearing":
        assert transact(lambda session: clear_batch(session, Clearing(0, job.id))) == (10, True)
        assert [alarm.state for alarm in all_rows(Alarm)] == ["PARTLY", "PENDING", "SENDING", "MUTED"]
    else:
        transact(lambda session: delete_jobs(session, [job.id]))
        assert all_rows(Alarm) == []
    assert all_rows(JobLog) == []


def test_clearing_leaves_no_alarms_of_deleted_jobs(database: str) -> None:
    run = make_run(job := make_job())
    save(alarm_of(run.id, job, state="SENT"))
    remove(job)
    assert transact(lambda session: clear_batch(session, Clearing(0, job.id))) == (1, True)
    assert all_rows(Alarm) == []


def alarm_of(log_id: int, job: Job, **columns: Any) -> Alarm:
    return Alarm(**{"log_id": log_id, "job_id": job.id, "reason": "failed", "created_ms": T0, **columns})


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
