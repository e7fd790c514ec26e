"""The waiting list of limits: its order, what runs wait for, and what users do with them."""

import json
from typing import Any

import pytest

from app.database.engine import read_scope, session_scope, transact
from app.domain.access.permissions import ALL_RIGHTS, Actor, Right, system_actor
from app.domain.enums import LimitKind
from app.domain.limits.waits import Wait, WaitReason
from app.domain.runs.trigger_keys import Trigger, key_of, new_trigger
from app.errors import Conflict, NotFound, PermissionDenied
from app.models.audit import AuditEntry
from app.models.fire import Fire
from app.models.job import Job
from app.models.limit import Limit, LimitUse
from app.models.skip import Skip
from app.pipeline.claimed_run import ClaimedRun
from app.pipeline.limits.claim_limited import claim_limited, find_ready
from app.services.jobs import jobs
from app.services.runs import run_lookup, waiting
from app.services.runs.waiting import WaitFilter, WaitingRun
from app.store.limits.slots import NO_END
from app.store.limits.waiting_list import Holder
from tests.pipeline.steps import call_back, claim_fires, claimer, unresolve
from tests.support.factories import (
    T0,
    all_rows,
    make_fire,
    make_group,
    make_job,
    make_run,
    only_row,
    save,
)
from tests.support.plan import every_database
from tests.support.statements import statements

pytestmark = pytest.mark.usefixtures("database")

ADMIN = system_actor("ann")
NOW = T0 + 60_000


def user(group_id: int, *rights: Right) -> Actor:
    return Actor(user_id=2, username="bob", is_admin=False, rights={group_id: frozenset(rights)})


def limit_of(job: Job) -> Limit:
    return save(Limit(kind="job", name=str(job.id)))


def wait(job: Job, limit: Limit, place: int, **columns: Any) -> Fire:
    text = Wait(limit.id, WaitReason.FULL, 1, 1).text
    values = {"state": "WAITING", "deadline_ms": place, "lease_until": NO_END, "waits_for": text}
    return make_fire(job, **{**values, **columns})


def triggered(job: Job, limit: Limit, place: int) -> tuple[Fire, Trigger]:
    trigger = new_trigger(job.id, T0)
    key = key_of(trigger, is_planned=False, request="")
    return wait(job, limit, place, fire_key=key, trigger_type="MANUAL"), trigger


def listed(actor: Actor = ADMIN, **options: Any) -> list[WaitingRun]:
    with read_scope() as session:
        return waiting.list_waiting(session, actor=actor, **{"limit": 50, **options})[0]


@every_database
def test_runs_are_listed_in_their_order_with_what_they_wait_for() -> None:
    job, other = make_job(max_running=1, priority=7), make_job(job_group=make_group().id)
    limit, named = limit_of(job), save(Limit(kind="named", name="database", slots=2))
    save(LimitUse(job_id=other.id, limit_id=named.id, weight=2))
    run, held = make_run(job, admitted_ms=T0), make_run(other, state="HELD", admitted_ms=T0)
    last = wait(job, limit, T0 + 9, logical_ms=T0 - 5_000)
    (first, trigger), foreign = triggered(job, limit, T0 + 1), wait(other, named, T0 + 5)
    rows = listed()
    assert [(row.id, row.position) for row in rows] == [
        (trigger.id, 1),
        (f"w{foreign.id}", 1),
        (f"w{last.id}", 2),
    ]
    assert [(row.priority, row.logical_ms, row.end_ms, row.trigger_type) for row in rows] == [
        (7, T0, None, "MANUAL"),
        (5, T0, None, "CRON"),
        (7, T0 - 5_000, None, "CRON"),
    ]
    limits = [row.waits_for for row in rows]
    assert [(each.kind, each.name, each.used, each.slots, each.log_ids) for each in limits if each] == [
        ("job", str(job.id), 1, 1, (run.id,)),
        ("named", "database", 2, 2, (held.id,)),
        ("job", str(job.id), 1, 1, (run.id,)),
    ]
    assert [row.fire_id for row in listed(user(job.job_group, Right.VIEW))] == [first.id, last.id]
    assert [row.fire_id for row in listed(group_id=other.job_group)] == [foreign.id]
    assert [row.fire_id for row in listed(criteria=WaitFilter(job_id=other.id))] == [foreign.id]
    assert [row.fire_id for row in listed(criteria=WaitFilter(limit_id=limit.id))] == [first.id, last.id]
    assert [row.fire_id for row in listed(criteria=WaitFilter(logical=(None, T0 - 1)))] == [last.id]
    assert [row.fire_id for row in listed(criteria=WaitFilter(logical=(T0, T0)))] == [first.id, foreign.id]


