"""Rounds in the pipeline: what arrives, what follows, what waits and what is not run.

Source: docs/reference/rounds.md.
"""

from app.clock import Millis
from app.database.engine import session_scope
from app.models.code import CodeObject
from app.models.fire import Fire
from app.models.log import JobLog
from app.models.round import Round
from app.models.skip import Skip
from app.pipeline.complete import Result, Source
from app.pipeline.late import settle_late
from app.pipeline.scan import scan
from tests.pipeline.round_steps import claim_due, follow, following, look, outcomes, run, states
from tests.pipeline.steps import as_due, call_back, end, run_concurrently, unresolve
from tests.support.factories import (
    FIRST,
    SECOND,
    T0,
    all_rows,
    make_due_job,
    make_fire,
    make_job,
    only_row,
    remove,
    save,
)
from tests.support.plan import every_database

pytestmark = every_database

HOUR: Millis = 3_600_000


def test_a_job_runs_once_after_all_its_predecessors_of_a_logical_time(database: str) -> None:
    first, second = make_job(), make_job()
    last = follow(first, second)
    run(first, logical_ms=T0 - HOUR)
    assert not following(last)
    log_id = run(second, logical_ms=T0 - HOUR)
    (fire,) = following(last)
    row = only_row(Round)
    assert (fire.fire_key, fire.logical_ms, fire.round_id) == (f"after:{row.id}:{log_id}", T0 - HOUR, row.id)
    (claimed,) = claim_due()
    log = only_row(JobLog, id=claimed.log_id)
    assert (log.trigger_type, log.round_id, log.source_log_id, log.logical_ms) == (
        "AFTER",
        row.id,
        log_id,
        T0 - HOUR,
    )
    assert only_row(Round).log_id == log.id
    # The same predecessors once more, for the same time: the round has had its run.
    run(first, logical_ms=T0 - HOUR)
    run(second, logical_ms=T0 - HOUR)
    assert states(last) == [(f"t:{T0 - HOUR}", "started", "")]
    assert len(all_rows(JobLog, job_id=last.id)) == 1


def test_two_ends_at_once_start_one_run(database: str) -> None:
    predecessors = [make_job() for _ in range(4)]
    last = follow(*predecessors)
    for job in predecessors:
        make_fire(job, due_time=T0)
    log_ids = [each.log_id for each in claim_due()]
    run_concurrently(*((lambda log_id=log_id: call_back(log_id)) for log_id in log_ids))
    assert len(following(last)) == 1
    assert states(last) == [(f"t:{T0}", "started", "")]


def test_a_failure_that_is_retried_is_neither_ended_nor_failed(database: str) -> None:
    first = make_job(executor_fail_retry_count=1)
    last = follow(first)
    run(first, 500)
    assert outcomes(last) == {(first.id, 0): "retrying"}
    assert states(last) == [(f"t:{T0}", "open", "")]
    (claimed,) = claim_due(T0 + 60_000)
    assert call_back(claimed.log_id, now_ms=T0 + 60_000)
    assert states(last) == [(f"t:{T0}", "started", "")]


def test_a_round_that_cannot_be_complete_is_not_run_and_names_the_cause(database: str) -> None:
    first, second = make_job(), make_job()
    last = follow(first, second)
    final = follow(last)
    failed_id = run(first, 500)
    assert states(last) == [(f"t:{T0}", "not_run", "predecessor")]
    skip = only_row(Skip, job_id=last.id)
    assert (skip.reason, skip.trigger_type, skip.from_ms) == ("predecessor", "AFTER", T0)
    assert only_row(Round, job_id=last.id).cause_log_id == failed_id
    look()
    assert states(final) == [(f"t:{T0}", "not_run", "predecessor")]
    assert only_row(Round, job_id=final.id).cause_log_id == failed_id
    assert not [row for row in all_rows(Round) if row.due_ms]


