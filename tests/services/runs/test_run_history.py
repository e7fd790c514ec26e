"""History of a run: the usual duration, and since when the job fails for the same reason."""

import pytest

from app.database.engine import read_scope
from app.domain.access.permissions import system_actor
from app.models.log import JobLog
from app.services.runs.run_history import RUNS_MAX, RunHistory, history_of
from app.store.runs import neighbours
from tests.support.factories import T0, save

pytestmark = pytest.mark.usefixtures("database")

ADMIN = system_actor("test")


def add_run(number: int, **changes: object) -> JobLog:
    values = {"job_group": 1, "job_id": 7, "trigger_time": T0 + number * 60_000, "trigger_code": 200}
    return save(JobLog(**{**values, "handle_code": 200, **changes}))


def history(log: JobLog, reason: str) -> RunHistory:
    with read_scope() as session:
        return history_of(session, log, reason, actor=ADMIN)


def test_the_usual_duration_is_the_median_of_the_successes_before() -> None:
    for number, took in enumerate((1_000, 3_000, 500_000)):
        add_run(number, duration_ms=took)
    add_run(3, handle_code=500, duration_ms=1)
    log = add_run(4, duration_ms=7)
    add_run(5, duration_ms=8)
    assert history(log, "").usual_ms == 3_000
    assert history(add_run(0, job_id=8), "").usual_ms is None


def test_runs_with_the_same_reason_are_counted_back_to_another_one() -> None:
    add_run(0, handle_code=500, handle_msg="refused batch 1")
    add_run(1)
    for number in (2, 3):
        add_run(number, handle_code=500, handle_msg=f"refused batch {number}")
    log = add_run(4, handle_code=500, handle_msg="refused batch 4")
    assert history(log, "refused batch 4") == RunHistory(None, 3, T0 + 120_000, is_cut=False)
    assert history(log, "another reason").same_count == 1


def test_more_runs_than_are_read_are_not_counted() -> None:
    for number in range(RUNS_MAX + 3):
        add_run(number, handle_code=500, handle_msg="no")
    log = add_run(99, handle_code=500, handle_msg="no")
    found = history(log, "no")
    assert found.is_cut
    assert found.same_count >= RUNS_MAX


def test_the_shards_of_a_broadcast_are_found_by_their_fire() -> None:
    shards = [
        add_run(0, executor_sharding_param=f"{index}/3", fire_time=T0, handle_code=200 if index else 500)
        for index in range(3)
    ]
    add_run(1, executor_sharding_param="0/3", fire_time=T0 + 60_000)
    add_run(0, executor_sharding_param="0/3", fire_time=T0, job_id=8)
    with read_scope() as session:
        found = neighbours.find_shards(session, shards[1])
        assert [(shard.id, shard.executor_sharding_param) for shard in found] == [
            (log.id, f"{index}/3") for index, log in enumerate(shards)
        ]
        assert neighbours.find_shards(session, add_run(2)) == []
