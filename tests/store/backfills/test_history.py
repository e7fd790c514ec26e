"""Runs of a job by logical time, of all kinds of rows."""

from typing import Any

import pytest

from app.clock import DAY_MS, MINUTE_MS, Millis
from app.database.engine import read_scope
from app.domain.backfills.instants import Exclusion, Standing, list_instants
from app.domain.backfills.kinds import Which
from app.models.job import Job
from app.store.backfills.history import find_runs
from tests.support.factories import T0, make_fire, make_job, make_log

pytestmark = pytest.mark.usefixtures("database")

SUCCESS, FAILURE = {"handle_code": 200}, {"handle_code": 500}
REFUSED, UNRESOLVED = {"trigger_code": 500}, {"trigger_code": 504}
AT: Millis = T0 - 10 * MINUTE_MS


def standings(job: Job, from_ms: Millis = AT, to_ms: Millis = AT + MINUTE_MS) -> dict[Millis, str]:
    """Return logical time, less that of most rows -> standing."""
    with read_scope() as session:
        runs = list(find_runs(session, job.id, from_ms, to_ms))
    excluded: dict[Millis, Exclusion] = {}
    found = list_instants([at_ms for at_ms, _ in runs], excluded, runs, Which.ALL)
    return {each.logical_ms - AT: each.standing.value for each in found}


@pytest.mark.parametrize(
    ("rows", "standing"),
    [
        ([SUCCESS], "succeeded"),
        ([FAILURE], "failed"),
        ([REFUSED], "failed"),
        ([UNRESOLVED], "failed"),
        # Its result came late.
        ([UNRESOLVED | SUCCESS], "succeeded"),
        ([{}], "running"),
        ([{"trigger_code": 0}], "running"),
        # Retries, and runs by hand.
        ([FAILURE, SUCCESS | {"trigger_type": "RETRY"}], "succeeded"),
        ([FAILURE, FAILURE | {"trigger_type": "RETRY"}], "failed"),
        ([SUCCESS, {"trigger_type": "MANUAL"}], "running"),
        # A broadcast has succeeded when each of its shards has.
        ([SUCCESS | {"executor_sharding_param": "0/2"}], "failed"),
        ([SUCCESS | {"executor_sharding_param": f"{n}/2"} for n in (0, 1)], "succeeded"),
        (
            [
                SUCCESS | {"executor_sharding_param": "0/2"},
                FAILURE | {"executor_sharding_param": "1/2"},
                SUCCESS | {"executor_sharding_param": "1/2", "trigger_type": "RETRY"},
            ],
            "succeeded",
        ),
        ([SUCCESS | {"executor_sharding_param": shard} for shard in ("0/2", "1/3")], "failed"),
    ],
)
def test_the_runs_of_an_instant(rows: list[dict[str, Any]], standing: str) -> None:
    job = make_job()
    for columns in rows:
        make_log(job, **{"logical_ms": AT, "trigger_time": T0} | columns)
    make_log(make_job(), logical_ms=AT, **SUCCESS)
    assert standings(job) == {0: standing}


def test_the_logical_time_of_rows_of_all_ages() -> None:
    job = make_job()
    # Of an adopted row its trigger, of one before the upgrade its instant, which has milliseconds.
    make_log(job, trigger_time=AT + 1_000, **SUCCESS)
    make_log(job, trigger_time=T0, fire_time=AT + 2_500, **SUCCESS)
    make_log(job, trigger_time=T0, fire_time=T0, logical_ms=AT + 3_000, **SUCCESS)
    # It was asked for long before the instant that it stands for.
    make_log(job, trigger_time=AT - 31 * DAY_MS, logical_ms=AT + 4_000, **SUCCESS)
    # Others are triggered in the range, but stand for another time.
    make_log(job, trigger_time=AT + 5_000, logical_ms=T0, **SUCCESS)
    make_log(job, trigger_time=AT + 5_000, fire_time=T0, **SUCCESS)
    make_log(job, trigger_time=None, **SUCCESS)
    assert standings(job) == dict.fromkeys([1_000, 2_500, 3_000, 4_000], "succeeded")


def test_only_runs_of_some_logical_times_are_read() -> None:
    job = make_job()
    for at_ms in (AT, AT + 1_000, AT + 2_000):
        make_log(job, trigger_time=T0, logical_ms=at_ms, **SUCCESS)
        make_log(job, trigger_time=at_ms, **FAILURE)
    with read_scope() as session:
        runs = list(find_runs(session, job.id, AT, T0, times=[AT, AT + 2_000]))
    assert [at_ms - AT for at_ms, each in runs if each is Standing.SUCCEEDED] == [0, 2_000]
    assert {AT, AT + 2_000} <= {at_ms for at_ms, each in runs if each is Standing.FAILED}


def test_the_start_is_in_the_range_and_the_end_is_not() -> None:
    job = make_job()
    for at_ms in (AT - 1_000, AT, AT + MINUTE_MS - 1_000, AT + MINUTE_MS):
        make_log(job, trigger_time=at_ms, **SUCCESS)
        make_log(job, trigger_time=T0, logical_ms=at_ms, **SUCCESS)
        make_fire(job, due_time=T0, logical_ms=at_ms)
    assert standings(job) == {0: "running", MINUTE_MS - 1_000: "running"}


@pytest.mark.parametrize(
    ("fire", "standing"),
    [
        ({"due_time": AT}, "running"),
        ({"due_time": T0, "logical_ms": AT, "trigger_type": "RETRY"}, "running"),
        ({"due_time": AT, "state": "WAITING"}, "running"),
        ({"due_time": AT, "state": "GATED"}, "running"),
        # Its run has ended as unresolved, and only holds its slot.
        ({"due_time": AT, "state": "HELD"}, "failed"),
    ],
)
def test_what_waits_is_running(fire: dict[str, Any], standing: str) -> None:
    job = make_job()
    make_log(job, logical_ms=AT, **UNRESOLVED)
    make_fire(job, **fire)
    assert standings(job)[0] == standing
