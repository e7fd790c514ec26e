"""Rounds as users see them: what has arrived and what is missing; and runs that wait for predecessors."""

import json
from functools import partial

import pytest

from app.clock import Millis
from app.database.engine import read_scope, transact
from app.domain.access.permissions import ALL_RIGHTS, Actor, Right, system_actor
from app.domain.rounds.kinds import ArrivalOutcome
from app.errors import Conflict, NotFound
from app.models.audit import AuditEntry
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.models.round import Round
from app.models.skip import Skip
from app.services.rounds import listing
from app.services.rounds.listing import RoundFilter, RoundView
from app.services.runs import run_lookup, waiting
from tests.pipeline.round_steps import claim_due, follow, look, run
from tests.pipeline.steps import call_back
from tests.support.factories import SECOND, T0, all_rows, make_fire, make_group, make_job, only_row
from tests.support.plan import every_database
from tests.support.statements import statements

pytestmark = pytest.mark.usefixtures("database")

ADMIN = system_actor("ann")
ALL = RoundFilter()
MINUTE: Millis = 60_000


def user(*group_ids: int) -> Actor:
    rights = {group_id: frozenset({Right.VIEW}) for group_id in group_ids}
    return Actor(user_id=2, username="bob", is_admin=False, rights=rights)


def listed(wanted: RoundFilter = ALL, actor: Actor = ADMIN, **page: int) -> list[RoundView]:
    with read_scope() as session:
        return listing.list_rounds(session, wanted, actor=actor, **{"limit": 50, **page})


def show(round_id: int, actor: Actor = ADMIN) -> RoundView:
    with read_scope() as session:
        return listing.show_round(session, round_id, actor=actor)


@every_database
def test_a_round_shows_who_has_arrived_and_what_is_on_its_way() -> None:
    done, running, retried, silent = make_job(), make_job(), make_job(executor_fail_retry_count=1), make_job()
    last = follow(done, running, retried, silent)
    done_id = run(done)
    retried_id = run(retried, 500)
    make_fire(running, due_time=T0)
    make_fire(running, due_time=T0 + MINUTE)
    [claimed] = [each for each in claim_due() if each.job_id == running.id]
    view = show(only_row(Round).id)
    assert (view.job_name, view.state, view.logical_ms) == (last.job_desc, "open", T0)
    retry = only_row(Fire, trigger_type="RETRY")
    assert [(each.outcome, each.is_running, each.log_id, each.retry_ms) for each in view.predecessors] == [
        (ArrivalOutcome.SUCCEEDED, False, done_id, None),
        (None, True, None, None),
        (ArrivalOutcome.RETRYING, False, retried_id, retry.due_time),
        (None, False, None, None),
    ]
    assert call_back(claimed.log_id)
    assert [each.is_running for each in show(view.id).predecessors] == [False] * 4


def test_a_predecessor_of_another_group_has_no_name_and_a_deleted_one_none_either() -> None:
    own = make_group().id
    first, hidden = make_job(job_group=own), make_job()
    last = follow(first, hidden, job=make_job(job_group=own), rule="all_ended")
    run(hidden, 500)
    with read_scope() as session:
        text = json.loads(session.get_one(Job, last.id).runs_after or "")
    text["jobs"].append(999)
    transact(lambda session: setattr(session.get_one(Job, last.id), "runs_after", json.dumps(text)))
    [view] = listed(actor=user(own))
    shown = [(each.job_id, each.name, each.is_foreign, each.log_id) for each in view.predecessors]
    assert shown == [
        (first.id, first.job_desc, False, None),
        (0, None, True, None),
        (999, None, False, None),
    ]
    assert listed(actor=user(hidden.job_group)) == []
    with pytest.raises(NotFound):
        show(view.id, user(hidden.job_group))
    with pytest.raises(NotFound):
        show(view.id + 1)


def test_a_round_that_was_not_run_names_its_cause() -> None:
    first = make_job()
    second = follow(first)
    third = follow(second)
    failed = run(first, 500)
    look()
    views = {view.job_id: view for view in listed()}
    assert (views[second.id].reason, views[second.id].cause_log_id) == ("predecessor", failed)
    assert views[third.id].cause_log_id == failed
    [predecessor] = views[third.id].predecessors
    assert (predecessor.outcome, predecessor.reason) == (ArrivalOutcome.NOT_RUN, "predecessor")
    assert [view.job_id for view in listed(RoundFilter(cause_log_id=failed))] == [third.id, second.id]