def test_pages_continue_with_the_positions_among_all() -> None:
    job = make_job(max_running=1)
    limit = limit_of(job)
    ids = [wait(job, limit, T0).id for _ in range(5)]
    pages, after = [], None
    while True:
        with read_scope() as session:
            rows, after = waiting.list_waiting(session, actor=ADMIN, after=after, limit=2)
        pages.append([(row.fire_id, row.position) for row in rows])
        if after is None:
            break
    assert pages == [
        [(ids[0], 1), (ids[1], 2)],
        [(ids[2], 3), (ids[3], 4)],
        [(ids[4], 5)],
    ]


def test_the_list_takes_as_many_statements_for_many_runs_as_for_one() -> None:
    def count_of(runs: int) -> int:
        for _ in range(runs):
            job = make_job(max_running=1)
            make_run(job, admitted_ms=T0)
            wait(job, limit_of(job), T0)
        with statements() as made:
            listed(user(job.job_group, Right.VIEW))
            listed()
        return len(made)

    assert count_of(1) == count_of(12)


def test_holders_are_those_of_the_scope_and_hidden_of_foreign_groups() -> None:
    job = make_job()
    other, elsewhere = make_job(job_group=job.job_group), make_job()
    named = save(Limit(kind="named", name="database", slots=9))
    for each, weight in ((job, 2), (elsewhere, 3)):
        save(LimitUse(job_id=each.id, limit_id=named.id, weight=weight))
    runs = [make_run(each, admitted_ms=T0) for each in (job, other, elsewhere)]
    make_fire(job)
    with read_scope() as session:
        own = waiting.list_holders(session, LimitKind.JOB, job.id, actor=ADMIN)
        group = waiting.list_holders(session, LimitKind.GROUP, job.job_group, actor=ADMIN)
        viewer = user(job.job_group, Right.VIEW)
        shared = waiting.list_holders(session, LimitKind.NAMED, named.id, actor=viewer)
    assert [(row.log_id, row.weight) for row in own] == [(runs[0].id, 1)]
    assert [row.log_id for row in group] == [runs[0].id, runs[1].id]
    assert [(row.log_id, row.weight, row.job_id) for row in shared] == [(runs[0].id, 2, job.id), (None, 3, 0)]


def start(run_id: str, actor: Actor = ADMIN) -> None:
    with session_scope() as session:
        waiting.start_now(session, run_id, actor=actor, now_ms=NOW)


def withdraw(run_id: str, actor: Actor = ADMIN) -> None:
    with session_scope() as session:
        waiting.withdraw_run(session, run_id, actor=actor, now_ms=NOW)


@every_database
def test_a_waiting_run_is_started_whatever_the_limit_has() -> None:
    job = make_job(max_running=1)
    limit = limit_of(job)
    fire, (manual, trigger) = wait(job, limit, T0), triggered(job, limit, T0)
    start(f"w{fire.id}")
    start(trigger.id)
    for row in all_rows(Fire):
        assert (row.state, row.admitted_ms, row.deadline_ms, row.lease_until, row.waits_for) == (
            "PENDING",
            NOW,
            0,
            0,
            "",
        )
    entries = [(row.action, row.object_id, json.loads(row.changes or "")) for row in all_rows(AuditEntry)]
    assert entries == [
        ("run.start", job.id, {"due_ms": T0, "trigger_type": "CRON"}),
        ("run.start", job.id, {"due_ms": T0}),
    ]
    for run_id in (f"w{fire.id}", trigger.id, f"w{manual.id}"):
        with pytest.raises(Conflict, match="waits for no limit"):
            start(run_id)
    with pytest.raises(NotFound):
        start("w99999")


def test_starting_and_withdrawing_need_the_right_operate() -> None:
    job = make_job(max_running=1)
    fire = wait(job, limit_of(job), T0)
    for act in (start, withdraw):
        with pytest.raises(PermissionDenied):
            act(f"w{fire.id}", user(job.job_group, Right.VIEW, Right.EDIT))
        with pytest.raises(NotFound):
            act(f"w{fire.id}", user(job.job_group + 1, *ALL_RIGHTS))


