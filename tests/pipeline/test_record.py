"""record() and fix_address(): the outcome of a send, written by the holder of the claim.

Source: docs/reference/pipeline.md, sections 3 and 5.
"""

import pytest
from sqlalchemy import update

from app.database.engine import transact
from app.domain.runs.evidence import Fate
from app.models.alarm import Alarm
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.pipeline.record import FIRST_CHECK_MS, Lease, fix_address, renew
from app.store.fires import open as open_fires
from tests.pipeline.steps import (
    LEASE_MS,
    call_back,
    claim_fires,
    claim_one,
    claimer,
    give_back_all,
    record_sent,
    sent,
)
from tests.support.factories import FIRST, SECOND, T0, all_rows, make_fire, make_job, only_row, remove
from tests.support.plan import every_database

pytestmark = every_database


def lose_lease() -> None:
    """Let the lease of every claim expire, as the monitor does."""
    transact(
        lambda session: open_fires.expire_leases(session, now_ms=T0 + LEASE_MS + 1, dead_owners=[], limit=10)
    )


def test_an_accepted_run_waits_for_its_result(database: str) -> None:
    make_fire(make_job())
    claimed = claim_one()
    record_sent(sent(claimed, boot_id="boot-1"), now_ms=T0 + 40)
    fire, log = only_row(Fire), only_row(JobLog)
    assert (fire.state, fire.accepted_ms, fire.deadline_ms, fire.boot_id) == (
        "ACCEPTED",
        T0 + 40,
        T0 + 40 + FIRST_CHECK_MS,
        "boot-1",
    )
    assert (fire.lease_until, fire.attempt, fire.epoch) == (0, 1, 1)
    assert (log.trigger_code, log.handle_code, log.alarm_status) == (200, 0, 0)
    assert (log.trigger_msg or "").splitlines() == [*claimed.trace, f"Sent to: {FIRST}", "Result: accepted, "]


def test_a_run_in_doubt_is_probed_at_once(database: str) -> None:
    make_fire(make_job(executor_fail_retry_count=3))
    record_sent(sent(claim_one(), Fate.UNKNOWN, text="no answer in time"), now_ms=T0 + 3000)
    fire, log = only_row(Fire), only_row(JobLog)
    assert (fire.state, fire.deadline_ms, fire.accepted_ms) == ("UNKNOWN", T0 + 3000, 0)
    assert (log.trigger_code, log.handle_code, log.alarm_status) == (0, 0, 0)
    assert "no answer in time" in (log.trigger_msg or "")
    assert all_rows(Alarm) == []


@pytest.mark.parametrize(
    ("code", "stored"), [(500, 500), (402, 402), (0, 500), (200, 500), (504, 500), (-3, 500), (2**31, 500)]
)
def test_a_refused_run_ends_with_the_executors_code(database: str, code: int, stored: int) -> None:
    make_fire(make_job())
    record_sent(sent(claim_one(), Fate.REFUSED, code, "busy"))
    log = only_row(JobLog)
    assert (log.trigger_code, log.handle_code, log.handle_time, log.alarm_status) == (stored, 0, None, -1)
    assert "busy" in (log.trigger_msg or "")
    assert all_rows(Fire) == []
    assert (only_row(Alarm).log_id, only_row(Alarm).reason) == (log.id, "failed")


def test_a_refusal_is_retried(database: str) -> None:
    make_fire(make_job(executor_fail_retry_count=1))
    claimed = claim_one()
    record_sent(sent(claimed, Fate.REFUSED))
    retry = only_row(Fire)
    assert (retry.trigger_type, retry.fail_retry_count, retry.fire_key) == (
        "RETRY",
        0,
        f"retry:{claimed.log_id}:1",
    )


def test_a_callback_before_the_record_ends_the_run_and_keeps_its_trace(database: str) -> None:
    make_fire(make_job())
    claimed = claim_one()
    assert call_back(claimed.log_id, 200, "quick")
    assert (only_row(JobLog).trigger_code, only_row(JobLog).trigger_msg) == (200, None)
    record_sent(sent(claimed))
    log = only_row(JobLog)
    assert (log.trigger_code, log.handle_code, log.handle_msg) == (200, 200, "quick")
    assert (log.trigger_msg or "").startswith("Trigger: CRON")
    assert all_rows(Fire) == []


@pytest.mark.parametrize("fate", Fate)
def test_an_early_result_stands_whatever_is_recorded(database: str, fate: Fate) -> None:
    make_fire(make_job(executor_fail_retry_count=2))
    claimed = claim_one()
    call_back(claimed.log_id, 200, "quick")
    record_sent(sent(claimed, fate))
    log = only_row(JobLog)
    assert (log.trigger_code, log.handle_code, log.handle_msg, log.alarm_status) == (200, 200, "quick", 0)
    assert "Result: " in (log.trigger_msg or "")
    assert all_rows(Fire) == all_rows(Alarm) == []


