"""Successors of a result: children, retries, alarms and the next time of a fixed delay, each exactly once."""

import pytest

from app.clock import Millis
from app.domain.runs.trigger_report import RESULT_CUT
from app.models.alarm import Alarm
from app.models.fire import Fire
from app.models.job import AFTER_THE_CURRENT_RUN, Job
from app.models.log import JobLog
from app.pipeline.complete import Result, Source
from app.pipeline.retries import RETRY_WAIT_MAX_MS, RETRY_WAIT_MIN_MS
from tests.pipeline.steps import call_back, claim_fires, end, record_sent, sent, unresolve
from tests.support.factories import (
    FIRST,
    SECOND,
    T0,
    all_rows,
    make_due_job,
    make_fire,
    make_job,
    make_log,
    make_run,
    only_row,
    remove,
    save,
)

DAY_MS = 86_400_000


def children_of(child_jobid: str | None) -> tuple[list[Fire], str | None]:
    """End a run of a parent successfully; return the fires of its children and its result text."""
    run = make_run(make_job(child_jobid=child_jobid))
    assert call_back(run.id, 200, "done")
    return all_rows(Fire), only_row(JobLog, id=run.id).handle_msg


def test_each_child_is_fired_once_and_at_once(database: str) -> None:
    first_child, second_child = make_job(trigger_status=0), make_job()
    run = make_run(make_job(child_jobid=f"{first_child.id},{second_child.id}"))
    call_back(run.id, 200, "done", now_ms=T0 + 70)
    fires = all_rows(Fire)
    assert [(fire.job_id, fire.fire_key) for fire in fires] == [
        (child.id, f"child:{run.id}:{child.id}") for child in (first_child, second_child)
    ]
    assert {(fire.due_time, fire.trigger_type, fire.state, fire.owner) for fire in fires} == {
        (T0 + 70, "PARENT", "PENDING", "")
    }
    assert {
        (fire.executor_param, fire.address_list, fire.sharding_param, fire.fail_retry_count) for fire in fires
    } == {(None, None, None, -1)}
    assert (
        only_row(JobLog).handle_msg == f"done\n>>> child jobs <<<\n1/2 job {first_child.id}: triggered\n"
        f"2/2 job {second_child.id}: triggered"
    )


@pytest.mark.parametrize(
    ("child_jobid", "ids"),
    [
        (None, []),
        ("", []),
        ("  ", []),
        ("7,7, 7 ,07", [7]),
        ("7,8", [7, 8]),
        ("x,7,-3,0,1.5,,99999999999999999999,2147483648,½,７", [7]),
        ("2147483647", [2**31 - 1]),
    ],
)
def test_stored_child_ids_may_be_malformed(database: str, child_jobid: str | None, ids: list[int]) -> None:
    fires, text = children_of(child_jobid)
    assert [fire.job_id for fire in fires] == ids
    if not (child_jobid or "").strip():
        assert text == "done"
    else:
        lines = (text or "").splitlines()
        assert lines[:2] == ["done", ">>> child jobs <<<"]
        assert len(lines) == 2 + len((child_jobid or "").split(","))


def test_a_job_is_never_its_own_child(database: str) -> None:
    job = make_job()
    job.child_jobid = f"{job.id},{job.id + 1}"
    save(job)
    call_back(make_run(job).id, 200)
    assert [fire.job_id for fire in all_rows(Fire)] == [job.id + 1]
    assert f"1/2 job {job.id}: not triggered: not the id of another job" in (
        only_row(JobLog).handle_msg or ""
    )


def test_a_child_that_does_not_exist_is_removed_by_its_claim(database: str) -> None:
    _, text = children_of("4711")
    assert text == "done\n>>> child jobs <<<\n1/1 job 4711: not triggered: there is no such job"
    assert claim_fires().claims == []
    assert all_rows(Fire) == []
    assert len(all_rows(JobLog)) == 1


@pytest.mark.parametrize("code", [500, 502, 403, 1])
def test_a_failure_fires_no_child(database: str, code: int) -> None:
    call_back(make_run(make_job(child_jobid="7")).id, code, "no")
    assert all_rows(Fire) == []
    assert only_row(JobLog).handle_msg == "no"


