"""Limits at the claim: which fires get slots, which wait or are skipped, and what frees a slot.

Source: docs/reference/limits.md.
"""

import threading

import pytest

from app.clock import Millis
from app.database.engine import session_scope, transact
from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job
from app.models.limit import Limit
from app.models.log import JobLog
from app.models.skip import Skip
from app.pipeline.claim import ClaimBatch
from app.pipeline.limits import slot_gate
from app.pipeline.limits.claim_limited import claim_limited, end_waits, find_ready
from app.pipeline.prepare import prepare
from app.services.jobs.replan import switch_off
from app.store.limits import slots
from app.store.limits.slots import NO_END, JobKey
from tests.pipeline.limit_steps import claim_all, look, share, waiting
from tests.pipeline.steps import (
    as_due,
    call_back,
    claim_fires,
    claimer,
    give_back_all,
    record_sent,
    sent,
    unresolve,
)
from tests.support.factories import FIRST, SECOND, T0, all_rows, make_fire, make_job, only_row, save
from tests.support.plan import every_database

pytestmark = every_database

MINUTE: Millis = 60_000


def test_one_runs_and_the_others_wait_in_the_order_of_their_instants(database: str) -> None:
    job = make_job(max_running=1)
    second, first = make_fire(job, due_time=T0), make_fire(job, due_time=T0 - 5_000)
    (run,) = claim_all().claims
    assert run.fire_id == first.id
    fire = only_row(Fire, state="WAITING")
    assert (fire.id, fire.deadline_ms, fire.lease_until, fire.log_id) == (second.id, T0, NO_END, None)
    limit = only_row(Limit)
    assert (limit.kind, limit.name) == ("job", str(job.id))
    assert fire.waits_for == f"{limit.id} full 1/1"
    assert not look(T0 + 1_000).claims
    assert call_back(run.log_id)
    (run,) = look(T0 + 34_000).claims
    assert run.fire_id == second.id
    fire = only_row(Fire)
    assert (fire.state, fire.admitted_ms, fire.waits_for, fire.deadline_ms) == (
        "SENDING",
        T0 + 34_000,
        "",
        0,
    )
    assert any("Waited: 34 s for limit of the job (1 of 1)" in line for line in run.trace), run.trace


def test_the_trace_names_the_runs_that_had_the_slots(database: str) -> None:
    job, limit = make_job(), save(Limit(kind="named", name="reports", slots=1))
    share(limit, job)
    make_fire(job)
    (run,) = claim_all().claims
    make_fire(job)
    claim_all(T0 + 1_000)
    call_back(run.log_id)
    (next_run,) = look(T0 + 4_000).claims
    expected = f"Waited: 4 s for limit reports (1 of 1: runs {run.log_id})"
    assert expected in next_run.trace


def test_a_new_fire_does_not_overtake_one_that_waits(database: str) -> None:
    job = make_job(max_running=1)
    make_fire(job)
    (run,) = claim_all().claims
    former = make_fire(job, due_time=T0 + 1)
    claim_all(T0 + 1)
    call_back(run.log_id)
    make_fire(job, due_time=T0 + 2)
    (run,) = claim_all(T0 + 2).claims
    assert run.fire_id == former.id
    assert len(waiting()) == 1


def test_a_light_run_does_not_overtake_a_heavy_one(database: str) -> None:
    limit = save(Limit(kind="named", name="database", slots=3))
    light, heavy = make_job(), make_job()
    share(limit, light, 1)
    share(limit, heavy, 3)
    make_fire(light)
    (run,) = claim_all().claims
    make_fire(heavy, due_time=T0 + 1)
    claim_all(T0 + 1)
    make_fire(light, due_time=T0 + 2)
    assert not claim_all(T0 + 2).claims
    assert [fire.job_id for fire in waiting()] == [heavy.id, light.id]
    assert not find_ready()
    call_back(run.log_id)
    assert [run.job_id for run in look(T0 + 3).claims] == [heavy.id]


def test_the_group_a_named_limit_and_the_job_must_all_have_room(database: str) -> None:
    job = make_job(max_running=5)
    other = make_job(job_group=job.job_group)
    with session_scope() as session:
        session.get_one(Group, job.job_group).max_running = 3
    limit = save(Limit(kind="named", name="database", slots=4))
    share(limit, job, 3)
    share(limit, other, 1)
    for each in (job, job, other, other):
        make_fire(each)
    batch = claim_all()
    # The second needs three of four slots, of which three are taken; the others do not overtake it.
    assert [run.job_id for run in batch.claims] == [job.id]
    assert [fire.waits_for.split()[:2] for fire in waiting()] == [
        [str(limit.id), "full"],
        [str(limit.id), "behind"],
        [str(limit.id), "behind"],
    ]
    call_back(batch.claims[0].log_id)
    assert [run.job_id for run in look().claims] == [job.id, other.id]
    assert [fire.job_id for fire in waiting()] == [other.id]


