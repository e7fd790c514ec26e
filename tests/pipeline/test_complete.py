"""complete(): the first result wins, whatever its source and however often it is reported.

Source: docs/reference/pipeline.md, section 6.
"""

import pytest

from app.domain.runs.trigger_report import RESULT_CUT
from app.models.alarm import Alarm
from app.models.fire import Fire
from app.models.log import JobLog
from app.pipeline.complete import Completion, Result, Source, callback_result
from tests.pipeline.steps import call_back, end, run_concurrently, unresolve
from tests.support.factories import T0, all_rows, make_job, make_log, make_run, only_row
from tests.support.plan import every_database
from tests.support.statements import statements

pytestmark = every_database


def test_a_result_is_stored_and_its_fire_is_removed(database: str) -> None:
    run = make_run(make_job())
    done = end(callback_result(run.id, 200, "42 rows moved"), now_ms=T0 + 8000)
    assert done == Completion((run.id,), {})
    log = only_row(JobLog)
    assert (log.handle_code, log.handle_msg, log.handle_time) == (200, "42 rows moved", T0 + 8000)
    assert (log.trigger_code, log.trigger_msg, log.alarm_status) == (200, "sent", 0)
    assert all_rows(Fire) == all_rows(Alarm) == []


@pytest.mark.parametrize(
    ("sent_ms", "stored"), [(T0 + 680, 320), (T0 + 1_000, 0), (T0 + 1_001, None), (0, None)]
)
def test_the_duration_runs_from_the_last_send(database: str, sent_ms: int, stored: int | None) -> None:
    """It is not stored where no send is known, nor after the clock was set back."""
    run = make_run(make_job(), sent_ms=sent_ms)
    ended = Result(run.id, Source.KILL, 500, "killed by ann")
    end(ended, now_ms=T0 + 1_000)
    assert (only_row(JobLog).duration_ms, only_row(JobLog).killed) == (stored, 1)


def test_a_batch_of_results_needs_as_many_statements_as_one(database: str) -> None:
    job = make_job()
    first, *others = [make_run(job, sent_ms=T0 - number) for number in range(1, 52)]
    counts = []
    for runs in ([first], others):
        with statements() as executed:
            end(*(callback_result(run.id, 200 + run.id % 2, str(run.id)) for run in runs))
        counts.append(len(executed))
    assert counts[0] == counts[1]
    assert [log.duration_ms for log in all_rows(JobLog)] == list(range(1, 52))
    assert [log.handle_msg for log in all_rows(JobLog)] == [str(run.id) for run in [first, *others]]


@pytest.mark.parametrize(
    ("code", "message", "stored", "text"),
    [
        (200, None, 200, None),
        (200, "", 200, ""),
        (500, "boom", 500, "boom"),
        (502, "job execute timeout ", 502, "job execute timeout "),
        (403, "litert", 403, "litert"),
        (1, None, 1, None),
        (2**31 - 1, "largest", 2**31 - 1, "largest"),
        (2**31, "too large", 500, "handle code 2147483648 reported; too large"),
        (10**30, None, 500, f"handle code {10**30} reported"),
        (-1, "negative", 500, "handle code -1 reported; negative"),
        (-(2**31), "", 500, "handle code -2147483648 reported"),
    ],
)
def test_codes_of_all_sizes_are_stored(
    database: str, code: int, message: str | None, stored: int, text: str | None
) -> None:
    run = make_run(make_job())
    assert call_back(run.id, code, message)
    log = only_row(JobLog)
    assert (log.handle_code, log.handle_msg) == (stored, text)
    assert log.alarm_status == (0 if stored == 200 else -1)