def test_a_run_that_has_started_is_neither_started_nor_withdrawn() -> None:
    run = make_run(make_job(max_running=1), admitted_ms=T0)
    fire = only_row(Fire)
    for act in (start, withdraw):
        with pytest.raises(Conflict, match="has started already"):
            act(f"w{fire.id}")
    with read_scope() as session:
        assert run_lookup.get_run(session, f"w{fire.id}", actor=ADMIN).id == str(run.id)


@every_database
def test_withdrawn_instants_children_and_retries_are_on_record() -> None:
    job = make_job(max_running=1, schedule_type="CRON", schedule_conf="0 0 * * * ?")
    limit = limit_of(job)
    scheduled = wait(job, limit, T0)
    child = wait(job, limit, T0, fire_key="child:5:1", trigger_type="PARENT")
    _, trigger = triggered(job, limit, T0)
    for run_id in (f"w{scheduled.id}", f"w{child.id}", trigger.id):
        withdraw(run_id)
    assert not all_rows(Fire)
    assert [(row.reason, row.trigger_type, row.from_ms, row.to_ms) for row in all_rows(Skip)] == [
        ("withdrawn", "", T0, T0),
        ("withdrawn", "PARENT", T0, T0),
    ]
    assert [row.action for row in all_rows(AuditEntry)] == ["job.withdraw"] * 3
    for run_id in (f"w{scheduled.id}", trigger.id):
        with pytest.raises(NotFound):
            withdraw(run_id)


def test_an_instant_that_waits_for_its_scheduler_is_not_withdrawn() -> None:
    fire = make_fire(make_job())
    with pytest.raises(Conflict, match="waits for no limit"):
        withdraw(f"w{fire.id}")
    assert only_row(Fire).state == "PENDING"


def test_a_held_slot_is_released() -> None:
    job = make_job(max_running=1)
    run, running = make_run(job, state="HELD", admitted_ms=T0), make_run(job, admitted_ms=T0)

    def release(log_id: int, actor: Actor = ADMIN) -> None:
        with session_scope() as session:
            waiting.release_slot(session, log_id, actor=actor, now_ms=NOW)

    with pytest.raises(PermissionDenied):
        release(run.id, user(job.job_group, Right.VIEW))
    release(run.id)
    assert [fire.log_id for fire in all_rows(Fire)] == [running.id]
    entry = only_row(AuditEntry)
    assert (entry.action, entry.object_type, entry.object_id) == ("run.release", "log", run.id)
    for log_id in (run.id, running.id):
        with pytest.raises(Conflict, match="holds no slot"):
            release(log_id)


@every_database
def test_a_run_without_a_row_is_found_by_the_id_of_its_fire() -> None:
    job = make_job(max_running=1)
    fire = wait(job, limit_of(job), T0)
    manual, trigger = triggered(job, only_row(Limit), T0 + 1)
    with read_scope() as session:
        run = run_lookup.get_run(session, f"w{fire.id}", actor=ADMIN)
        same = run_lookup.get_run(session, f"w{manual.id}", actor=ADMIN)
    assert (run.id, run.state, run.trigger_type, run.rows) == (f"w{fire.id}", "waiting", "CRON", ())
    assert run.waiting is not None
    assert (run.waiting.position, same.id) == (1, trigger.id)
    assert same.waiting is not None
    assert same.waiting.position == 2
    with pytest.raises(NotFound), read_scope() as session:
        run_lookup.get_run(session, "w99999", actor=ADMIN)
    with pytest.raises(NotFound), read_scope() as session:
        run_lookup.get_run(session, f"w{fire.id}", actor=user(job.job_group + 1, *ALL_RIGHTS))