def test_a_long_result_is_cut_and_the_children_stay_readable(database: str) -> None:
    child = make_job()
    call_back(make_run(make_job(child_jobid=str(child.id))).id, 200, "x" * 60_000)
    stored = only_row(JobLog).handle_msg or ""
    assert (len(stored), RESULT_CUT in stored) == (50_000, True)
    assert stored.endswith(f"1/1 job {child.id}: triggered")


def test_each_shard_fires_children(database: str) -> None:
    """As in the original: once for every shard that succeeds."""
    job = make_job(child_jobid="7")
    for index in range(3):
        call_back(make_run(job, log={"executor_sharding_param": f"{index}/3"}).id, 500 if index == 1 else 200)
    assert [(fire.job_id, fire.trigger_type) for fire in all_rows(Fire)] == [(7, "PARENT"), (7, "PARENT")]


def test_a_result_of_a_deleted_job_ends_its_run(database: str) -> None:
    job = make_job(child_jobid="7", executor_fail_retry_count=3)
    succeeded, failed = make_run(job), make_run(job)
    remove(job)
    assert call_back(succeeded.id, 200, "done")
    assert call_back(failed.id, 500, "no")
    assert [(log.handle_code, log.alarm_status) for log in all_rows(JobLog)] == [(200, 0), (500, 1)]
    assert all_rows(Fire) == all_rows(Alarm) == []


def test_retries_count_down_to_the_last(database: str) -> None:
    make_fire(make_job(executor_fail_retry_count=2))
    retries_left = []
    for _ in range(5):
        claims = claim_fires(now_ms=T0 + DAY_MS).claims
        for claimed in claims:
            record_sent(sent(claimed))
            call_back(claimed.log_id, 500, "no", now_ms=T0)
            retries_left.append(only_row(JobLog, id=claimed.log_id).executor_fail_retry_count)
    assert retries_left == [2, 1, 0], "a job with two retries has three rows"
    assert all_rows(Fire) == []
    assert len(all_rows(Alarm)) == 3, "every failed row has its alarm, as in the original"


@pytest.mark.parametrize(
    ("retries", "left", "interval_s", "backoff", "wait_ms"),
    [
        (3, 3, 0, 100, RETRY_WAIT_MIN_MS),
        (3, 3, 10, 100, 10_000),
        (3, 2, 10, 100, 10_000),
        (3, 3, 10, 200, 10_000),
        (3, 2, 10, 200, 20_000),
        (3, 1, 10, 200, 40_000),
        (3, 2, 10, 150, 15_000),
        (3, 2, 10, 50, 5_000),
        (9, 1, 3600, 1000, RETRY_WAIT_MAX_MS),
        (5000, 1, 1, 1000, RETRY_WAIT_MAX_MS),
        (1, 3, 10, 200, 10_000),  # the job has fewer retries now than the run
    ],
)
def test_the_delay_before_a_retry(
    database: str, retries: int, left: int, interval_s: int, backoff: int, wait_ms: Millis
) -> None:
    job = make_job(
        executor_fail_retry_count=retries, retry_interval_s=interval_s, retry_backoff_percent=backoff
    )
    run = make_run(
        job, log={"executor_fail_retry_count": left, "executor_param": "p", "executor_sharding_param": "1/3"}
    )
    call_back(run.id, 500)
    retry = only_row(Fire)
    assert retry.due_time == T0 + wait_ms
    assert (retry.fire_key, retry.trigger_type, retry.fail_retry_count) == (
        f"retry:{run.id}:{left}",
        "RETRY",
        left - 1,
    )
    assert (retry.executor_param, retry.sharding_param, retry.address_list, retry.address) == (
        "p",
        "1/3",
        None,
        None,
    )


