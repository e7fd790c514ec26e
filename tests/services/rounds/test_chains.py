"""Chains: the rounds that a trigger opens; and missing runs of a round that are run again."""

import json
from functools import partial
from typing import Any

import pytest
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import session_scope, transact
from app.domain.access.permissions import ALL_RIGHTS, Actor, Right, system_actor
from app.domain.enums import KillReason
from app.domain.runs.trigger_keys import Trigger
from app.errors import Conflict, InvalidInput, NotFound, PermissionDenied
from app.models.audit import AuditEntry
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.models.round import Arrival, Round
from app.pipeline.complete import callback_result
from app.services.jobs import triggers
from app.services.jobs.triggers import InChain, QueuedRun
from app.services.rounds import chains
from app.services.runs import planned_runs, round_runs
from app.services.runs.run_actions import retry_run
from tests.pipeline.round_steps import claim_due, follow, following, look, outcomes, run, states
from tests.pipeline.steps import call_back, end, unresolve
from tests.support.factories import (
    FIRST,
    SECOND,
    T0,
    all_rows,
    make_fire,
    make_group,
    make_job,
    make_run,
    only_row,
)
from tests.support.plan import every_database

pytestmark = pytest.mark.usefixtures("database")

ADMIN = system_actor("ann")
DAY: Millis = 86_400_000


def trigger(job: Job, *, actor: Actor = ADMIN, **options: Any) -> Trigger:
    in_chain = InChain(opens=True, shared_with_java=options.pop("shared_with_java", False))

    def work(session: Session) -> QueuedRun:
        return triggers.trigger_job(
            session,
            job.id,
            executor_param=None,
            address_list=None,
            actor=actor,
            now_ms=T0,
            in_chain=in_chain,
            **options,
        )

    return transact(work).trigger


def run_missing(round_id: int, actor: Actor = ADMIN) -> list[QueuedRun]:
    return transact(partial(round_runs.run_missing, round_id=round_id, actor=actor, now_ms=T0))


def end_all(code: int = 200) -> list[int]:
    """Claim and end all fires that are due; return the log ids."""
    ids = [claimed.log_id for claimed in claim_due()]
    for log_id in ids:
        assert call_back(log_id, code)
    return ids


@every_database
def test_a_trigger_opens_the_rounds_of_all_that_follow() -> None:
    outside = make_job()
    child = make_job()
    root = make_job(child_jobid=str(child.id))
    second = follow(root)
    last = follow(second, child, outside, deadline_s=60)
    beside = follow(outside)
    made = trigger(root, logical_ms=T0 - DAY)
    key = f"c:{made.number}"
    rows = {row.job_id: row for row in all_rows(Round)}
    assert {job_id: row.round_key for job_id, row in rows.items()} == {second.id: key, last.id: key}
    assert (rows[last.id].logical_ms, rows[last.id].chain) == (T0 - DAY, made.number)
    assert rows[last.id].deadline_ms == rows[last.id].due_ms == T0 + 60_000
    assert outcomes(last) == {(outside.id, 0): "excused"}
    assert only_row(Fire).chain == made.number
    assert json.loads(only_row(AuditEntry, action="job.trigger").changes or "")["chain"] is True
    assert not all_rows(Round, job_id=beside.id)
    while end_all():
        pass
    assert [log.job_id for log in all_rows(JobLog)] == [root.id, child.id, second.id, last.id] or [
        log.job_id for log in all_rows(JobLog)
    ] == [root.id, second.id, child.id, last.id]
    assert {log.chain for log in all_rows(JobLog)} == {made.number}
    assert {log.logical_ms for log in all_rows(JobLog)} == {T0 - DAY}


def test_a_job_that_is_in_a_chain_only_as_a_child_gets_no_round() -> None:
    outside = make_job()
    child = follow(outside)
    trigger(make_job(child_jobid=str(child.id)))
    assert all_rows(Round) == []


def test_a_failed_root_ends_the_chain_and_run_again_goes_on_with_it() -> None:
    root = make_job()
    second = follow(root)
    third = follow(second)
    made = trigger(root)
    [log_id] = end_all(500)
    look()
    assert [row.state for row in all_rows(Round)] == ["not_run", "not_run"]
    assert all_rows(Fire) == []
    transact(partial(retry_run, run_id=str(log_id), actor=ADMIN, now_ms=T0))
    while end_all():
        pass
    assert states(third) == [(f"c:{made.number}", "started", "")]
    assert [log.job_id for log in all_rows(JobLog)] == [root.id, root.id, second.id, third.id]