def test_each_key_has_slots_of_its_own_and_takes_turns(database: str) -> None:
    limit = save(Limit(kind="named", name="database", slots=1))
    job = make_job(limit_key="${param.customer}")
    share(limit, job)
    for number, customer in enumerate(("acme", "acme", "acme", "globex")):
        make_fire(job, due_time=T0 + number, executor_param=f'{{"customer": "{customer}"}}')
    (run,) = claim_all(T0 + 10).claims
    assert [fire.limit_key for fire in waiting()] == ["globex", "acme", "acme"]
    call_back(run.log_id)
    look(T0 + 20)
    assert only_row(Fire, state="SENDING").limit_key == "globex"


def test_runs_of_backfills_that_wait_take_no_turn_of_their_key(database: str) -> None:
    limit = save(Limit(kind="named", name="database", slots=0))
    job = make_job(limit_key="${param}")
    share(limit, job)
    for number in range(3):
        make_fire(job, due_time=T0 + number, executor_param="acme", trigger_type="BACKFILL")
        claim_all(T0 + 10)
    for number, key in enumerate(("acme", "globex"), 3):
        make_fire(job, due_time=T0 + number, executor_param=key)
    claim_all(T0 + 10)
    assert [fire.due_time - T0 for fire in waiting()] == [3, 4, 0, 1, 2]


def test_max_running_counts_for_each_key_by_itself(database: str) -> None:
    job = make_job(max_running=1, limit_key="${param}")
    for key in ("acme", "acme", "globex"):
        make_fire(job, executor_param=key)
    assert len(claim_all().claims) == 2
    assert [fire.limit_key for fire in waiting()] == ["acme"]


def test_higher_priorities_come_first_and_waiting_counts(database: str) -> None:
    limit = save(Limit(kind="named", name="database", slots=0))
    jobs = [make_job(priority=priority) for priority in (5, 9, 1)]
    for job in jobs:
        share(limit, job)
        make_fire(job)
    early = make_fire(jobs[2], due_time=T0 - 50 * MINUTE)
    claim_all()
    assert [fire.job_id for fire in waiting()] == [jobs[1].id, jobs[2].id, jobs[0].id, jobs[2].id]
    assert waiting()[1].id == early.id


def test_a_full_limit_may_skip(database: str) -> None:
    job = make_job(max_running=1, when_full="skip", schedule_type="CRON", schedule_conf="* * * * * ?")
    make_fire(job, due_time=T0 - 1_000)
    (run,) = claim_all().claims
    make_fire(job)
    assert not claim_all().claims
    assert not waiting()
    skip = only_row(Skip)
    assert (skip.job_id, skip.from_ms, skip.to_ms, skip.skipped, skip.reason, skip.trigger_type) == (
        job.id,
        T0,
        T0,
        1,
        "limit",
        "",
    )
    assert [fire.log_id for fire in all_rows(Fire)] == [run.log_id]


def test_a_skipped_run_by_hand_is_found_by_its_trigger(database: str) -> None:
    job = make_job(max_running=1, when_full="skip")
    make_fire(job)
    claim_all()
    make_fire(job, trigger_type="MANUAL", fire_key=f"manual:{T0}-{'0' * 14}7{'a' * 17}")
    claim_all()
    skip = only_row(Skip)
    assert (skip.trigger_type, skip.trigger_key, skip.reason) == ("MANUAL", 7, "limit")


def test_only_the_newest_waits(database: str) -> None:
    job = make_job(max_running=1, when_full="newest")
    for number in range(4):
        make_fire(job, due_time=T0 - 4_000 + number)
    claim_all()
    newest = make_fire(job)
    claim_all()
    assert [fire.id for fire in waiting()] == [newest.id]
    assert sum(skip.skipped for skip in all_rows(Skip)) == 3


def test_a_fixed_delay_goes_on_after_a_skip(database: str) -> None:
    limit = save(Limit(kind="named", name="database", slots=0))
    job = make_job(
        when_full="skip",
        schedule_type="FIX_DELAY",
        schedule_conf="60",
        trigger_status=1,
        trigger_next_time=2**63 - 1,
    )
    share(limit, job)
    make_fire(job)
    claim_all()
    assert only_row(Job).trigger_next_time == T0 + 60_000


