"""Recoveries: which successful runs end the alarms of a job."""

from typing import Any

import pytest

from app.clock import Millis
from app.database.engine import read_scope
from app.domain.enums import TriggerType
from app.models.alarm import Alarm
from app.models.job import Job
from app.store.alarms.recoveries import find_successes
from tests.support.factories import T0, make_job, make_log, save


def fail(job: Job, shard: str | None) -> None:
    """Commit a failed run with a sent alarm."""
    run = make_log(job, handle_code=500, handle_time=T0, executor_sharding_param=shard)
    save(Alarm(log_id=run.id, job_id=job.id, reason="failed", state="SENT", created_ms=T0))


def succeed(job: Job, shard: str | None, at_ms: Millis = T0 + 5_000, **columns: Any) -> int:
    """Commit a successful run; return its id."""
    result = {"handle_code": 200, "handle_time": at_ms, "executor_sharding_param": shard}
    return make_log(job, **{**result, **columns}).id


def recovered(job: Job) -> int | None:
    with read_scope() as session:
        return find_successes(session, [job.id]).get(job.id)


@pytest.mark.parametrize(
    ("failed", "succeeded", "recovers"),
    [
        ("0/2", "0/2", True),
        ("0/2", "1/2", False),
        ("2/12", "11/12", False),
        # the number of executors or the route has changed
        ("0/2", "1/3", True),
        ("0/2", "1/12", True),
        ("0/2", None, True),
        (None, "1/2", True),
        # of a Java admin
        ("", None, True),
        (None, None, True),
    ],
)
def test_another_shard_is_no_recovery(
    database: str, failed: str | None, succeeded: str | None, recovers: bool
) -> None:
    fail(job := make_job(), failed)
    assert recovered(job) is None
    run_id = succeed(job, succeeded, trigger_type=TriggerType.RETRY.value)
    assert recovered(job) == (run_id if recovers else None)


def test_a_success_of_the_shard_is_found_behind_those_of_others(database: str) -> None:
    fail(job := make_job(), "0/2")
    succeed(job, "0/2", T0 - 60_000)
    succeed(job, "1/2")
    assert recovered(job) is None
    own = succeed(job, "0/2")
    succeed(job, "1/2", trigger_time=T0 + 1_000)
    assert recovered(job) == own


def test_each_shard_with_an_alarm_has_to_succeed(database: str) -> None:
    fail(job := make_job(), "0/3")
    fail(job, "1/3")
    succeed(job, "1/3")
    succeed(job, "2/3")
    assert recovered(job) is None
    last = succeed(job, "0/3")
    assert recovered(job) == last
