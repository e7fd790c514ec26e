"""Calendars and blackouts in scan and claim. docs/reference/calendars.md, docs/reference/blackouts.md."""

import pytest

from app.clock import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from app.database.engine import session_scope
from app.domain.schedules.planning import DueFire
from app.domain.schedules.schedule import RESTING
from app.models.completeness import JobSpan
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.models.skip import Skip
from app.pipeline.calendars.explaining import tick_explained
from app.pipeline.calendars.pauses import resume
from app.pipeline.calendars.replanning import RuleReplanning
from app.pipeline.late import settle_late
from app.pipeline.scan import scan
from app.services.jobs.replan import switch_off, switch_on
from app.store.calendars import current_book, paused_fires
from tests.pipeline.calendar_steps import (
    WORKDAYS,
    ZONE,
    account_of,
    add_blackout,
    change_rules,
    end_blackout,
    pass_time,
    put_calendar,
    ruled_job,
)
from tests.pipeline.round_steps import claim_due
from tests.support.factories import FIRST, T0, all_rows, make_fire, make_job, only_row
from tests.support.plan import every_database

pytestmark = every_database

#: Wednesday 2024-05-01 09:00 UTC, and the next days at that time
NINE = T0 - (T0 % DAY_MS) + 9 * HOUR_MS


def _next(job: Job) -> int:
    return only_row(Job, id=job.id).trigger_next_time


def test_a_calendar_moves_the_next_time_at_its_commit(database: str) -> None:
    job = ruled_job(NINE, "CRON", "0 0 9 * * ?", calendar=WORKDAYS)

    put_calendar({"2024-05-01": "holiday", "2024-05-04": "workday"})

    assert _next(job) == NINE + DAY_MS


def test_due_instants_that_no_scan_has_planned_are_recorded_when_a_calendar_changes(database: str) -> None:
    put_calendar({})
    job = ruled_job(NINE, "CRON", "0 * * * * ?", calendar=WORKDAYS)

    put_calendar({"2024-05-01": "holiday"}, now_ms=NINE + MINUTE_MS + SECOND_MS)
    pass_time(NINE + 2 * MINUTE_MS)

    skip = only_row(Skip)
    assert (skip.reason, skip.from_ms, skip.to_ms, skip.skipped) == ("edited", NINE, NINE + MINUTE_MS, 2)
    assert _next(job) == NINE + 15 * HOUR_MS
    found = account_of(job, NINE + 2 * MINUTE_MS, from_ms=NINE - 1)
    assert (found.tally.unexplained, found.tally.unexpected) == (0, 0)


def test_a_due_instant_that_a_blackout_covers_is_not_recorded_when_the_schedule_stops(database: str) -> None:
    job = ruled_job(NINE, "CRON", "0 * * * * ?")
    add_blackout(NINE, NINE + HOUR_MS)
    with session_scope() as session:
        session.get_one(Job, job.id).trigger_next_time = NINE
        switch_off(session, [job.id], clock=lambda: NINE + SECOND_MS)

    assert all_rows(Skip) == []


def test_a_moved_instant_runs_once_and_keeps_its_logical_time(database: str) -> None:
    put_calendar({"2024-05-01": "holiday", "2024-05-02": "holiday"})
    job = ruled_job(0, "CRON", "0 0 9 1 * ?", calendar=WORKDAYS | {"otherwise": "next"})
    with session_scope() as session:
        session.get_one(Job, job.id).trigger_next_time = NINE + 2 * DAY_MS

    pass_time(NINE)
    assert all_rows(JobLog) == []
    pass_time(NINE + 2 * DAY_MS)

    run = only_row(JobLog)
    assert (run.fire_time, run.logical_ms) == (NINE + 2 * DAY_MS, NINE)
    tally = account_of(job, NINE + 3 * DAY_MS).tally
    assert (tally.expected, tally.on_time, tally.unexplained, tally.unexpected) == (1, 1, 0, 0)


def test_a_blackout_withdraws_what_is_read_ahead_and_moves_the_next_time_to_its_end(database: str) -> None:
    job = ruled_job(T0 + 2_000, "CRON", "* * * * * ?")
    scan(node="one", zone=ZONE, now_ms=T0)
    assert len(all_rows(Fire)) > 1

    add_blackout(T0 + 1_000, T0 + HOUR_MS, now_ms=T0)

    assert all_rows(Fire) == []
    assert _next(job) == T0 + HOUR_MS