def test_an_acceptance_after_the_lease_counts_if_no_other_node_took_the_row(database: str) -> None:
    make_fire(make_job())
    claimed = claim_one()
    lose_lease()
    record_sent(sent(claimed), now_ms=T0 + 12_000)
    fire, log = only_row(Fire), only_row(JobLog)
    assert (fire.state, fire.accepted_ms, log.trigger_code) == ("ACCEPTED", T0 + 12_000, 200)


@pytest.mark.parametrize("state", ["UNKNOWN", "ACCEPTED"])
def test_a_refusal_after_the_lease_counts_and_is_retried(database: str, state: str) -> None:
    """Also if the resolver recorded an acceptance because the executor was busy with another run."""
    make_fire(make_job(executor_fail_retry_count=1))
    claimed = claim_one()
    lose_lease()
    if state == "ACCEPTED":
        transact(lambda session: session.execute(update(Fire).values(state="ACCEPTED")))
        transact(lambda session: session.execute(update(JobLog).values(trigger_code=200)))
    record_sent(sent(claimed, Fate.REFUSED, text="no handler"), now_ms=T0 + 12_000)
    log, retry = only_row(JobLog), only_row(Fire)
    assert (log.trigger_code, log.handle_code) == (500, 0)
    assert (retry.trigger_type, retry.fire_key) == ("RETRY", f"retry:{claimed.log_id}:1")
    assert "no handler" in (log.trigger_msg or "")


def test_an_unknown_outcome_after_the_lease_adds_only_the_missing_trace(database: str) -> None:
    make_fire(make_job(executor_fail_retry_count=2))
    claimed = claim_one()
    lose_lease()
    since_ms = only_row(Fire).lease_until
    for _ in range(2):  # again, as after a commit whose answer was lost
        record_sent(sent(claimed, Fate.UNKNOWN), now_ms=T0 + 60_000)
    fire, log = only_row(Fire), only_row(JobLog)
    assert (fire.state, fire.accepted_ms, fire.lease_until) == ("UNKNOWN", 0, since_ms)
    assert (log.trigger_code, log.handle_code, log.alarm_status) == (0, 0, 0)
    assert (log.trigger_msg or "").count("Result: unknown") == 1
    assert all_rows(Alarm) == []


def test_an_acceptance_written_twice_is_traced_once(database: str) -> None:
    make_fire(make_job())
    claimed = claim_one()
    for _ in range(2):
        record_sent(sent(claimed), now_ms=T0 + 40)
    assert (only_row(JobLog).trigger_msg or "").count("Result: accepted") == 1


def test_a_refused_redelivery_does_not_end_a_run_that_may_have_started(database: str) -> None:
    make_fire(make_job(), attempt=1)
    claimed = claim_one()
    lose_lease()
    transact(lambda session: session.execute(update(Fire).values(state="ACCEPTED")))
    record_sent(sent(claimed, Fate.REFUSED))
    assert (only_row(Fire).state, only_row(JobLog).trigger_code) == ("ACCEPTED", 0)


@pytest.mark.parametrize("mistaken", [False, True])
def test_a_run_of_which_no_byte_was_sent_is_given_back_after_its_lease(database: str, mistaken: bool) -> None:
    """Also if the resolver recorded an acceptance because the executor was busy with another run."""
    make_fire(make_job())
    claimed = claim_one()
    lose_lease()
    if mistaken:
        transact(lambda session: session.execute(update(Fire).values(state="ACCEPTED")))
        transact(lambda session: session.execute(update(JobLog).values(trigger_code=200)))
    give_back_all(claimed)
    fire = only_row(Fire)
    assert (fire.state, fire.owner, fire.attempt, fire.lease_until, fire.deadline_ms) == (
        "PENDING",
        "",
        0,
        0,
        0,
    )
    assert only_row(JobLog).trigger_code == 0


def test_a_renewed_lease_takes_the_row_back(database: str) -> None:
    make_fire(make_job())
    claimed = claim_one()
    lose_lease()
    kept = transact(lambda session: renew(session, [claimed], Lease("one", T0 + 60_000)))
    assert kept == [claimed]
    assert (only_row(Fire).state, only_row(Fire).lease_until) == ("SENDING", T0 + 60_000)
    call_back(claimed.log_id, 200, "quick")
    assert transact(lambda session: renew(session, [claimed], Lease("one", T0 + 90_000))) == []