@every_database
def test_a_trigger_that_a_limit_has_skipped_is_answered_as_not_started() -> None:
    job = make_job()
    with session_scope() as session:
        trigger = jobs.trigger_job(
            session, job.id, executor_param=None, address_list=None, actor=ADMIN, now_ms=T0, force=True
        ).trigger
    assert only_row(Fire).admitted_ms == T0
    assert json.loads(only_row(AuditEntry).changes or "")["force"] is True
    with session_scope() as session:
        session.delete(session.get(Fire, only_row(Fire).id))
        values = {"from_ms": T0, "to_ms": T0, "skipped": 1, "reason": "limit", "trigger_type": "MANUAL"}
        session.add(Skip(job_id=job.id, recorded_ms=NOW, trigger_key=trigger.number, **values))
    run = run_lookup.wait_for_end(trigger.id, actor=ADMIN, timeout_s=5)
    assert (run.state, run.skipped, run.has_ended) == ("not_started", "limit", True)
    with pytest.raises(Conflict, match="skipped"):
        run_lookup.row_of(run)


def queue(job: Job, **options: Any) -> Trigger:
    with session_scope() as session:
        return jobs.trigger_job(
            session, job.id, executor_param=None, address_list=None, actor=ADMIN, now_ms=T0, **options
        ).trigger


def claim(now_ms: int = NOW) -> list[ClaimedRun]:
    """Claim what is due or has slots by now, as a dispatcher does."""
    due = [fire for fire in all_rows(Fire) if fire.state == "PENDING"]
    batch = claim_fires(due, now_ms=now_ms)
    ready = [*batch.limited_fires, *find_ready()]
    limited = transact(lambda session: claim_limited(session, ready, claimer(), now_ms=now_ms))
    return [*batch.claims, *limited.claims]


@every_database
def test_triggered_runs_wait_are_started_forced_and_released() -> None:
    job = make_job(max_running=1)
    triggers = [queue(job) for _ in range(3)]
    (first,) = claim()
    rows = listed()
    assert {row.id for row in rows} < {trigger.id for trigger in triggers}
    assert [row.position for row in rows] == [1, 2]
    assert rows[0].waits_for is not None
    assert rows[0].waits_for.log_ids == (first.log_id,)
    start(rows[0].id)
    (started,) = claim()
    forced = queue(job, force=True)
    (third,) = claim()
    with read_scope() as session:
        assert run_lookup.get_run(session, forced.id, actor=ADMIN).rows[0].id == third.log_id
    for run in (first, started):
        call_back(run.log_id)
    assert unresolve(third.log_id)
    assert claim() == [], "it holds its slot"
    assert [holder.state for holder in holders(job)] == ["HELD"]
    with session_scope() as session:
        waiting.release_slot(session, third.log_id, actor=ADMIN, now_ms=NOW)
    (last,) = claim()
    assert only_row(Fire).log_id == last.log_id


def holders(job: Job) -> list[Holder]:
    with read_scope() as session:
        return waiting.list_holders(session, LimitKind.JOB, job.id, actor=ADMIN)


@every_database
def test_a_trigger_without_a_slot_is_skipped_by_the_claim() -> None:
    job = make_job(max_running=1, when_full="skip")
    triggers = [queue(job), queue(job)]
    claim()
    states = {run_lookup.wait_for_end(trigger.id, actor=ADMIN, timeout_s=0).state for trigger in triggers}
    assert states == {"waiting", "not_started"}


def test_a_missed_run_behind_another_says_so_and_starts_when_asked() -> None:
    job = make_job(max_running=1)
    fire = make_fire(job, trigger_type="MISFIRE", state="GATED", waits_for="missed")
    (row,) = listed()
    assert (row.is_missed, row.is_gated, row.blackout, row.waits_for) == (True, False, None, None)
    with read_scope() as session:
        found = run_lookup.get_run(session, row.id, actor=ADMIN)
    with pytest.raises(Conflict, match="waits for the missed run before it"):
        run_lookup.row_of(found)
    transact(lambda session: waiting.start_now(session, row.id, actor=ADMIN, now_ms=NOW))
    # It has no slot yet.
    assert [(left.id, left.state, left.admitted_ms) for left in all_rows(Fire)] == [(fire.id, "PENDING", 0)]


def test_a_missed_run_behind_another_is_withdrawn_as_an_instant_of_the_schedule() -> None:
    make_fire(make_job(), trigger_type="MISFIRE", state="GATED", waits_for="missed")
    (row,) = listed()
    transact(lambda session: waiting.withdraw_run(session, row.id, actor=ADMIN, now_ms=NOW))
    assert (all_rows(Fire), only_row(Skip).reason) == ([], "withdrawn")