def test_a_schedule_rests_while_a_blackout_has_no_end_and_goes_on_after_it(database: str) -> None:
    job = ruled_job(T0 + 2_000, "CRON", "* * * * * ?")
    blackout_id = add_blackout(T0, None)
    assert _next(job) == RESTING
    pass_time(T0 + HOUR_MS)

    end_blackout(blackout_id, now_ms=T0 + HOUR_MS)

    assert _next(job) == T0 + HOUR_MS + SECOND_MS
    assert only_row(Job, id=job.id).trigger_status == 1


def test_the_latest_instant_runs_once_at_the_end_of_a_blackout(database: str) -> None:
    job = ruled_job(NINE, "CRON", "0 0 * * * ?")
    add_blackout(NINE, NINE + 150 * MINUTE_MS, now_ms=T0, afterwards="run_once")
    assert _next(job) == T0 - T0 % HOUR_MS + HOUR_MS
    with session_scope() as session:
        session.get_one(Job, job.id).trigger_next_time = NINE + 150 * MINUTE_MS

    pass_time(NINE + 150 * MINUTE_MS)

    run = only_row(JobLog)
    assert (run.trigger_type, run.logical_ms) == ("MISFIRE", NINE + 2 * HOUR_MS)
    assert run.fire_time == NINE + 150 * MINUTE_MS


def test_an_instant_at_the_end_itself_runs_besides(database: str) -> None:
    ruled_job(T0 + 10_000, "CRON", "0/5 * * * * ?")
    add_blackout(T0, T0 + 10_000, afterwards="run_once")
    pass_time(T0 + 10_000)

    runs = sorted((run.fire_time, run.logical_ms, run.trigger_type) for run in all_rows(JobLog))

    assert runs[0] == (T0 + 10_000, T0 + 10_000, "CRON")
    scan(node="one", zone=ZONE, now_ms=T0 + 10_001)
    claim_due(T0 + 10_001)
    types = {run.trigger_type: run.logical_ms for run in all_rows(JobLog)}
    assert types["MISFIRE"] == T0 + 5_000


def test_a_fixed_rate_keeps_its_phase_through_a_blackout_that_runs_once(database: str) -> None:
    job = ruled_job(T0 + 7_000, "FIX_RATE", "7")
    add_blackout(T0 + 10_000, T0 + 30_000, afterwards="run_once")

    for second in range(60):
        pass_time(T0 + second * SECOND_MS)

    due = sorted(run.fire_time - T0 for run in all_rows(JobLog))
    assert due == [7_000, 30_000, 35_000, 42_000, 49_000, 56_000]
    tally = account_of(job, T0 + 59_000).tally
    assert (tally.unexplained, tally.unexpected, tally.skipped["blackout"]) == (0, 0, 2)


def test_a_fixed_delay_runs_at_the_end_of_a_blackout(database: str) -> None:
    job = ruled_job(T0 + 2_000, "FIX_DELAY", "60")
    add_blackout(T0, T0 + HOUR_MS)

    pass_time(T0 + 2_000)

    assert all_rows(JobLog) == []
    assert _next(job) == T0 + HOUR_MS


def test_the_scan_leaves_out_an_instant_that_does_not_run_any_more(database: str) -> None:
    job = ruled_job(T0 + 2_000, "CRON", "* * * * * ?")
    add_blackout(T0, T0 + HOUR_MS)
    with session_scope() as session:  # as one of so many jobs that the monitor has not planned it yet
        session.get_one(Job, job.id).trigger_next_time = T0 + 2_000

    scan(node="one", zone=ZONE, now_ms=T0 + 2_000)

    assert all_rows(Fire) == []
    assert _next(job) == T0 + HOUR_MS


def test_the_monitor_plans_jobs_that_a_change_has_not_planned(database: str) -> None:
    job = ruled_job(T0 + 2_000, "CRON", "* * * * * ?")
    blackout_id = add_blackout(T0, None)
    end_blackout(blackout_id, now_ms=T0 + HOUR_MS)
    with session_scope() as session:
        session.get_one(Job, job.id).trigger_next_time = RESTING

    RuleReplanning(ZONE).tick(T0 + HOUR_MS + 10)

    assert _next(job) == T0 + HOUR_MS + SECOND_MS