def test_a_run_of_a_round_that_is_run_again_stays_in_it() -> None:
    first = make_job()
    second = follow(first)
    run(first)
    [log_id] = end_all(500)
    round_id = only_row(Round).id
    transact(partial(retry_run, run_id=str(log_id), actor=ADMIN, now_ms=T0))
    assert [(fire.job_id, fire.round_id) for fire in all_rows(Fire)] == [(second.id, round_id)]


def test_a_chain_has_at_most_so_many_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "JOBS_MAX", 2)
    root = make_job()
    second = follow(root)
    trigger(root)
    follow(second)
    with pytest.raises(InvalidInput, match="More than 2 jobs follow this one") as refused:
        trigger(root)
    assert refused.value.field == "chain"
    assert len(all_rows(Fire)) == 1


def test_beside_a_java_admin_only_children_may_follow() -> None:
    trigger(make_job(child_jobid=str(make_job().id)), shared_with_java=True)
    root = make_job()
    follow(root)
    with pytest.raises(InvalidInput, match="XXL_JOB_SHARED_WITH_JAVA"):
        trigger(root, shared_with_java=True)


def test_a_planned_chain_waits_from_its_instant_on_and_is_withdrawn_as_a_whole() -> None:
    child = make_job()
    root = make_job(child_jobid=str(child.id))
    follow(root)
    last = follow(child)
    made = trigger(root, due_ms=T0 + DAY)
    assert {row.deadline_ms for row in all_rows(Round)} == {T0 + 2 * DAY}
    transact(partial(planned_runs.withdraw, trigger=made, actor=ADMIN, now_ms=T0))
    assert {(row.state, row.reason) for row in all_rows(Round)} == {("not_run", "predecessor")}
    assert only_row(Arrival, predecessor_id=child.id).reason == "withdrawn"
    assert not following(last)


@pytest.mark.parametrize("is_skipped", [True, False])
def test_children_of_a_run_that_did_not_succeed_do_not_keep_the_chain_open(is_skipped: bool) -> None:
    child = make_job()
    root = make_job(child_jobid=str(child.id), max_running=1, when_full="skip")
    last = follow(child)
    if is_skipped:
        make_run(root, admitted_ms=T0)
    made = trigger(root)
    claimed = [each for each in claim_due() if each.job_id == root.id]
    if not is_skipped:
        unresolve(claimed[0].log_id)
    look()
    assert states(last) == [(f"c:{made.number}", "not_run", "predecessor")]
    assert outcomes(last) == {(child.id, 0): "not_run"}


@every_database
def test_the_missing_runs_of_a_round_are_run_again() -> None:
    first, second, third = make_job(), make_job(), make_job()
    last = follow(first, second, third)
    run(first)
    failed = [run(job, 500) for job in (second, third)]
    look()
    assert states(last) == [(f"t:{T0}", "not_run", "predecessor")]
    round_id = only_row(Round).id
    queued = run_missing(round_id)
    assert [each.trigger.job_id for each in queued] == [second.id, third.id]
    fires = all_rows(Fire)
    assert [(fire.job_id, fire.repeats_log_id) for fire in fires] == list(
        zip((second.id, third.id), failed, strict=True)
    )
    entry = only_row(AuditEntry, action="job.run_missing")
    assert json.loads(entry.changes or "") == {"round": round_id, "runs": failed}
    with pytest.raises(Conflict, match="misses no run"):
        run_missing(round_id)
    end_all()
    assert len(following(last)) == 1
    with pytest.raises(Conflict, match="is over"):
        run_missing(round_id)


def test_the_cause_further_up_is_what_is_run_again() -> None:
    first = make_job()
    second = follow(first)
    last = follow(second)
    run(first, 500)
    look()
    queued = run_missing(only_row(Round, job_id=last.id).id)
    assert [each.trigger.job_id for each in queued] == [first.id]
    while end_all():
        pass
    assert [row.state for row in all_rows(Round)] == ["started", "started"]


