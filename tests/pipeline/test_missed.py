"""RUN_ALL: missed runs wait for one another, and go in the order of their times."""

from typing import Any

import pytest

from app.clock import Millis
from app.database.engine import session_scope, transact
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.models.skip import Skip
from app.pipeline.late import LATE_MS, settle_late
from app.pipeline.missed_runs import release_next
from app.pipeline.scan import scan
from app.services.jobs.replan import switch_off
from app.store.fires import missed_runs
from tests.pipeline.calendar_steps import account_of, add_blackout, ruled_job
from tests.pipeline.round_steps import claim_due
from tests.pipeline.steps import as_due, call_back, run_concurrently, unresolve
from tests.support.factories import T0, all_rows, make_due_job, make_fire, only_row
from tests.support.plan import every_database

pytestmark = every_database

ZONE = "UTC"


def run_all(late_ms: Millis = 60_000, conf: str = "20", **columns: Any) -> Job:
    """Make a job each 20 s that no scheduler has looked at for a minute: four instants are missed."""
    return make_due_job(T0 - late_ms, conf=conf, misfire_strategy="RUN_ALL", **columns)


def look(now_ms: Millis = T0) -> list[Millis]:
    """Scan, release and claim; return the due times of the runs that begin, since T0."""
    scan(node="one", zone=ZONE, now_ms=now_ms)
    release_next()
    begun = {run.log_id for run in claim_due(now_ms)}
    return [log.fire_time - T0 for log in all_rows(JobLog) if log.id in begun and log.fire_time]


def states() -> list[tuple[Millis, str, str]]:
    fires = sorted(all_rows(Fire), key=lambda fire: fire.due_time)
    return [(fire.due_time - T0, fire.state, fire.waits_for) for fire in fires]


def last_id() -> int:
    return max(log.id for log in all_rows(JobLog))


def test_one_goes_at_a_time_in_order(database: str) -> None:
    run_all()
    assert look() == [-60_000]
    assert states()[1:] == [(at_ms, "GATED", "missed") for at_ms in (-40_000, -20_000, 0)]
    assert look() == []
    call_back(last_id(), 200)
    assert look() == [-40_000]
    call_back(last_id(), 500)
    assert look() == [-20_000]
    call_back(last_id())
    assert look() == [0]
    call_back(last_id())
    assert (look(), release_next(), all_rows(Skip)) == ([], False, [])
    assert {log.trigger_type for log in all_rows(JobLog)} == {"MISFIRE"}


def test_the_scan_keeps_held_fires_out_of_the_ring(database: str) -> None:
    run_all(conf="4", late_ms=8_000)
    assert [fire.due_time - T0 for fire in scan(node="one", zone=ZONE, now_ms=T0)] == [4_000]
    assert len(all_rows(Fire)) == 4


def test_those_that_are_too_many_or_too_old_are_one_skip(database: str) -> None:
    run_all(misfire_max=3)
    run_all(misfire_max_age_s=20)
    scan(node="one", zone=ZONE, now_ms=T0)
    assert [(skip.from_ms - T0, skip.skipped, skip.reason) for skip in all_rows(Skip)] == [
        (-60_000, 1, "misfire"),
        (-60_000, 2, "misfire"),
    ]
    assert len(all_rows(Fire)) == 5


@pytest.mark.parametrize(
    ("column", "value", "is_free"),
    [
        ("trigger_type", "CRON", True),
        ("trigger_type", "RETRY", True),
        ("trigger_type", "MISFIRE", False),
        ("state", "HELD", True),
        ("state", "WAITING", False),
        ("state", "UNKNOWN", False),
        ("job_id", 0, True),
    ],
)
def test_which_fires_hold_the_next_one(database: str, column: str, value: Any, is_free: bool) -> None:
    job = run_all()
    values = {"trigger_type": "MISFIRE", "state": "ACCEPTED", "job_id": job.id, column: value}
    make_fire(job, due_time=T0 - 80_000, **values)
    scan(node="one", zone=ZONE, now_ms=T0)
    assert [fire_id for fire_id in missed_runs.find_heads() if is_free] == (
        [all_rows(Fire, due_time=T0 - 60_000)[0].id] if is_free else []
    )
    assert bool(missed_runs.find_heads()) is is_free


def test_an_unresolved_run_holds_the_next_one_no_longer(database: str) -> None:
    run_all(max_running=2)
    assert look() == [-60_000]
    unresolve(last_id())
    assert look() == [-40_000]


def test_a_failed_run_is_retried_beside_the_next_one(database: str) -> None:
    run_all(executor_fail_retry_count=1)
    look()
    call_back(last_id(), 500)
    assert look() == [-40_000]
    assert [fire.trigger_type for fire in all_rows(Fire, state="PENDING")] == ["RETRY"]


def test_a_limit_still_holds_for_the_one_that_is_released(database: str) -> None:
    job = run_all(max_running=1)
    make_fire(job, trigger_type="MANUAL", state="ACCEPTED", admitted_ms=T0, due_time=T0)
    assert look() == []
    assert [state for _, state, _ in states() if state != "GATED"] == ["WAITING", "ACCEPTED"]
    release_next()
    assert [state for _, state, _ in states()].count("GATED") == 3


