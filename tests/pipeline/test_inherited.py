"""Inherited runs: under way when the Java admin that sent them was stopped."""

from typing import Any

import pytest

from app.clock import DAY_MS, MINUTE_MS, Millis
from app.database.engine import read_scope, session_scope
from app.models.alarm import Alarm
from app.models.fire import Fire
from app.models.log import JobLog
from app.pipeline import inherited_runs
from app.pipeline.inherited_runs import LOST_AFTER_MS, PERIOD_MS, InheritedRuns
from app.store.runs import inherited_runs as open_runs
from tests.pipeline.steps import register
from tests.support.factories import FIRST, SECOND, T0, all_rows, make_job, make_log, only_row
from tests.support.plan import every_database
from tests.support.statements import statements
from tests.support.store_runs import plan

NOW: Millis = T0 + LOST_AFTER_MS

pytestmark = every_database


def test_a_run_whose_executor_is_gone_fails_with_retry_and_alarm(database: str) -> None:
    tick = InheritedRuns().tick
    job = make_job(executor_fail_retry_count=2, alarm_email="ann@example.org")
    log = make_log(job)
    assert tick(NOW - 1_000) == PERIOD_MS
    assert only_row(JobLog).handle_code == 0
    assert tick(NOW) == PERIOD_MS
    ended = only_row(JobLog)
    assert (ended.trigger_code, ended.handle_code, ended.handle_time) == (200, 500, NOW)
    assert ended.handle_msg == "result lost: the executor is not registered any more"
    assert only_row(Alarm).log_id == log.id
    assert (only_row(Fire).trigger_type, only_row(Fire).fail_retry_count) == ("RETRY", 1)
    assert tick(NOW + MINUTE_MS) == DAY_MS
    assert len(all_rows(Alarm)) == len(all_rows(Fire)) == 1


def test_a_run_waits_for_its_result_as_long_as_its_executor_is_registered(database: str) -> None:
    tick = InheritedRuns().tick
    make_log(make_job())
    register(FIRST)
    assert tick(NOW + DAY_MS) == PERIOD_MS
    assert only_row(JobLog).handle_code == 0


#: rows that are not looked after here: failures that a Java admin had not examined yet, and runs of ours
OTHERS = {
    "failed": {"handle_code": 500},
    "not sent": {"trigger_code": 500},
    "being sent": {"trigger_code": 0},
    "of this program": {"trigger_type": "CRON"},
}


@pytest.mark.parametrize("changes", OTHERS.values(), ids=OTHERS)
def test_other_runs_stay_as_they_are(database: str, changes: dict[str, object]) -> None:
    tick = InheritedRuns().tick
    make_log(make_job(executor_fail_retry_count=2), **changes)
    before = only_row(JobLog)
    assert tick(NOW) == DAY_MS
    after = only_row(JobLog)
    assert (after.trigger_code, after.handle_code, after.alarm_status) == (
        before.trigger_code,
        before.handle_code,
        before.alarm_status,
    )
    assert all_rows(Alarm) == all_rows(Fire) == []


def test_many_lost_runs_take_several_rounds(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tick = InheritedRuns().tick
    monkeypatch.setattr(inherited_runs, "ROUND_ROWS", 2)
    job = make_job()
    for _ in range(3):
        make_log(job)
    assert tick(NOW) == 0
    assert tick(NOW) == PERIOD_MS
    assert {log.handle_code for log in all_rows(JobLog)} == {500}


def test_lost_runs_are_found_beside_more_open_ones_than_a_search_finds(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inherited_runs, "SEARCH_ROWS", 2)
    job, tick = make_job(), InheritedRuns().tick
    register(FIRST)
    waiting = [make_log(job) for _ in range(3)]
    lost = [make_log(job, executor_address=SECOND) for _ in range(3)]
    for minute in range(4):
        tick(NOW + minute * MINUTE_MS)
    codes = {log.id: log.handle_code for log in all_rows(JobLog)}
    assert codes == dict.fromkeys([log.id for log in waiting], 0) | dict.fromkeys(
        [log.id for log in lost], 500
    )


def test_a_run_whose_trigger_time_is_unknown_counts_as_old(database: str) -> None:
    make_log(make_job(), trigger_time=None)
    InheritedRuns().tick(NOW)
    assert only_row(JobLog).handle_code == 500


def test_all_runs_without_a_result_are_read_once_a_day(database: str) -> None:
    make_log(make_job())
    register(FIRST)
    tick = InheritedRuns().tick
    with statements() as executed:
        assert [tick(NOW), tick(NOW + MINUTE_MS), tick(NOW + DAY_MS)] == [PERIOD_MS] * 3
    searched = ["ORDER BY" in sql for sql in executed if "xxl_job_log" in sql]
    assert searched == [True, False, False, True, False]


def test_a_run_that_ended_otherwise_is_no_more_looked_up(database: str) -> None:
    log = make_log(make_job())
    register(FIRST)
    tick = InheritedRuns().tick
    assert tick(NOW) == PERIOD_MS
    with session_scope() as session:
        session.get_one(JobLog, log.id).handle_code = 200
    assert tick(NOW + MINUTE_MS) == DAY_MS


def test_only_runs_that_this_node_ended_are_logged(
    database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    mine, theirs = make_log(make_job()), make_log(make_job())
    find_waiting = open_runs.find_waiting

    def after_another_node(*arguments: Any, **options: Any) -> dict[int, bool]:
        found = find_waiting(*arguments, **options)
        with session_scope() as session:
            session.get_one(JobLog, theirs.id).handle_code = 500
        return found

    monkeypatch.setattr(open_runs, "find_waiting", after_another_node)
    InheritedRuns().tick(NOW)
    assert f"log_ids=[{mine.id}]" in caplog.text


@pytest.mark.databases("sqlite")
def test_runs_are_found_through_an_index_on_their_result_and_by_id(database: str) -> None:
    with read_scope() as session:
        searched = plan(session, lambda session: open_runs.find_open(session, limit=9))
        looked_up = plan(session, lambda session: open_runs.find_waiting(session, [1, 2], before_ms=NOW))
    assert "I_handle_code" in searched[0]
    assert "rowid=?" in looked_up[0]