def test_a_later_success_decides_a_round_anew_all_the_way(database: str) -> None:
    first = make_job()
    last = follow(first)
    final = follow(last)
    failed_id = run(first, 500)
    look()
    run(first, trigger_type="MANUAL", repeats_log_id=failed_id, logical_ms=T0, now_ms=T0 + 5)
    assert states(last) == [(f"t:{T0}", "started", "")]
    assert not all_rows(Skip, job_id=last.id)
    (claimed,) = claim_due(T0 + 10)
    call_back(claimed.log_id)
    assert states(final) == [(f"t:{T0}", "started", "")]
    assert not all_rows(Skip)


def test_an_unresolved_run_counts_as_failed_until_its_late_result(database: str) -> None:
    first = make_job()
    last = follow(first)
    make_fire(first)
    (claimed,) = claim_due()
    unresolve(claimed.log_id)
    assert outcomes(last) == {(first.id, 0): "unresolved"}
    assert states(last) == [(f"t:{T0}", "not_run", "predecessor")]
    assert call_back(claimed.log_id)
    assert states(last) == [(f"t:{T0}", "started", "")]


def test_the_rules_all_ended_any_and_some_of_them(database: str) -> None:
    jobs = [make_job() for _ in range(3)]
    ended = follow(*jobs, rule="all_ended")
    one = follow(*jobs, rule="any_succeeded")
    two = follow(*jobs, rule="k_of_n", k=2)
    run(jobs[0], 500)
    assert not [*following(ended), *following(one), *following(two)]
    run(jobs[1])
    assert (len(following(one)), len(following(two))) == (1, 0)
    run(jobs[2])
    assert len(following(ended)) == 1
    assert (len(following(one)), len(following(two))) == (1, 1)


def test_all_shards_have_to_succeed_or_as_many_as_the_rule_says(database: str) -> None:
    first = make_job(executor_route_strategy="SHARDING_BROADCAST", addresses=f"{FIRST},{SECOND}")
    every = follow(first)
    some = follow(first, shards="at_least", shards_k=1)
    make_fire(first)
    one, two = claim_due()
    call_back(one.log_id)
    assert (len(following(some)), len(following(every))) == (1, 0)
    call_back(two.log_id, 500)
    assert states(every) == [(f"t:{T0}", "not_run", "predecessor")]
    assert outcomes(every) == {(first.id, 0): "succeeded", (first.id, 1): "failed"}


def test_a_day_is_that_of_the_zone_of_the_job_that_follows(database: str) -> None:
    first, second = make_job(), make_job()
    shanghai = follow(
        first, second, round="day", job=make_job(schedule_type="NONE", time_zone="Asia/Shanghai")
    )
    utc = follow(first, second, round="day", job=make_job(schedule_type="NONE", time_zone="UTC"))
    late_ms = T0 // 86_400_000 * 86_400_000 + 17 * HOUR  # 17:00 in UTC, 01:00 of the next day in Shanghai
    run(first, logical_ms=late_ms - 2 * HOUR)
    run(second, logical_ms=late_ms)
    assert len(following(utc)) == 1
    assert not following(shanghai)
    assert len(states(shanghai)) == 2


def test_since_the_last_round_each_success_counts_once(database: str) -> None:
    often, daily = make_job(), make_job()
    last = follow(often, daily, round="since_last")
    for number in range(3):
        run(often, logical_ms=T0 + number)
    assert states(last) == [("s:0", "open", "")]
    run(daily, logical_ms=T0 + 10)
    first_round = only_row(Round, state="started")
    run(often, logical_ms=T0 + 20)
    assert states(last) == [("s:0", "started", ""), (f"s:{first_round.id}", "open", "")]
    run(daily, logical_ms=T0 + 30)
    assert [state for _, state, _ in states(last)] == ["started", "started"]
    assert [fire.logical_ms for fire in following(last)] == [T0 + 10, T0 + 30]


