"""Schedule types from scan to result and the next instant: fixed delay, one-shot, validity window."""

from typing import Any

import pytest

from app.clock import Millis
from app.domain.enums import TriggerStatus
from app.domain.runs.evidence import Fate
from app.models.audit import AuditEntry
from app.models.fire import Fire
from app.models.job import AFTER_THE_CURRENT_RUN, Job
from app.models.log import JobLog
from app.models.skip import Skip
from app.pipeline.scan import scan
from tests.pipeline.steps import call_back, claim_fires, claim_one, record_sent, sent, unresolve
from tests.support.factories import FIRST, SECOND, T0, all_rows, make_due_job, make_fire, only_row

ZONE = "Asia/Shanghai"


def scan_at(now_ms: Millis) -> None:
    scan(node="one", zone=ZONE, now_ms=now_ms)


def next_time() -> Millis:
    return only_row(Job).trigger_next_time


def run_due(now_ms: Millis) -> int:
    """Claim and send the only fire; return its log id."""
    claimed = claim_one(now_ms=now_ms)
    record_sent(sent(claimed), now_ms=now_ms)
    return claimed.log_id


def test_a_fixed_delay_counts_from_result_to_result(database: str) -> None:
    make_due_job(T0, "FIX_DELAY", "30")
    at_ms = T0
    for length_ms in (5_000, 100, 3_600_000):
        scan_at(at_ms)
        assert next_time() == AFTER_THE_CURRENT_RUN
        log_id = run_due(at_ms)
        scan_at(at_ms + length_ms // 2)
        assert len(all_rows(Fire)) == 1, "no second run beside the first"
        assert call_back(log_id, 200, now_ms=at_ms + length_ms)
        at_ms += length_ms + 30_000
        assert next_time() == at_ms
    assert [log.fire_time for log in all_rows(JobLog)] == [T0, T0 + 35_000, T0 + 65_100]


def test_a_fixed_delay_waits_for_retries_and_treats_unresolved_as_a_result(database: str) -> None:
    make_due_job(T0, "FIX_DELAY", "30", executor_fail_retry_count=1)
    scan_at(T0)
    assert call_back(run_due(T0), 500, now_ms=T0 + 1_000)
    assert next_time() == AFTER_THE_CURRENT_RUN
    retried = run_due(T0 + 1_500)
    assert unresolve(retried, now_ms=T0 + 40_000)
    assert next_time() == T0 + 70_000
    assert call_back(retried, 200, now_ms=T0 + 50_000)
    assert next_time() == T0 + 70_000


def test_a_fixed_delay_of_a_broadcast_waits_for_all_shards(database: str) -> None:
    make_due_job(
        T0, "FIX_DELAY", "30", addresses=f"{FIRST},{SECOND}", executor_route_strategy="SHARDING_BROADCAST"
    )
    scan_at(T0)
    claim_fires()
    first, second = claim_fires().claims
    record_sent(sent(first), sent(second, Fate.REFUSED), now_ms=T0)
    assert next_time() == AFTER_THE_CURRENT_RUN
    assert call_back(first.log_id, 200, now_ms=T0 + 9_000)
    assert next_time() == T0 + 39_000


def test_a_manual_run_of_a_fixed_delay_changes_nothing(database: str) -> None:
    job = make_due_job(T0 + 60_000, "FIX_DELAY", "30")
    make_fire(job, trigger_type="MANUAL")
    assert call_back(run_due(T0), 200, now_ms=T0 + 1_000)
    assert next_time() == T0 + 60_000


def test_a_one_shot_fires_once_and_stops_its_job(database: str) -> None:
    make_due_job(T0, "AT", "2024-05-01 11:04:05")
    for at_ms in (T0 - 4_000, T0, T0 + 1_000):
        scan_at(at_ms)
    assert (only_row(Fire).due_time, only_row(Fire).trigger_type) == (T0, "CRON")
    job = only_row(Job)
    assert (job.trigger_status, job.trigger_next_time, job.last_fire_ms) == (TriggerStatus.STOPPED, 0, T0)
    assert only_row(AuditEntry).action == "job.ended"
    assert call_back(run_due(T0), 200), "its run can still end"


@pytest.mark.parametrize(("misfire", "fires", "skips"), [("DO_NOTHING", 0, 1), ("FIRE_ONCE_NOW", 1, 0)])
def test_a_missed_one_shot_follows_the_misfire_strategy(
    database: str, misfire: str, fires: int, skips: int
) -> None:
    make_due_job(T0, "AT", "2024-05-01 11:04:05", misfire_strategy=misfire)
    scan_at(T0 + 60_000)
    assert (len(all_rows(Fire)), len(all_rows(Skip))) == (fires, skips)
    assert only_row(Job).trigger_status == TriggerStatus.STOPPED


@pytest.mark.parametrize("kind", ["FIX_RATE", "FIX_DELAY"])
@pytest.mark.parametrize("conf", [None, "ten", "0", "-5", "1.5"])
def test_the_history_says_what_a_period_must_be(database: str, kind: str, conf: str | None) -> None:
    make_due_job(T0, kind, conf)
    scan_at(T0)
    assert f"seconds '{conf or ''}': use a whole number of seconds" in (only_row(AuditEntry).changes or "")


@pytest.mark.parametrize(
    ("kind", "conf"), [("CRON", "* * * * * ?"), ("CRON", "0/1 * * * * ?"), ("FIX_RATE", "1")]
)
def test_nothing_fires_outside_a_window_and_its_end_stops_the_job(
    database: str, kind: str, conf: str
) -> None:
    window: dict[str, Any] = {"not_before_ms": T0, "not_after_ms": T0 + 12_000}
    make_due_job(T0, kind, conf, **window)
    for at_ms in range(T0 - 10_000, T0 + 30_000, 1_000):
        scan_at(at_ms)
    assert [fire.due_time for fire in all_rows(Fire)] == [T0 + second * 1_000 for second in range(13)]
    assert only_row(Job).trigger_status == TriggerStatus.STOPPED
    assert "no next time" in (only_row(AuditEntry).changes or "")