def test_a_job_that_has_changed_its_strategy_ends_what_it_began(database: str) -> None:
    job = run_all()
    scan(node="one", zone=ZONE, now_ms=T0)
    with session_scope() as session:
        session.get_one(Job, job.id).misfire_strategy = "DO_NOTHING"
    assert look() == [-60_000]


def test_a_fixed_delay_set_by_hand_does_nothing(database: str) -> None:
    make_due_job(T0 - 60_000, "FIX_DELAY", "20", misfire_strategy="RUN_ALL")
    scan(node="one", zone=ZONE, now_ms=T0)
    assert (all_rows(Fire), only_row(Skip).skipped) == ([], 1)


def test_two_schedulers_release_one(database: str) -> None:
    run_all()
    run_all()
    scan(node="one", zone=ZONE, now_ms=T0)
    run_concurrently(release_next, release_next)
    assert [state for _, state, _ in states()].count("PENDING") == 2


def test_a_look_that_is_overtaken_releases_nothing(database: str) -> None:
    job = run_all()
    scan(node="one", zone=ZONE, now_ms=T0)
    heads = missed_runs.find_heads()
    make_fire(job, due_time=T0 - 70_000, trigger_type="MISFIRE", state="GATED", waits_for="missed")
    assert transact(lambda session: missed_runs.lock_heads(session, heads)) == []


def test_late_fires_of_a_schedule_join_them(database: str) -> None:
    """A scheduler has read them ahead and died; another one finds them a minute later."""
    job = make_due_job(T0, conf="2", misfire_strategy="RUN_ALL", misfire_max=2)
    scan(node="one", zone=ZONE, now_ms=T0)
    now_ms = T0 + 5_000 + LATE_MS
    settled = settle_late(as_due(all_rows(Fire)), node="two", zone=ZONE, now_ms=now_ms)
    assert len(settled) == 3
    assert states() == [(2_000, "GATED", "missed"), (4_000, "GATED", "missed")]
    assert [fire.fire_key for fire in all_rows(Fire)] == [
        f"misfire:{job.id}:{T0 + at_ms}" for at_ms in (2_000, 4_000)
    ]
    assert (only_row(Skip).from_ms, only_row(Skip).skipped) == (T0, 1)


def test_a_row_that_was_prepared_for_a_late_fire_goes(database: str) -> None:
    make_due_job(T0 + 1_000, conf="3600", misfire_strategy="RUN_ALL")
    scan(node="one", zone=ZONE, now_ms=T0)
    prepared = all_rows(Fire)
    with session_scope() as session:
        fire = session.get_one(Fire, prepared[0].id)
        log = JobLog(job_group=1, job_id=fire.job_id, trigger_code=0, handle_code=0)
        session.add(log)
        session.flush()
        fire.log_id = log.id
    settle_late(as_due(prepared), node="two", zone=ZONE, now_ms=T0 + 2 * LATE_MS)
    assert (only_row(Fire).log_id, all_rows(JobLog)) == (None, [])


def test_the_shards_of_a_broadcast_go_together(database: str) -> None:
    job = run_all()
    for index in range(2):
        make_fire(
            job,
            due_time=T0 - 90_000,
            trigger_type="MISFIRE",
            state="GATED",
            waits_for="missed",
            sharding_param=f"{index}/2",
        )
    scan(node="one", zone=ZONE, now_ms=T0)
    release_next()
    assert [(at_ms, state) for at_ms, state, _ in states() if state == "PENDING"] == [
        (-90_000, "PENDING")
    ] * 2


def test_what_waits_is_skipped_when_the_job_is_switched_off(database: str) -> None:
    job = run_all()
    look()
    with session_scope() as session:
        switch_off(session, [job.id], clock=lambda: T0)
    assert [(skip.from_ms - T0, skip.skipped, skip.reason) for skip in all_rows(Skip)] == [
        (-40_000, 3, "stopped")
    ]
    assert [state for _, state, _ in states()] == ["SENDING"]


def test_an_edit_of_a_schedule_counts_what_no_scan_has_planned(database: str) -> None:
    """The plan of a pass is for twenty of them."""
    job = run_all(conf="1")
    with session_scope() as session:
        switch_off(session, [job.id], clock=lambda: T0)
    assert (only_row(Skip).skipped, only_row(Skip).to_ms) == (61, T0)


def test_the_run_after_a_blackout_joins_them(database: str) -> None:
    begin_ms = T0 - 50_000
    job = ruled_job(T0 - 60_000, "FIX_RATE", "20", misfire_strategy="RUN_ALL")
    with session_scope() as session:
        session.get_one(Job, job.id).trigger_next_time = T0 - 60_000
    add_blackout(begin_ms, T0 - 10_000, now_ms=T0 - 100_000, afterwards="run_once")
    begun = [look()]
    while all_rows(Fire, state="GATED"):
        call_back(last_id())
        begun.append(look())
    assert begun == [[-60_000], [-10_000], [0]]
    assert account_of(job, T0).tally.unexplained == 0
