"""Settling a restored database: how far missed times are counted."""

import pytest

from app.clock import DAY_MS, MINUTE_MS, Millis
from app.domain.schedules.planning import MAX_COUNTED_WHEN_LATE
from app.models.fire import Fire
from app.models.job import Job
from app.models.promise import PromiseCheck
from app.models.round import Round
from app.models.skip import Skip
from app.services.backups import reconcile as settle_module
from app.services.backups.reconcile import COUNTING_MAX_MS, settle
from tests.pipeline.round_steps import claim_due
from tests.services.backfills.backfill_steps import change, draft, go_on, minutely, start, states
from tests.support.factories import T0, all_rows, make_fire, make_job, only_row, save

#: as of the backup, and of the restore
DUE: Millis = T0 // MINUTE_MS * MINUTE_MS
NOW: Millis = DUE + 600 * MINUTE_MS


@pytest.mark.usefixtures("database")
def test_missed_times_are_not_counted_on_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settle_module, "JOBS_PAGE", 1)
    started = {"trigger_status": 1, "trigger_next_time": DUE}
    cron = {"schedule_type": "CRON", "schedule_conf": "0 * * * * ?"}
    jobs = [make_job(**started, **cron) for _ in range(2)]
    jobs.append(make_job(**started, schedule_type="FIX_RATE", schedule_conf="60"))
    elapsed_ms = iter([0, COUNTING_MAX_MS - 1, COUNTING_MAX_MS, COUNTING_MAX_MS])
    settle(made_ms=DUE, clock=lambda: NOW, monotonic=lambda: next(elapsed_ms))
    skipped = {skip.job_id: (skip.from_ms, skip.to_ms, skip.skipped) for skip in all_rows(Skip)}
    assert skipped == {
        jobs[0].id: (DUE, NOW, 601),
        jobs[1].id: (DUE, NOW, MAX_COUNTED_WHEN_LATE),
        jobs[2].id: (DUE, NOW, 601),
    }
    assert [job.trigger_next_time for job in all_rows(Job)] == [NOW + MINUTE_MS] * 3


@pytest.mark.usefixtures("database")
def test_checks_of_promises_that_were_due_are_left_out() -> None:
    for due_ms in (DUE, NOW + 1):
        save(PromiseCheck(job_id=1, number=1, logical_ms=due_ms, until_ms=due_ms, due_ms=due_ms))
    settle(made_ms=DUE, clock=lambda: NOW)
    assert only_row(PromiseCheck).due_ms == NOW + 1


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(("logical_ms", "skipped_ms"), [(DUE - DAY_MS, DUE - DAY_MS), (None, DUE)])
def test_a_queued_run_is_skipped_at_its_logical_time(logical_ms: Millis | None, skipped_ms: Millis) -> None:
    make_fire(make_job(), fire_key="child:1:2", trigger_type="PARENT", due_time=DUE, logical_ms=logical_ms)
    settle(made_ms=DUE, clock=lambda: NOW)
    skip = only_row(Skip)
    assert (skip.from_ms, skip.to_ms, skip.reason) == (skipped_ms, skipped_ms, "restored")


@pytest.mark.usefixtures("database")
def test_open_rounds_end_and_what_waits_for_them_is_skipped() -> None:
    job = make_job()
    key = {"job_id": job.id, "logical_ms": DUE, "opened_ms": DUE}
    opened = save(Round(round_key="t:1", deadline_ms=NOW, due_ms=NOW, **key))
    started = save(Round(round_key="t:2", state="started", **key))
    make_fire(job, due_time=DUE, state="GATED", round_id=opened.id)
    settle(made_ms=DUE, clock=lambda: NOW)
    rows = {row.id: (row.state, row.reason, row.due_ms) for row in all_rows(Round)}
    assert rows == {opened.id: ("not_run", "restored", 0), started.id: ("started", "", 0)}
    assert only_row(Skip).reason == "restored"
    assert all_rows(Fire) == []


@pytest.mark.usefixtures("database")
def test_a_backfill_is_paused_and_what_it_had_queued_is_withdrawn() -> None:
    job = minutely()
    running, cancelling = start(job, draft(3, 2)), start(job, draft(1, 1))
    claim_due()
    change(cancelling, "cancel")
    queued = start(minutely(), draft(2, 1))
    assert settle(made_ms=T0, clock=lambda: NOW).fires.backfills == 2
    assert [go_on(each, now_ms=NOW) for each in (running, queued)] == ["paused", "paused"]
    assert go_on(cancelling, now_ms=NOW) == "cancelled"
    assert states(running) == ["failed", "waiting"]
    assert states(queued) == ["withdrawn", "waiting"]