@pytest.mark.parametrize("fate", Fate)
def test_a_late_record_changes_nothing_if_another_node_has_recorded(database: str, fate: Fate) -> None:
    make_fire(make_job())
    first = claim_one()
    give_back_all(first)
    record_sent(sent(claim_one(claimer("two"), now_ms=T0 + 10)), node="two")
    before_log, before_fire = only_row(JobLog), only_row(Fire)
    record_sent(sent(first, fate, text="from the past"))
    log, fire = only_row(JobLog), only_row(Fire)
    assert (log.trigger_msg, log.trigger_code, log.handle_code) == (before_log.trigger_msg, 200, 0)
    assert (fire.state, fire.owner, fire.epoch) == ("ACCEPTED", "two", before_fire.epoch)
    assert all_rows(Alarm) == []


def test_the_same_epoch_of_another_node_is_ignored(database: str) -> None:
    make_fire(make_job())
    claimed = claim_one()
    record_sent(sent(claimed, Fate.REFUSED), node="two")
    assert only_row(Fire).state == "SENDING"
    assert only_row(JobLog).trigger_code == 0


def test_a_cleared_log_row_or_a_deleted_job_does_not_stop_recording(database: str) -> None:
    cleared, orphan, kept = make_job(), make_job(), make_job()
    for job in (cleared, orphan, kept):
        make_fire(job)
    claims = {claimed.job_id: claimed for claimed in claim_fires().claims}
    remove(only_row(JobLog, job_id=cleared.id))
    remove(only_row(Fire, job_id=cleared.id))
    remove(only_row(Job, id=orphan.id))
    record_sent(sent(claims[cleared.id]), sent(claims[orphan.id], Fate.REFUSED), sent(claims[kept.id]))
    assert (
        only_row(JobLog, job_id=orphan.id).trigger_code,
        only_row(JobLog, job_id=orphan.id).alarm_status,
    ) == (500, 1)
    assert only_row(Fire).job_id == kept.id
    assert only_row(JobLog, job_id=kept.id).trigger_code == 200


def test_a_group_of_outcomes_is_written_together(database: str) -> None:
    job = make_job()
    for _ in range(30):
        make_fire(job)
    fates = list(Fate)
    claims = claim_fires().claims
    outcomes = [
        sent(claimed, fates[number % 3], text=f"number {number}") for number, claimed in enumerate(claims)
    ]
    record_sent(*outcomes)
    for number, claimed in enumerate(claims):
        log = only_row(JobLog, id=claimed.log_id)
        assert f"number {number}" in (log.trigger_msg or "").splitlines()[-1]
        assert log.trigger_code == {Fate.ACCEPTED: 200, Fate.REFUSED: 500, Fate.UNKNOWN: 0}[fates[number % 3]]
    assert sorted(fire.state for fire in all_rows(Fire)) == ["ACCEPTED"] * 10 + ["UNKNOWN"] * 10


def test_a_second_send_continues_the_trace(database: str) -> None:
    make_fire(make_job())
    record_sent(sent(claim_one(), Fate.UNKNOWN, text="no answer in time"))
    transact(lambda session: session.execute(update(Fire).values(state="PENDING")))
    again = claim_one(now_ms=T0 + 10_000)
    assert (again.attempt, again.address) == (2, FIRST)
    record_sent(sent(again))
    trace = only_row(JobLog).trigger_msg or ""
    assert (
        trace.index("no answer in time")
        < trace.index("sent again, attempt 2")
        < trace.index("Result: accepted")
    )


def test_a_chosen_candidate_is_committed_before_the_first_byte(database: str) -> None:
    make_fire(make_job(addresses=f"{FIRST},{SECOND}", executor_route_strategy="FAILOVER"))
    claimed = claim_one()
    assert transact(lambda session: fix_address(session, claimed, SECOND, Lease("one", T0 + 9000)))
    fire = only_row(Fire)
    assert (fire.state, fire.address, fire.lease_until) == ("SENDING", SECOND, T0 + 9000)
    assert only_row(JobLog).executor_address == SECOND
    assert transact(lambda session: fix_address(session, claimed, FIRST, Lease("one", T0 + 9900))), (
        "the next candidate"
    )
    assert only_row(JobLog).executor_address == FIRST


def test_a_lost_claim_cannot_choose_a_candidate(database: str) -> None:
    make_fire(make_job(addresses=f"{FIRST},{SECOND}", executor_route_strategy="FAILOVER"))
    claimed = claim_one()
    assert not transact(lambda session: fix_address(session, claimed, SECOND, Lease("two", 1)))
    give_back_all(claimed)
    assert not transact(lambda session: fix_address(session, claimed, SECOND, Lease("one", 1)))
    remove(only_row(Fire))
    assert not transact(lambda session: fix_address(session, claimed, SECOND, Lease("one", 1)))
    assert only_row(JobLog).executor_address is None