@pytest.mark.parametrize("now_retries", [1, 10])
def test_an_edit_of_the_retries_does_not_change_the_delays_of_a_run(database: str, now_retries: int) -> None:
    job = make_job(executor_fail_retry_count=3, retry_interval_s=10, retry_backoff_percent=200)
    make_fire(job)
    waits, at_ms = [], T0
    for _ in range(3):
        (claimed,) = claim_fires(now_ms=at_ms).claims
        record_sent(sent(claimed))
        job.executor_fail_retry_count = now_retries
        save(job)
        call_back(claimed.log_id, 500, now_ms=at_ms)
        retry = only_row(Fire)
        waits.append(retry.due_time - at_ms)
        at_ms = retry.due_time
    assert waits == [10_000, 20_000, 40_000]


@pytest.mark.parametrize("trigger_status", [0, 1])
def test_a_stopped_job_is_still_retried(database: str, trigger_status: int) -> None:
    call_back(make_run(make_job(executor_fail_retry_count=1, trigger_status=trigger_status)).id, 500)
    assert only_row(Fire).trigger_type == "RETRY"


def test_a_retry_of_a_run_without_a_parameter_has_none(database: str) -> None:
    call_back(make_run(make_job(executor_fail_retry_count=1), log={"executor_param": None}).id, 500)
    assert only_row(Fire).executor_param is None


@pytest.mark.parametrize(
    ("delivery", "retries"), [("auto", 0), ("at_most_once", 0), ("at_least_once", 1), ("unheard of", 0)]
)
def test_an_unresolved_run_is_only_retried_if_duplicates_are_allowed(
    database: str, delivery: str, retries: int
) -> None:
    run = make_run(make_job(executor_fail_retry_count=2, delivery=delivery))
    unresolve(run.id)
    assert len(all_rows(Fire)) == retries


@pytest.mark.parametrize("taken_up", [False, True], ids=["retry waits", "retry has ended"])
def test_a_late_failure_is_not_retried_a_second_time(database: str, taken_up: bool) -> None:
    run = make_run(make_job(executor_fail_retry_count=1, delivery="at_least_once"))
    unresolve(run.id)
    if taken_up:
        (claimed,) = claim_fires(now_ms=T0 + 500).claims
        record_sent(sent(claimed))
        call_back(claimed.log_id, 200)
    assert call_back(run.id, 500, "late")
    assert len(all_rows(Fire)) + len(all_rows(JobLog)) == 2, "one run and its one retry"


@pytest.mark.parametrize(
    ("alarm_status", "alarms", "after"),
    [(0, 1, -1), (-1, 0, -1), (1, 0, 1), (2, 0, 2), (3, 0, 3)],
    ids=["open", "locked", "1", "2", "3"],
)
def test_an_alarm_is_created_only_for_an_unmarked_row(
    database: str, alarm_status: int, alarms: int, after: int
) -> None:
    """A Java admin on the same database marks a row before it alarms and retries."""
    run = make_run(make_job(), log={"alarm_status": alarm_status})
    call_back(run.id, 500, now_ms=T0 + 5)
    assert only_row(JobLog).alarm_status == after
    found = all_rows(Alarm)
    assert len(found) == alarms
    for alarm in found:
        assert (alarm.log_id, alarm.job_id, alarm.reason, alarm.state) == (
            run.id,
            run.job_id,
            "failed",
            "PENDING",
        )
        assert (alarm.created_ms, alarm.next_ms, alarm.attempts, alarm.owner) == (T0 + 5, T0 + 5, 0, "")


def test_a_success_creates_no_alarm(database: str) -> None:
    call_back(make_run(make_job()).id, 200)
    assert all_rows(Alarm) == []
    assert only_row(JobLog).alarm_status == 0


def delay_job(**overrides: object) -> Job:
    return make_due_job(AFTER_THE_CURRENT_RUN, "FIX_DELAY", "20", **overrides)


def test_a_fixed_delay_counts_from_its_result(database: str) -> None:
    job = delay_job()
    call_back(make_run(job).id, 200, now_ms=T0 + 7000)
    assert only_row(Job).trigger_next_time == T0 + 27_000