def test_since_the_last_round_a_success_decides_one_that_was_not_run(database: str) -> None:
    first = make_job()
    last = follow(first, round="since_last")
    run(first, 500, logical_ms=T0)
    assert states(last) == [("s:0", "not_run", "predecessor")]
    run(first, logical_ms=T0 + 1)
    assert states(last) == [("s:0", "started", "")]


def test_a_run_by_hand_arrives_only_where_it_stands_for_a_time(database: str) -> None:
    first = make_job()
    of_time, of_day = follow(first), follow(first, round="day")
    run(first, trigger_type="MANUAL", due_time=T0)
    assert not states(of_time)
    assert len(following(of_day)) == 1
    run(first, trigger_type="MANUAL", due_time=T0, logical_ms=T0 - HOUR)
    assert len(following(of_time)) == 1


def test_the_wait_ends_at_the_deadline(database: str) -> None:
    first, second = make_job(), make_job()
    dropped = follow(first, second, deadline_s=60)
    started = follow(first, second, deadline_s=60, at_deadline="run")
    patient = follow(first, second, deadline_s=60, at_deadline="wait")
    run(first)
    look(T0 + 59_000)
    assert {state for job in (dropped, started, patient) for _, state, _ in states(job)} == {"open"}
    look(T0 + 60_000)
    assert states(dropped) == [(f"t:{T0}", "not_run", "deadline")]
    assert only_row(Skip).reason == "deadline"
    assert only_row(Round, job_id=started.id).incomplete == 1
    assert len(following(started)) == 1
    assert states(patient) == [(f"t:{T0}", "open", "")]
    # What comes after the deadline changes nothing, unless a user asks for it.
    run(second)
    assert states(dropped) == [(f"t:{T0}", "not_run", "deadline")]
    look(T0 + 31 * 86_400_000)
    assert len(following(patient)) == 1


def test_skipped_instants_of_a_predecessor_arrive(database: str) -> None:
    first = make_due_job(T0 - HOUR, "FIX_RATE", "600", misfire_strategy="DO_NOTHING")
    last = follow(first)
    scan(node="one", zone="UTC", now_ms=T0)
    assert states(last) == [
        (f"t:{T0 - HOUR + number * 600_000}", "not_run", "predecessor") for number in range(7)
    ]


def test_an_instant_waits_for_its_round(database: str) -> None:
    first = make_job()
    last = follow(first, job=make_job(schedule_type="CRON", schedule_conf="0 0 * * * ?"))
    make_fire(last, due_time=T0)
    assert not claim_due()
    fire = only_row(Fire)
    assert (fire.state, fire.waits_for, fire.log_id) == ("GATED", "predecessors", None)
    look()
    assert only_row(Fire).state == "GATED"
    run(first)
    assert not following(last)
    look(T0 + 1_000)
    (claimed,) = claim_due(T0 + 1_000)
    assert claimed.fire_id == fire.id
    log = only_row(JobLog, job_id=last.id)
    assert (log.trigger_type, log.fire_time, log.round_id) == ("CRON", T0, fire.round_id)


def test_an_instant_runs_at_once_if_its_round_has_started(database: str) -> None:
    first = make_job()
    last = follow(first, round="day", job=make_job(schedule_type="CRON", schedule_conf="0 0 * * * ?"))
    run(first)
    for number in range(2):
        make_fire(last, due_time=T0 + number * 1_000)
    assert [each.due_ms for each in claim_due(T0 + 5_000)] == [T0, T0 + 1_000]


def test_each_instant_since_the_last_round_needs_a_round_of_its_own(database: str) -> None:
    first = make_job()
    last = follow(first, round="since_last", job=make_job(schedule_type="CRON", schedule_conf="0 0 * * * ?"))
    run(first, logical_ms=T0 - 1_000)
    make_fire(last, due_time=T0)
    make_fire(last, due_time=T0 + 1_000)
    assert [each.due_ms for each in claim_due(T0 + 5_000)] == [T0]
    assert only_row(Fire, state="GATED").due_time == T0 + 1_000
    run(first, logical_ms=T0 + 2_000)
    look()
    assert [each.due_ms for each in claim_due(T0 + 5_000)] == [T0 + 1_000]