def test_the_monitor_plans_from_the_first_of_several_changes_on(database: str) -> None:
    job = ruled_job(T0 + 2_000, "CRON", "* * * * * ?")
    blackout_id = add_blackout(T0, None)
    replanning = RuleReplanning(ZONE)
    replanning.tick(T0 + SECOND_MS)
    end_blackout(blackout_id, now_ms=T0 + HOUR_MS)
    add_blackout(T0 + DAY_MS, None, now_ms=T0 + HOUR_MS + 3_000, group_id=0)
    with session_scope() as session:  # as one of so many jobs that no change has planned it
        session.get_one(Job, job.id).trigger_next_time = RESTING

    replanning.tick(T0 + HOUR_MS + 4_000)

    assert _next(job) == T0 + HOUR_MS + SECOND_MS


def test_a_retry_waits_for_the_end_of_a_blackout(database: str) -> None:
    job = make_job(time_zone=ZONE)
    add_blackout(T0, T0 + HOUR_MS)
    fire = make_fire(job, trigger_type="RETRY", due_time=T0 + 1_000)

    assert claim_due(T0 + 1_000) == []
    waiting = only_row(Fire, id=fire.id)
    assert (waiting.state, waiting.waits_for) == ("GATED", "blackout")
    assert resume(now_ms=T0 + 2_000)
    assert claim_due(T0 + 2_000) == []

    assert not resume(now_ms=T0 + HOUR_MS)
    assert [run.fire_id for run in claim_due(T0 + HOUR_MS)] == [fire.id]


def test_an_instant_that_has_waited_for_the_end_of_a_blackout_is_not_late(database: str) -> None:
    job = make_job(time_zone=ZONE)
    fire = make_fire(job, trigger_type="CRON", due_time=T0)  # It waited for a limit before.
    add_blackout(T0 + SECOND_MS, T0 + HOUR_MS, now_ms=T0)
    assert claim_due(T0 + 2 * MINUTE_MS) == []
    resume(now_ms=T0 + HOUR_MS)

    assert not settle_late([DueFire(fire.id, job.id, T0)], node="one", zone=ZONE, now_ms=T0 + HOUR_MS)

    assert [run.fire_id for run in claim_due(T0 + HOUR_MS)] == [fire.id]


def test_an_instant_that_a_user_starts_although_it_has_waited_is_not_late(database: str) -> None:
    job = make_job(time_zone=ZONE)
    fire = make_fire(job, trigger_type="CRON", due_time=T0, admitted_ms=T0 + HOUR_MS)

    assert not settle_late([DueFire(fire.id, job.id, T0)], node="one", zone=ZONE, now_ms=T0 + HOUR_MS)