def test_missing_runs_need_the_right_to_run_their_jobs() -> None:
    own, other = make_group().id, make_group(app_name="other").id
    first = make_job(job_group=other)
    last = follow(first, job=make_job(job_group=own))
    run(first, 500)
    look()
    round_id = only_row(Round, job_id=last.id).id
    with pytest.raises(PermissionDenied, match="whose runs are missing"):
        run_missing(round_id, Actor(7, "x", is_admin=False, rights={own: ALL_RIGHTS}))
    with pytest.raises(NotFound, match="no such round"):
        run_missing(round_id, Actor(7, "x", is_admin=False, rights={other: ALL_RIGHTS}))
    with pytest.raises(NotFound, match="no such round"):
        run_missing(round_id + 1)
    operate = {own: frozenset({Right.VIEW}), other: frozenset({Right.VIEW, Right.OPERATE})}
    assert run_missing(round_id, Actor(7, "x", is_admin=False, rights=operate))


def test_a_failed_shard_is_run_again_as_that_shard() -> None:
    first = make_job(executor_route_strategy="SHARDING_BROADCAST", addresses=f"{FIRST},{SECOND}")
    last = follow(first)
    make_fire(first)
    one, two = claim_due()
    call_back(one.log_id)
    call_back(two.log_id, 500)
    run_missing(only_row(Round).id)
    (again,) = claim_due()
    assert (again.address, again.request.broadcast_index, again.request.broadcast_total) == (SECOND, 1, 2)
    call_back(again.log_id)
    assert outcomes(last) == {(first.id, 0): "succeeded", (first.id, 1): "succeeded"}
    assert len(following(last)) == 1


def test_a_first_run_that_is_skipped_ends_the_chain_also_by_its_children() -> None:
    child = make_job()
    root = make_job(child_jobid=str(child.id), max_running=1, when_full="skip")
    last = follow(child)
    make_fire(root)
    claim_due()
    made = trigger(root)
    assert not claim_due()
    assert states(last) == [(f"c:{made.number}", "not_run", "predecessor")]


def test_an_unresolved_first_run_ends_the_chain_until_its_late_result() -> None:
    child = make_job()
    root = make_job(child_jobid=str(child.id))
    last = follow(child)
    made = trigger(root)
    (claimed,) = claim_due()
    unresolve(claimed.log_id)
    assert states(last) == [(f"c:{made.number}", "not_run", "predecessor")]
    assert call_back(claimed.log_id)
    end_all()
    assert states(last) == [(f"c:{made.number}", "started", "")]


def test_a_run_of_a_chain_that_is_killed_for_a_newer_one_did_not_run_in_it() -> None:
    root = make_job()
    last = follow(root, round="day")
    made = trigger(root)
    (claimed,) = claim_due()
    with session_scope() as session:
        session.get_one(JobLog, claimed.log_id).killed = KillReason.REPLACED
    assert call_back(claimed.log_id, 500)
    assert states(last) == [(f"c:{made.number}", "not_run", "predecessor")]


def test_a_chain_needs_the_right_to_run_what_would_run_sooner_by_it() -> None:
    root, outside = make_job(), make_job()
    foreign = make_group().id
    follow(root, job=make_job(schedule_type="NONE", job_group=foreign))
    actor = Actor(7, "x", is_admin=False, rights={root.job_group: ALL_RIGHTS})
    trigger(root, actor=actor)
    scheduled = follow(root, job=make_job(schedule_type="CRON", job_group=foreign))
    with pytest.raises(PermissionDenied):
        trigger(root, actor=actor)
    with session_scope() as session:
        session.get_one(Job, scheduled.id).schedule_type = "NONE"
    trigger(root, actor=actor)
    follow(root, outside, job=make_job(schedule_type="NONE", job_group=foreign))
    with pytest.raises(PermissionDenied):
        trigger(root, actor=actor)
    operate = {root.job_group: ALL_RIGHTS, foreign: frozenset({Right.VIEW, Right.OPERATE})}
    assert trigger(root, actor=Actor(7, "x", is_admin=False, rights=operate))


def test_two_chains_that_fail_together_both_end() -> None:
    child = make_job()
    root = make_job(child_jobid=str(child.id))
    last = follow(child)
    keys = [f"c:{trigger(root).number}" for _ in range(2)]
    end(*(callback_result(claimed.log_id, 500, None) for claimed in claim_due()))
    assert sorted(states(last)) == sorted((key, "not_run", "predecessor") for key in keys)
