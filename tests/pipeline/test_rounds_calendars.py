"""Rounds whose predecessors have nothing to run on a day. docs/reference/rounds.md."""

import pytest

from app.clock import DAY_MS, HOUR_MS
from app.database.engine import session_scope
from app.models.fire import Fire
from app.models.job import Job
from app.models.round import Arrival, Round
from tests.pipeline.calendar_steps import WORKDAYS, add_blackout, pass_time, put_calendar, ruled_job
from tests.pipeline.round_steps import follow, look, run
from tests.support.factories import T0, make_job, only_row
from tests.support.plan import every_database

pytestmark = every_database

#: Wednesday 2024-05-01 09:00 UTC
NINE = T0 - (T0 % DAY_MS) + 9 * HOUR_MS
DAILY = "0 0 9 * * ?"


@pytest.mark.parametrize("kind", ["logical_time", "day"])
def test_a_predecessor_that_a_calendar_excludes_is_not_waited_for(database: str, kind: str) -> None:
    put_calendar({"2024-05-01": "holiday"})
    other = make_job(time_zone="UTC")
    excluded = ruled_job(NINE + DAY_MS, "CRON", DAILY, calendar=WORKDAYS)
    follower = follow(other, excluded, job=make_job(time_zone="UTC"), round=kind)

    run(other, due_time=NINE, logical_ms=NINE, now_ms=NINE)
    look(NINE)

    assert only_row(Round).state == "started"
    assert only_row(Arrival, predecessor_id=excluded.id).outcome == "excused"
    assert only_row(Fire, job_id=follower.id).trigger_type == "AFTER"


def test_one_that_runs_on_another_day_is_waited_for(database: str) -> None:
    put_calendar({"2024-05-01": "holiday"})
    other = make_job(time_zone="UTC")
    moved = ruled_job(NINE + DAY_MS, "CRON", "0 0 9 1 * ?", calendar=WORKDAYS | {"otherwise": "next"})
    follow(other, moved, job=make_job(time_zone="UTC"))

    run(other, due_time=NINE, logical_ms=NINE, now_ms=NINE)
    look(NINE)

    assert only_row(Round).state == "open"


def test_one_that_a_blackout_covers_is_excused_unless_it_runs_once(database: str) -> None:
    other, hourly = make_job(time_zone="UTC"), ruled_job(NINE, "CRON", "0 0 * * * ?")
    follow(other, hourly, job=make_job(time_zone="UTC"))
    add_blackout(NINE - HOUR_MS // 2, NINE + 90 * 60_000, job_id=hourly.id, afterwards="run_once")

    for logical_ms in (NINE, NINE + HOUR_MS):
        run(other, due_time=logical_ms, logical_ms=logical_ms, now_ms=logical_ms)
    look(NINE + HOUR_MS)

    assert only_row(Round, logical_ms=NINE).state == "started"
    assert only_row(Round, logical_ms=NINE + HOUR_MS).state == "open"


def test_a_round_of_which_all_are_excused_is_not_run(database: str) -> None:
    put_calendar({"2024-05-01": "holiday"})
    first, second = (ruled_job(NINE + DAY_MS, "CRON", DAILY, calendar=WORKDAYS) for _ in range(2))
    gate = follow(first, second, job=ruled_job(NINE, "CRON", DAILY))
    with session_scope() as session:
        session.get_one(Job, gate.id).trigger_next_time = NINE

    pass_time(NINE)
    look(NINE)

    row = only_row(Round)
    assert (row.state, row.reason) == ("not_run", "excused")
