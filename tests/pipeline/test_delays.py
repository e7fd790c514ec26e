"""FIX_DELAY: what a job waits for, and how it continues after the log of its run was cleared."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.database.engine import session_scope, transact
from app.domain.enums import MisfireStrategy, TriggerStatus
from app.domain.runs.evidence import Fate
from app.models.audit import AuditEntry
from app.models.fire import Fire
from app.models.job import AFTER_THE_CURRENT_RUN, Job
from app.pipeline.delays import set_delayed, tick_delays
from app.pipeline.scan import scan
from app.settings.config import Config
from app.store.base import locks
from app.store.runs import clearing as log_clearing
from app.store.runs.clearing import Clearing
from tests.pipeline.steps import GONE, claim_fires, open_run, record_sent, resolving, sent
from tests.support.factories import T0, all_rows, make_due_job, make_fire, make_log, make_run, only_row
from tests.support.plan import every_database

pytestmark = every_database


def test_a_fixed_delay_continues_after_its_run_is_cleared(database: str) -> None:
    job = make_due_job(AFTER_THE_CURRENT_RUN, "FIX_DELAY", "20")
    make_run(job)
    tick_delays(T0)
    assert only_row(Job).trigger_next_time == AFTER_THE_CURRENT_RUN, "its run is in progress"
    with session_scope() as session:
        log_clearing.clear_batch(session, Clearing(0, job.id, keep=None))
    tick_delays(T0)
    assert only_row(Job).trigger_next_time == T0 + 20_000


def resolve(config: Config) -> None:
    """Probe the open runs until one without evidence is unresolved."""
    with resolving(config) as probe:
        for after_ms in range(0, 25_000, 5_000):
            probe(after_ms)


@pytest.mark.parametrize("stage", ["claim", "record", "resolve"])
def test_a_run_ends_without_waiting_for_its_fixed_delay(database: str, config: Config, stage: str) -> None:
    """A stop locks the job and then its fires; these stages have locked a fire before."""
    if database.startswith("sqlite"):
        pytest.skip("a SQLite writer waits for the other's whole transaction")
    job = make_due_job(AFTER_THE_CURRENT_RUN, "FIX_DELAY", "20", addresses=GONE if stage == "record" else "")
    open_run(GONE, job=job) if stage == "resolve" else make_fire(job)
    refused = [sent(claimed, Fate.REFUSED) for claimed in claim_fires().claims] if stage == "record" else []
    ends: dict[str, Callable[[], object]] = {
        "claim": claim_fires,
        "record": lambda: record_sent(*refused),
        "resolve": lambda: resolve(config),
    }
    with ThreadPoolExecutor(1) as other, session_scope() as session:
        locks.lock_jobs(session, [job.id])
        other.submit(ends[stage]).result(10)
    assert (all_rows(Fire), only_row(Job).trigger_next_time) == ([], AFTER_THE_CURRENT_RUN)
    tick_delays(T0 + 30_000)
    assert only_row(Job).trigger_next_time == T0 + 50_000


@pytest.mark.parametrize("first", ["CRON", "MISFIRE", "MANUAL", "PARENT", "API", "BACKFILL"])
@pytest.mark.parametrize("retries", [1, 2])
def test_only_retries_of_its_own_runs_hold_up_a_fixed_delay(database: str, first: str, retries: int) -> None:
    """Manual runs, child runs and backfills do not move it, however long their retries take."""
    job = make_due_job(AFTER_THE_CURRENT_RUN, "FIX_DELAY", "20")
    run = make_log(job, trigger_type=first, handle_code=500)
    for _ in range(retries - 1):
        run = make_log(job, trigger_type="RETRY", source_log_id=run.id, handle_code=500)
    make_fire(job, trigger_type="RETRY", fire_key=f"retry:{run.id}:1", due_time=T0 + 3_600_000)
    tick_delays(T0)
    waits = first in ("CRON", "MISFIRE")
    assert only_row(Job).trigger_next_time == (AFTER_THE_CURRENT_RUN if waits else T0 + 20_000)


def test_a_fixed_delay_waits_for_a_retry_of_unknown_origin(database: str) -> None:
    job = make_due_job(AFTER_THE_CURRENT_RUN, "FIX_DELAY", "20")
    make_fire(job, trigger_type="RETRY", fire_key="retry:4711:1", due_time=T0 + 3_600_000)
    tick_delays(T0)
    assert only_row(Job).trigger_next_time == AFTER_THE_CURRENT_RUN


@pytest.mark.parametrize(
    ("not_before_ms", "not_after_ms", "next_ms"),
    [
        (0, T0 + 20_000, T0 + 20_000),
        (T0 + 60_000, 0, T0 + 60_000),
        (0, T0 + 19_999, None),
        (T0 + 60_000, T0 + 59_999, None),
    ],
)
def test_a_fixed_delay_stays_within_its_window(
    database: str, not_before_ms: int, not_after_ms: int, next_ms: int | None
) -> None:
    window = {"not_before_ms": not_before_ms, "not_after_ms": not_after_ms}
    job = make_due_job(AFTER_THE_CURRENT_RUN, "FIX_DELAY", "20", trigger_last_time=T0 - 1_000, **window)
    assert transact(lambda session: set_delayed(session, [job.id], now_ms=T0)) == 1
    after = only_row(Job)
    if next_ms is not None:
        assert (after.trigger_status, after.trigger_next_time) == (TriggerStatus.RUNNING, next_ms)
        return
    assert (after.trigger_status, after.trigger_next_time) == (TriggerStatus.STOPPED, 0)
    assert after.trigger_last_time == 0
    entry = only_row(AuditEntry)
    assert (entry.action, entry.object_id) == ("job.ended", job.id)
    assert "no next time" in (entry.changes or "")


def test_a_missed_fixed_delay_ends_with_its_window(database: str) -> None:
    window = {"not_after_ms": T0 + 19_999}
    make_due_job(T0 - 60_000, "FIX_DELAY", "20", misfire_strategy=MisfireStrategy.DO_NOTHING, **window)
    scan(node="one", zone="UTC", now_ms=T0)
    assert (only_row(Job).trigger_status, all_rows(Fire)) == (TriggerStatus.STOPPED, [])


def test_an_invalid_fixed_delay_is_left_to_the_scan(database: str) -> None:
    job = make_due_job(AFTER_THE_CURRENT_RUN, "FIX_DELAY", "soon")
    transact(lambda session: set_delayed(session, [job.id], now_ms=T0))
    assert only_row(Job).trigger_next_time == T0
    scan(node="one", zone="UTC", now_ms=T0)
    assert only_row(Job).trigger_status == TriggerStatus.STOPPED