@pytest.mark.parametrize(
    ("message", "stored"),
    [
        ("a\x00b", "a\N{REPLACEMENT CHARACTER}b"),
        ("half \ud83d", "half ?"),
        ("\U0001f600 行", "\U0001f600 行"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("'; DROP TABLE xxl_job_log; -- %s :name \\", "'; DROP TABLE xxl_job_log; -- %s :name \\"),
        ("x" * 50_000, "x" * 50_000),
        ("x" * 50_001, "x" * (50_000 - len(RESULT_CUT)) + RESULT_CUT),
        ("\U0001f600" * 20_000, "\U0001f600" * ((65_000 - len(RESULT_CUT.encode())) // 4) + RESULT_CUT),
    ],
)
def test_any_text_can_be_stored(database: str, message: str, stored: str) -> None:
    run = make_run(make_job())
    assert call_back(run.id, 500, message)
    assert only_row(JobLog).handle_msg == stored


def test_a_second_result_changes_nothing(database: str) -> None:
    run = make_run(make_job(executor_fail_retry_count=2))
    assert call_back(run.id, 200, "first")
    for source in (Source.CALLBACK, Source.KILL, Source.RESOLVER, Source.REFUSED):
        late = end(Result(run.id, source, 500, "second", trigger_code=504), now_ms=T0 + 9000)
        assert late == Completion((), {run.id: 200})
    log = only_row(JobLog)
    assert (log.handle_code, log.handle_msg, log.handle_time, log.trigger_code, log.alarm_status) == (
        200,
        "first",
        T0,
        200,
        0,
    )
    assert all_rows(Fire) == all_rows(Alarm) == []


def test_the_first_of_two_results_in_a_batch_counts(database: str) -> None:
    run = make_run(make_job())
    done = end(callback_result(run.id, 500, "first"), callback_result(run.id, 200, "second"))
    assert done.run_ids == (run.id,)
    assert (only_row(JobLog).handle_code, only_row(JobLog).handle_msg) == (500, "first")


def test_results_of_unknown_runs_are_ignored(database: str) -> None:
    run = make_run(make_job())
    done = end(
        callback_result(4711, 200, None), callback_result(run.id, 200, None), callback_result(2**62, 500, "x")
    )
    assert done == Completion((run.id,), {})
    assert end() == Completion((), {})


@pytest.mark.parametrize("successor", ["children", "retry"])
def test_eight_concurrent_threads_have_one_winner(database: str, successor: str) -> None:
    child = make_job()
    job = make_job(child_jobid=str(child.id), executor_fail_retry_count=3)
    run = make_run(job)
    code = 200 if successor == "children" else 500
    wins = run_concurrently(
        *(lambda number=number: call_back(run.id, code, f"thread {number}") for number in range(8))
    )
    assert sorted(wins) == [False] * 7 + [True]
    fires = all_rows(Fire)
    assert [(fire.job_id, fire.trigger_type) for fire in fires] == [
        (child.id, "PARENT") if successor == "children" else (job.id, "RETRY")
    ]
    assert len(all_rows(Alarm)) == (successor == "retry")


def test_overlapping_batches_in_different_orders_end_each_run_once(database: str) -> None:
    job = make_job(executor_fail_retry_count=1)
    runs = [make_run(job).id for _ in range(20)]
    results = [callback_result(log_id, 500, "no") for log_id in runs]
    done = run_concurrently(
        lambda: end(*results).run_ids,
        lambda: end(*reversed(results)).run_ids,
        lambda: end(*results[10:], *results[:10]).run_ids,
        lambda: end(*results).run_ids,
    )
    assert sorted(log_id for won in done for log_id in won) == runs
    assert len(all_rows(Fire)) == len(all_rows(Alarm)) == 20


@pytest.mark.parametrize(
    ("trigger_code", "source", "open_"),
    [
        *((code, source, True) for code in (0, 200, 504) for source in (Source.CALLBACK, Source.KILL)),
        *((code, source, False) for code in (500, 402) for source in Source),
        (0, Source.REFUSED, True),
        (200, Source.REFUSED, True),  # what the resolver took for accepted; record() knows which source wins
        (504, Source.REFUSED, False),
        (0, Source.RESOLVER, True),
        (200, Source.RESOLVER, True),
        (504, Source.RESOLVER, False),
    ],
)
def test_the_states_in_which_each_source_may_end_a_run(
    database: str, trigger_code: int, source: Source, open_: bool
) -> None:
    run = make_run(make_job(), log={"trigger_code": trigger_code})
    done = end(Result(run.id, source, 500, "the end"))
    assert done == (Completion((run.id,), {}) if open_ else Completion((), {run.id: 0}))
    log = only_row(JobLog)
    assert log.handle_code == (500 if open_ else 0)
    assert log.trigger_code == ((trigger_code or 200) if open_ else trigger_code)
    assert len(all_rows(Fire)) == (not open_)


def test_an_unresolved_run_has_an_alarm_and_no_result(database: str) -> None:
    run = make_run(make_job(executor_fail_retry_count=3), log={"trigger_code": 0})
    assert unresolve(run.id)
    log = only_row(JobLog)
    assert (log.trigger_code, log.handle_code, log.handle_time, log.alarm_status) == (504, 0, None, -1)
    assert log.trigger_msg == "sent\nno evidence"
    assert only_row(Alarm).reason == "unresolved"
    assert all_rows(Fire) == [], "a run that may have been executed is not repeated"
    assert not unresolve(run.id)


@pytest.mark.parametrize(("code", "children", "retries"), [(200, 1, 0), (500, 0, 1)])
def test_a_late_callback_settles_an_unresolved_run(
    database: str, code: int, children: int, retries: int
) -> None:
    child = make_job()
    run = make_run(make_job(child_jobid=str(child.id), executor_fail_retry_count=2), log={"trigger_code": 0})
    unresolve(run.id)
    assert call_back(run.id, code, "late", now_ms=T0 + 600_000)
    log = only_row(JobLog)
    assert (log.trigger_code, log.handle_code, log.handle_time) == (504, code, T0 + 600_000)
    kinds = [fire.trigger_type for fire in all_rows(Fire)]
    assert kinds == ["PARENT"] * children + ["RETRY"] * retries
    assert len(all_rows(Alarm)) == 1, "the run has only this alarm"
    assert not call_back(run.id, 200, "later still")


def test_a_callback_before_its_record_counts_as_accepted(database: str) -> None:
    run = make_run(make_job(), log={"trigger_code": 0, "trigger_msg": None})
    assert call_back(run.id)
    assert (only_row(JobLog).trigger_code, only_row(JobLog).trigger_msg) == (200, None)


def test_a_run_without_a_fire_can_still_end(database: str) -> None:
    run = make_log(make_job())
    assert call_back(run.id, 500, "late")
    assert only_row(JobLog).handle_code == 500


def test_trace_lines_are_appended_to_the_trace(database: str) -> None:
    run = make_run(make_job())
    end(Result(run.id, Source.KILL, 500, "killed", trace="killed by alice"))
    assert only_row(JobLog).trigger_msg == "sent\nkilled by alice"