def test_a_fixed_delay_waits_for_its_last_shard(database: str) -> None:
    job = delay_job(addresses=f"{FIRST},{SECOND}", executor_route_strategy="SHARDING_BROADCAST")
    make_fire(job)
    claim_fires()
    claims = claim_fires().claims
    record_sent(*(sent(claimed) for claimed in claims))
    call_back(claims[0].log_id, 200, now_ms=T0 + 1000)
    assert only_row(Job).trigger_next_time == AFTER_THE_CURRENT_RUN
    call_back(claims[1].log_id, 500, now_ms=T0 + 4000)
    assert only_row(Job).trigger_next_time == T0 + 24_000


def test_a_fixed_delay_waits_for_its_last_retry(database: str) -> None:
    job = delay_job(executor_fail_retry_count=1)
    call_back(make_run(job).id, 500, now_ms=T0)
    assert only_row(Job).trigger_next_time == AFTER_THE_CURRENT_RUN
    (retry,) = claim_fires(now_ms=T0 + 500).claims
    record_sent(sent(retry))
    assert only_row(Job).trigger_next_time == AFTER_THE_CURRENT_RUN
    call_back(retry.log_id, 500, now_ms=T0 + 9000)
    assert only_row(Job).trigger_next_time == T0 + 29_000


@pytest.mark.parametrize("trigger_type", ["MANUAL", "PARENT", "API"])
def test_another_run_does_not_move_a_fixed_delay(database: str, trigger_type: str) -> None:
    job = delay_job()
    make_run(job)
    other = make_run(job, trigger_type=trigger_type)
    call_back(other.id, 200)
    assert only_row(Job).trigger_next_time == AFTER_THE_CURRENT_RUN


def test_a_manual_run_between_two_of_a_fixed_delay_leaves_the_next_time(database: str) -> None:
    job = make_due_job(T0 + 5000, "FIX_DELAY", "20")
    call_back(make_run(job, trigger_type="MANUAL").id, 200)
    assert only_row(Job).trigger_next_time == T0 + 5000


def test_a_stopped_fixed_delay_stays_stopped(database: str) -> None:
    job = delay_job(trigger_status=0)
    call_back(make_run(job).id, 200)
    assert only_row(Job).trigger_status == 0
    assert only_row(Job).trigger_next_time == AFTER_THE_CURRENT_RUN


@pytest.mark.parametrize("fate", ["refused", "killed", "unresolved"])
def test_every_end_of_a_run_moves_a_fixed_delay(database: str, fate: str) -> None:
    run = make_run(delay_job(), log={"trigger_code": 0})
    ends = {
        "refused": Result(run.id, Source.REFUSED, trigger_code=500),
        "killed": Result(run.id, Source.KILL, 500, "killed"),
        "unresolved": Result(run.id, Source.RESOLVER, trigger_code=504),
    }
    end(ends[fate], now_ms=T0 + 3000)
    assert only_row(Job).trigger_next_time == T0 + 23_000


def test_a_late_callback_does_not_move_a_fixed_delay_again(database: str) -> None:
    run = make_run(delay_job())
    unresolve(run.id, now_ms=T0 + 1000)
    assert call_back(run.id, 200, now_ms=T0 + 9000)
    assert only_row(Job).trigger_next_time == T0 + 21_000


def test_runs_of_many_jobs_end_in_one_batch(database: str) -> None:
    jobs = [make_job(executor_fail_retry_count=1, child_jobid="7") for _ in range(4)] + [delay_job()]
    runs = [make_run(job) for job in jobs for _ in range(3)]
    done = end(
        *(
            Result(run.id, Source.CALLBACK, 200 if number % 2 else 500, str(number))
            for number, run in enumerate(runs)
        )
    )
    assert sorted(done.run_ids) == [run.id for run in runs]
    assert [log.handle_msg.partition("\n")[0] for log in all_rows(JobLog) if log.handle_msg] == [
        str(number) for number in range(15)
    ]
    kinds = [fire.trigger_type for fire in all_rows(Fire)]
    assert (kinds.count("RETRY"), kinds.count("PARENT")) == (6, 6)
    assert make_log(jobs[0]).id > runs[-1].id, "an id is never given twice"