def test_an_instant_is_skipped_with_its_round_and_runs_after_a_later_success(database: str) -> None:
    first = make_job()
    last = follow(first, job=make_job(schedule_type="CRON", schedule_conf="0 0 * * * ?"))
    make_fire(last, due_time=T0)
    claim_due()
    failed_id = run(first, 500)
    look()
    assert not all_rows(Fire, job_id=last.id)
    skip = only_row(Skip)
    assert (skip.reason, skip.trigger_type, skip.from_ms) == ("predecessor", "", T0)
    run(first, trigger_type="MANUAL", repeats_log_id=failed_id, logical_ms=T0)
    (fire,) = following(last)
    assert fire.logical_ms == T0
    # The instant itself stays skipped: that is what became of it.
    assert only_row(Skip).reason == "predecessor"


def test_a_late_instant_that_waited_for_its_round_is_no_misfire(database: str) -> None:
    first = make_job()
    last = follow(first, job=make_job(schedule_type="CRON", schedule_conf="0 0 * * * ?"))
    make_fire(last, due_time=T0)
    claim_due()
    run(first, now_ms=T0 + HOUR)
    look(T0 + HOUR)
    due = as_due(all_rows(Fire, state="PENDING"))
    assert not settle_late(due, node="one", zone="UTC", now_ms=T0 + HOUR)
    assert len(claim_due(T0 + HOUR)) == 1


def test_a_killed_or_refused_predecessor_has_failed(database: str) -> None:
    killed, refused = make_job(), make_job()
    last = follow(killed, refused, rule="all_ended")
    for job in (killed, refused):
        make_fire(job)
    one, two = claim_due()
    end(Result(one.log_id, Source.KILL, 500, "killed"))
    end(Result(two.log_id, Source.REFUSED, trigger_code=500, trace="no"))
    assert set(outcomes(last).values()) == {"failed"}
    assert len(following(last)) == 1


def test_a_predecessor_that_is_gone_was_not_run(database: str) -> None:
    first, second = make_job(), make_job()
    last = follow(first, second)
    run(first)
    remove(second)
    with session_scope() as session:
        session.get_one(Round, only_row(Round).id).due_ms = T0
    look()
    assert states(last) == [(f"t:{T0}", "not_run", "predecessor")]
    assert outcomes(last)[second.id, 0] == "not_run"


def test_predecessors_give_their_results_to_the_run_that_follows(database: str) -> None:
    first = make_job()
    shards = make_job(executor_route_strategy="SHARDING_BROADCAST", addresses=f"{FIRST},{SECOND}")
    save(CodeObject(kind="job", managed_key="demo/load", object_id=first.id, fields="{}"))
    by_id = f"${{parents.{first.id}.result}}"
    template = f"${{parents.load.result.rows}} {by_id} ${{shards.results}} ${{parent.result}}"
    last = follow(
        first,
        shards,
        shards="any",
        job=make_job(executor_param=template, fill_parameter=1, executor_fail_retry_count=1),
    )
    make_fire(first)
    make_fire(shards)
    runs = {each.job_id: each.log_id for each in claim_due()[:2]}
    call_back(runs[first.id], 200, '{"rows": 3}')
    call_back(runs[shards.id], 200, "zero")
    (claimed,) = [each for each in claim_due() if each.job_id == last.id]
    expected = '3 {"rows": 3} ["zero",null] zero'
    assert claimed.request.executor_params == expected
    call_back(claimed.log_id, 500)
    (retry,) = [each for each in claim_due(T0 + 60_000) if each.job_id == last.id]
    assert retry.request.executor_params == expected
    assert only_row(JobLog, id=retry.log_id).round_id == only_row(Round).id