def test_runs_that_wait_for_long_do_not_keep_others_waiting(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen, job = make_job(time_zone=ZONE), make_job(time_zone=ZONE)
    add_blackout(T0, None, job_id=frozen.id)
    add_blackout(T0, T0 + HOUR_MS, job_id=job.id)
    make_fire(frozen, trigger_type="RETRY", due_time=T0 + 1_000)
    fire = make_fire(job, trigger_type="RETRY", due_time=T0 + 2_000)
    claim_due(T0 + 2_000)
    monkeypatch.setattr(paused_fires, "PAUSED_MAX", 1)
    resume(now_ms=T0 + HOUR_MS)

    assert [run.fire_id for run in claim_due(T0 + HOUR_MS)] == [fire.id]


def test_a_run_that_a_user_has_forced_starts_in_a_blackout(database: str) -> None:
    job = make_job(time_zone=ZONE)
    add_blackout(T0, T0 + HOUR_MS)
    fire = make_fire(job, trigger_type="MANUAL", due_time=T0 + 1_000, admitted_ms=T0 + 1_000)

    assert [run.fire_id for run in claim_due(T0 + 1_000)] == [fire.id]


def test_an_instant_from_just_before_a_blackout_starts(database: str) -> None:
    job = make_job(time_zone=ZONE)
    add_blackout(T0 + 1_000, T0 + HOUR_MS)
    just_before = make_fire(job, due_time=T0 + 500)
    make_fire(job, due_time=T0 - 2 * MINUTE_MS)

    assert [run.fire_id for run in claim_due(T0 + 2_000)] == [just_before.id]


def test_excluded_instants_get_one_row_that_grows(database: str) -> None:
    job = ruled_job(T0 + 5_000, "CRON", "0/5 * * * * ?")
    add_blackout(T0 + 2_000, T0 + HOUR_MS)

    tick_explained(T0 + 30_000)
    tick_explained(T0 + 60_000)

    row = only_row(Skip)
    assert (row.job_id, row.reason, row.from_ms, row.to_ms) == (job.id, "blackout", T0 + 5_000, T0 + 60_000)
    assert row.skipped == 12
    tally = account_of(job, T0 + 60_000).tally
    assert (tally.expected, tally.skipped["blackout"], tally.unexplained) == (12, 12, 0)


def test_a_job_of_another_group_is_left_alone(database: str) -> None:
    job, other = ruled_job(T0 + 2_000, "CRON", "* * * * * ?"), ruled_job(T0 + 2_000, "CRON", "* * * * * ?")

    add_blackout(T0, T0 + HOUR_MS, group_id=job.job_group)

    assert (_next(job), _next(other)) == (T0 + HOUR_MS, T0 + SECOND_MS)


def test_the_book_has_a_new_number_after_each_change(database: str) -> None:
    numbers = set()
    for _ in range(3):
        change_rules(lambda session, change: None)
        with session_scope() as session:
            numbers.add(current_book.refresh(session).number)

    assert len(numbers) == 3


def test_a_fixed_rate_that_is_switched_on_while_it_rests_begins_at_the_end(database: str) -> None:
    blackout_id = add_blackout(T0, None)
    job = ruled_job(0, "FIX_RATE", "7", trigger_status=0)
    with session_scope() as session:
        switch_on(session, [job.id], clock=lambda: T0 + SECOND_MS)
    assert _next(job) == RESTING

    end_blackout(blackout_id, now_ms=T0 + 10_000)
    for second in range(10, 40):
        pass_time(T0 + second * SECOND_MS)

    tally = account_of(job, T0 + 35_000).tally
    assert (tally.on_time, tally.unexplained, tally.unexpected) == (3, 0, 0)


def test_a_job_that_is_switched_on_after_a_change_is_not_planned_from_the_change_on(database: str) -> None:
    job = ruled_job(0, "CRON", "0 0 * * * ?", trigger_status=0)
    add_blackout(T0, T0 + MINUTE_MS)
    replanning = RuleReplanning(ZONE)
    replanning.tick(T0 + SECOND_MS)
    with session_scope() as session:
        switch_on(session, [job.id], clock=lambda: NINE + SECOND_MS)

    replanning.tick(NINE + MINUTE_MS)

    assert _next(job) == NINE + HOUR_MS


def test_a_span_without_excluded_instants_is_not_searched_from_its_beginning_again(database: str) -> None:
    job = ruled_job(NINE, "CRON", "0 0 9 * * ?")
    add_blackout(T0, None, cron="0 0 2 * * ?", duration_s=600)

    tick_explained(NINE + 10 * DAY_MS)

    explained_ms = only_row(JobSpan, job_id=job.id).explained_ms
    assert NINE + 10 * DAY_MS - HOUR_MS < explained_ms < NINE + 10 * DAY_MS
    assert all_rows(Skip) == []


@pytest.mark.parametrize(("shard", "starts"), [({}, True), ({"trigger_type": "RETRY"}, False)])
def test_the_shards_of_a_broadcast_that_has_begun_all_start(
    database: str, shard: dict[str, str], starts: bool
) -> None:
    job = make_job(time_zone=ZONE, executor_route_strategy="SHARDING_BROADCAST")
    add_blackout(T0, T0 + HOUR_MS)
    values = {"trigger_type": "MANUAL", "sharding_param": "1/2", "address": FIRST} | shard
    make_fire(job, due_time=T0 + 1_000, **values)

    assert bool(claim_due(T0 + 1_000)) is starts