def test_the_longest_wait_ends_in_a_skip(database: str) -> None:
    job = make_job(max_running=1, max_wait_s=30)
    make_fire(job)
    claim_all()
    make_fire(job, due_time=T0 + 1)
    claim_all(T0 + 1)
    assert end_waits(zone="UTC", now_ms=T0 + 30_000) == 0
    assert end_waits(zone="UTC", now_ms=T0 + 30_001) == 1
    assert only_row(Skip).reason == "limit"
    assert not waiting()


def test_more_than_so_many_do_not_wait(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_gate, "WAITING_MAX", 2)
    job = make_job(max_running=1)
    for number in range(5):
        make_fire(job, due_time=T0 - 5 + number)
    claim_all()
    assert len(waiting()) == 2
    assert sum(skip.skipped for skip in all_rows(Skip)) == 2


def test_a_broadcast_is_one_run_of_its_job_and_several_elsewhere(database: str) -> None:
    job = make_job(addresses=f"{FIRST},{SECOND}", executor_route_strategy="SHARDING_BROADCAST", max_running=1)
    limit = save(Limit(kind="named", name="database", slots=3))
    share(limit, job)
    make_fire(job)
    make_fire(job, due_time=T0 + 1)
    batch = claim_all(T0 + 1)
    assert len(batch.new_fires) == 2
    assert [fire.waits_for.split(" ", 1)[1] for fire in waiting()] == ["full 1/1"]
    runs = claim_fires([fire for fire in all_rows(Fire) if fire.state == "PENDING"], now_ms=T0 + 1).claims
    assert len(runs) == 2
    call_back(runs[0].log_id)
    assert not look().new_fires
    call_back(runs[1].log_id)
    assert len(look(T0 + 2).new_fires) == 2


def test_a_broadcast_with_more_shards_than_slots_runs_alone(database: str) -> None:
    job = make_job(addresses=f"{FIRST},{SECOND}", executor_route_strategy="SHARDING_BROADCAST")
    limit = save(Limit(kind="named", name="database", slots=1))
    share(limit, job)
    make_fire(job)
    make_fire(job)
    assert len(claim_all().new_fires) == 2
    assert len(waiting()) == 1


def test_an_unresolved_run_holds_its_slot_until_a_late_result(database: str) -> None:
    job = make_job(max_running=1, schedule_type="FIX_DELAY")
    make_fire(job)
    (run,) = claim_all().claims
    assert unresolve(run.log_id)
    assert only_row(Fire).state == "HELD"
    make_fire(job)
    assert not claim_all().claims
    assert call_back(run.log_id)
    assert [fire.state for fire in all_rows(Fire)] == ["WAITING"]
    assert len(look().claims) == 1


def test_an_unresolved_run_without_limits_holds_nothing(database: str) -> None:
    make_fire(make_job())
    (run,) = claim_fires().claims
    assert unresolve(run.log_id)
    assert not all_rows(Fire)


def test_a_retry_of_an_unresolved_run_takes_its_slot_over(database: str) -> None:
    job = make_job(max_running=1, delivery="at_least_once", executor_fail_retry_count=1, limit_key="${param}")
    make_fire(job, executor_param="acme")
    (run,) = claim_all().claims
    assert unresolve(run.log_id)
    retry = only_row(Fire)
    assert (retry.trigger_type, retry.limit_key) == ("RETRY", "acme")
    assert retry.admitted_ms
    make_fire(job, executor_param="acme")
    claim_all()
    assert len(waiting()) == 1


def test_the_slot_of_a_failed_run_is_free_until_its_retry(database: str) -> None:
    job = make_job(max_running=1, executor_fail_retry_count=1)
    make_fire(job, due_time=T0 - MINUTE)
    (run,) = claim_all().claims
    call_back(run.log_id, 500)
    make_fire(job)
    assert len(claim_all().claims) == 1
    claim_all(T0 + MINUTE)
    # Its place is that of the first run of its chain.
    assert only_row(Fire, state="WAITING").deadline_ms == T0 - MINUTE


def test_a_run_that_was_given_back_keeps_its_slot(database: str) -> None:
    job = make_job(max_running=1)
    make_fire(job)
    (run,) = claim_all().claims
    give_back_all(run)
    make_fire(job)
    assert not claim_all_limited().claims
    (again,) = claim_fires([only_row(Fire, id=run.fire_id)]).claims
    assert again.log_id == run.log_id


def claim_all_limited() -> ClaimBatch:
    """Claim the fires without slots."""
    due = as_due([fire for fire in all_rows(Fire) if not fire.admitted_ms])
    return transact(lambda session: claim_limited(session, due, claimer(), now_ms=T0))