def test_shards_are_counted() -> None:
    first = make_job(
        executor_route_strategy="SHARDING_BROADCAST", addresses=f"http://127.0.0.1:1111/,{SECOND}"
    )
    follow(first)
    make_fire(first, due_time=T0)
    one, _other = claim_due()
    assert call_back(one.log_id)
    [predecessor] = listed()[0].predecessors
    assert (predecessor.outcome, predecessor.succeeded_shards, predecessor.total_shards) == (None, 1, 2)
    assert predecessor.is_running


def test_a_broadcast_that_failed_names_the_shard_that_did() -> None:
    first = make_job(
        executor_route_strategy="SHARDING_BROADCAST", addresses=f"http://127.0.0.1:1111/,{SECOND}"
    )
    follow(first)
    make_fire(first, due_time=T0)
    failed, succeeded = claim_due()
    assert call_back(failed.log_id, 500)
    assert call_back(succeeded.log_id)
    [predecessor] = listed()[0].predecessors
    assert (predecessor.outcome, predecessor.log_id) == (ArrivalOutcome.FAILED, failed.log_id)


def test_lists_are_filtered_and_paged_with_as_many_statements_for_many_as_for_one() -> None:
    first = make_job()
    jobs = [follow(first), follow(first)]
    for minutes in range(3):
        run(first, due_time=T0 + minutes * MINUTE, now_ms=T0 + minutes * MINUTE)
    with statements() as seen:
        views = listed()
    assert len(views) == 6
    assert len(seen) <= 6
    assert [view.id for view in listed(limit=2)] == [views[0].id, views[1].id]
    assert [view.id for view in listed(before_id=views[1].id)] == [view.id for view in views[2:]]
    assert {view.job_id for view in listed(RoundFilter(job_id=jobs[1].id))} == {jobs[1].id}
    assert listed(RoundFilter(state="open")) == []
    assert listed(RoundFilter(chain=7)) == []


def gate() -> tuple[Job, Fire]:
    """Return a job whose instant waits for its predecessor, and its fire."""
    job = make_job(schedule_type="CRON", schedule_conf="0 0 3 * * ?", trigger_status=1)
    follow(make_job(), job=job)
    make_fire(job, due_time=T0)
    assert claim_due() == []
    return job, only_row(Fire, state="GATED")


@every_database
def test_an_instant_that_waits_for_predecessors_is_listed_started_and_withdrawn() -> None:
    job, fire = gate()
    with read_scope() as session:
        [row], _ = waiting.list_waiting(session, actor=ADMIN, limit=10)
        found = run_lookup.get_run(session, f"w{fire.id}", actor=ADMIN)
    assert (row.id, row.is_gated, row.round_id, row.end_ms, row.waits_for) == (
        f"w{fire.id}",
        True,
        only_row(Round).id,
        None,
        None,
    )
    assert (found.state, found.round_id) == ("waiting", row.round_id)
    with pytest.raises(Conflict, match="waits for its predecessors"):
        run_lookup.row_of(found)
    transact(partial(waiting.start_now, run_id=row.id, actor=ADMIN, now_ms=T0))
    assert (only_row(Fire).state, only_row(Fire).round_id) == ("PENDING", row.round_id)
    assert only_row(AuditEntry).action == "run.start"
    [claimed] = claim_due()
    assert call_back(claimed.log_id)
    assert only_row(JobLog).round_id == row.round_id
    assert only_row(Round).state == "open"
    assert only_row(Job, id=job.id).id


def test_an_instant_that_is_withdrawn_is_skipped() -> None:
    job, fire = gate()
    operate = Actor(2, "bob", is_admin=False, rights={job.job_group: ALL_RIGHTS})
    transact(partial(waiting.withdraw_run, run_id=f"w{fire.id}", actor=operate, now_ms=T0))
    assert all_rows(Fire) == []
    skip = only_row(Skip)
    assert (skip.reason, skip.from_ms) == ("withdrawn", T0)
