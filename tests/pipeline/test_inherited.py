"""Inherited runs: under way when the Java admin that sent them was stopped."""

import pytest

from app.clock import DAY_MS, MINUTE_MS, Millis
from app.db import read_scope
from app.models.alarm import Alarm
from app.models.fire import Fire
from app.models.log import JobLog
from app.pipeline import inherited
from app.pipeline.inherited import LOST_AFTER_MS, PERIOD_MS, tick_inherited
from app.store import inherited_runs
from tests.factories import FIRST, T0, all_rows, make_job, make_log, only_row
from tests.pipeline.steps import register
from tests.plan import every_database
from tests.store.test_recent_runs import plan

NOW: Millis = T0 + LOST_AFTER_MS

pytestmark = every_database


def test_a_run_whose_executor_is_gone_fails_with_retry_and_alarm(database: str) -> None:
    job = make_job(executor_fail_retry_count=2, alarm_email="ann@example.org")
    log = make_log(job)
    assert tick_inherited(NOW - 1_000) == PERIOD_MS
    assert only_row(JobLog).handle_code == 0
    assert tick_inherited(NOW) == PERIOD_MS
    ended = only_row(JobLog)
    assert (ended.trigger_code, ended.handle_code, ended.handle_time) == (200, 500, NOW)
    assert ended.handle_msg == "result lost: the executor is not registered any more"
    assert only_row(Alarm).log_id == log.id
    assert (only_row(Fire).trigger_type, only_row(Fire).fail_retry_count) == ("RETRY", 1)
    assert tick_inherited(NOW + MINUTE_MS) == DAY_MS
    assert len(all_rows(Alarm)) == len(all_rows(Fire)) == 1


def test_a_run_waits_for_its_result_as_long_as_its_executor_is_registered(database: str) -> None:
    make_log(make_job())
    register(FIRST)
    assert tick_inherited(NOW + DAY_MS) == PERIOD_MS
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
    make_log(make_job(executor_fail_retry_count=2), **changes)
    before = only_row(JobLog)
    assert tick_inherited(NOW) == DAY_MS
    after = only_row(JobLog)
    assert (after.trigger_code, after.handle_code, after.alarm_status) == (
        before.trigger_code,
        before.handle_code,
        before.alarm_status,
    )
    assert all_rows(Alarm) == all_rows(Fire) == []


def test_many_lost_runs_take_several_rounds(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inherited, "ROUND_ROWS", 2)
    job = make_job()
    for _ in range(3):
        make_log(job)
    assert tick_inherited(NOW) == 0
    assert tick_inherited(NOW) == PERIOD_MS
    assert {log.handle_code for log in all_rows(JobLog)} == {500}


@pytest.mark.databases("sqlite")
def test_open_runs_are_found_through_the_index_on_their_result(database: str) -> None:
    with read_scope() as session:
        lost = plan(session, lambda session: inherited_runs.find_lost(session, before_ms=NOW, limit=9))
        is_open = plan(session, inherited_runs.has_open)
    for steps in (lost, is_open):
        assert "I_handle_code" in steps[0]