def test_a_forced_run_is_not_asked_and_counts(database: str) -> None:
    job = make_job(max_running=1)
    make_fire(job, admitted_ms=T0)
    make_fire(job, admitted_ms=T0)
    runs = claim_fires().claims
    assert ["Limits: not asked, forced by a user" in run.trace for run in runs] == [True, True]
    make_fire(job)
    claim_all()
    assert [fire.waits_for.split()[1:3] for fire in waiting()] == [["full", "2/1"]]


def test_a_fire_whose_address_has_no_capacity_takes_no_slot(database: str) -> None:
    job = make_job(max_running=1)
    other = make_fire(make_job(job_group=job.job_group))
    make_fire(job)
    batch = claim_all_limited_with(0)
    assert not batch.claims
    assert [fire.job_id for fires in batch.parked_fires.values() for fire in fires] == [job.id]
    assert {fire.state for fire in all_rows(Fire)} == {"PENDING"}
    assert other.id


def claim_all_limited_with(free: int) -> ClaimBatch:
    """Claim the fires of limited jobs with so much capacity."""
    due = [fire for fire in all_rows(Fire) if only_row(Job, id=fire.job_id).max_running]
    by = claimer(capacity=lambda _: free)
    return transact(lambda session: claim_limited(session, as_due(due), by, now_ms=T0))


def test_a_stop_withdraws_what_waits_of_the_schedule(database: str) -> None:
    job = make_job(max_running=1, schedule_type="CRON", schedule_conf="* * * * * ?", trigger_status=1)
    make_fire(job, due_time=T0 - 1_000)
    claim_all()
    make_fire(job)
    make_fire(job, trigger_type="MANUAL")
    claim_all()
    transact(lambda session: switch_off(session, [job.id], clock=lambda: T0 + 1))
    assert [fire.trigger_type for fire in waiting()] == ["MANUAL"]
    assert only_row(Skip).reason == "stopped"


def test_runs_of_jobs_with_limits_are_not_prepared(database: str) -> None:
    jobs = [make_job(update_time=T0 - MINUTE), make_job(update_time=T0 - MINUTE, max_running=1)]
    ahead = [make_fire(job, due_time=T0 + 1_000) for job in jobs]
    prepared = transact(lambda session: prepare(session, as_due(ahead), claimer(), now_ms=T0))
    assert [*prepared] == [ahead[0].id]


def test_limits_that_are_gone_let_all_run(database: str) -> None:
    job = make_job(max_running=1)
    for _ in range(3):
        make_fire(job)
    claim_all()
    with session_scope() as session:
        session.get_one(Job, job.id).max_running = 0
    assert len(look().claims) == 2
    assert {fire.admitted_ms for fire in all_rows(Fire, state="SENDING")} == {0, T0}


def test_a_long_list_of_one_job_hides_no_other(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "ROUND_ROWS", 4)
    monkeypatch.setattr(slots, "_FIRST", slots._FIRST.limit(4))
    job, other = make_job(), make_job()
    for number in range(20):
        make_fire(job, state="WAITING", deadline_ms=T0 + number)
    hidden = make_fire(other, state="WAITING", deadline_ms=T0 + MINUTE)
    room = {JobKey(job.id, ""): 1, JobKey(other.id, ""): 1}
    first = transact(lambda session: slots.find_first(session, room))
    assert len(first) == 2
    assert first[-1][0].id == hidden.id


def test_a_run_whose_executor_refuses_frees_its_slot(database: str) -> None:
    from app.domain.runs.evidence import Fate

    job = make_job(max_running=1)
    make_fire(job)
    make_fire(job)
    (run,) = claim_all().claims
    record_sent(sent(run, Fate.REFUSED))
    assert len(look().claims) == 1
    assert len(all_rows(JobLog)) == 2


def test_claims_of_two_nodes_take_turns(database: str) -> None:
    if database.startswith("sqlite"):
        pytest.skip("a SQLite writer waits for the other's whole transaction")
    job = make_job(max_running=1)
    fires = [make_fire(job), make_fire(job)]
    claim_all_of([])
    batches: list[ClaimBatch] = []
    other = threading.Thread(target=lambda: batches.append(claim_all_of(fires[1:])))
    with session_scope() as session:
        batches.append(claim_limited(session, as_due(fires[:1]), claimer(), now_ms=T0))
        other.start()
        other.join(0.5)
        assert other.is_alive()
    other.join()
    assert sum(len(batch.claims) for batch in batches) == 1
    assert len(waiting()) == 1


def claim_all_of(fires: list[Fire]) -> ClaimBatch:
    """Claim fires as those with limits."""
    return transact(lambda session: claim_limited(session, as_due(fires), claimer("two"), now_ms=T0))
