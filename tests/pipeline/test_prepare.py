"""prepare(): scheduled fires are routed and logged before they are due; their claim only marks them.

Source: docs/reference/pipeline.md, section 3.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import session_scope, transact
from app.domain.enums import RouteStrategy
from app.models.base import use_zone
from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.pipeline.claim import ClaimBatch, claim
from app.pipeline.claimed_run import CLAIM_AHEAD_MS, Claimer
from app.pipeline.handover import hand_back
from app.pipeline.prepare import EDITED_MS, PreparedFire, prepare
from app.store.fires import logs, scheduled_fires
from app.store.fires import queue as fires
from app.store.jobs import removal
from app.store.runs import clearing as log_clearing
from app.store.runs.clearing import Clearing
from executor_client.wire.lenient_json import dump_json
from tests.pipeline.steps import as_due, claim_fires, claimer, run_concurrently, unresolve
from tests.support.factories import (
    BERLIN_SECOND_TWO,
    FIRST,
    SECOND,
    T0,
    all_rows,
    make_drains,
    make_due_job,
    make_fire,
    make_job,
    make_log,
    only_row,
    remove,
)
from tests.support.plan import every_database

pytestmark = every_database

#: before the instant of the fires
AHEAD: Millis = 300


def prepare_fires(by: Claimer | None = None, *, now_ms: Millis = T0 - AHEAD) -> dict[int, PreparedFire]:
    """Prepare all fires."""
    due = as_due(all_rows(Fire))
    return transact(lambda session: prepare(session, due, by or claimer(), now_ms=now_ms))


def claim_prepared(
    prepared: dict[int, PreparedFire], by: Claimer | None = None, *, now_ms: Millis = T0 + 2
) -> ClaimBatch:
    due = as_due(all_rows(Fire))
    return transact(
        lambda session: claim(session, due, by or claimer(), now_ms=now_ms, prepared_by_id=prepared)
    )


def change(model: type[Any], **values: Any) -> None:
    with session_scope() as session:
        session.execute(update(model).values(**values))


def old_job(**changes: Any) -> Job:
    """Commit a job that was not edited lately, with a fire due at T0."""
    job = make_job(**{"update_time": T0 - AHEAD - EDITED_MS - 2_000, **changes})
    make_fire(job, owner="one")
    return job


def test_a_prepared_fire_is_pending_and_has_the_log_row_of_its_instant(database: str) -> None:
    old_job(executor_handler="report", executor_param="day=1", addresses=f"{FIRST},{SECOND}")
    (made,) = prepare_fires().values()
    fire, log = only_row(Fire), only_row(JobLog)
    assert (fire.state, fire.log_id, fire.address) == ("PENDING", log.id, FIRST)
    assert (fire.attempt, fire.epoch, fire.lease_until, fire.owner) == (0, 0, 0, "one")
    assert (log.trigger_time, log.fire_time, log.trigger_code, log.handle_code) == (T0, T0, 0, 0)
    assert (log.executor_address, log.executor_handler, log.executor_param) == (FIRST, "report", "day=1")
    assert (made.claim.log_id, made.claim.request.log_id) == (log.id, log.id)


def test_a_preparation_that_is_rolled_back_takes_no_turn(database: str) -> None:
    job = old_job(addresses=f"{FIRST},{SECOND}", executor_route_strategy="LEAST_RECENTLY_USED")
    due, by = as_due(all_rows(Fire)), claimer()
    with session_scope() as session:
        (undone,) = prepare(session, due, by, now_ms=T0 - AHEAD).values()
        session.rollback()
    assert by.routes.needs_seed(RouteStrategy.LEAST_RECENTLY_USED, job.id)
    (made,) = prepare_fires(by).values()
    assert (undone.claim.address, made.claim.address) == (FIRST, FIRST)


def test_its_claim_keeps_the_log_row(database: str) -> None:
    old_job(executor_param="day=1")
    prepared = prepare_fires()
    logged = only_row(JobLog)
    (run,) = claim_prepared(prepared).claims
    fire = only_row(Fire)
    assert (run.log_id, run.address, run.epoch, run.attempt) == (logged.id, FIRST, 1, 1)
    assert (fire.state, fire.log_id, fire.address, fire.owner) == ("SENDING", logged.id, FIRST, "one")
    assert (fire.attempt, fire.epoch, fire.sent_ms) == (1, 1, T0 + 2)
    assert fire.lease_until == T0 + 2 + claimer().lease_ms
    assert (run.request.log_date_time, run.request.executor_params) == (T0, "day=1")
    assert any("(2 ms after due), node one" in line for line in run.trace)
    assert only_row(JobLog).id == logged.id


def test_its_request_has_the_time_that_its_row_reads_back_in_a_repeated_hour(database: str) -> None:
    use_zone("Europe/Berlin")
    old_job()
    change(Fire, due_time=BERLIN_SECOND_TWO)
    (made,) = prepare_fires(now_ms=BERLIN_SECOND_TWO - AHEAD).values()
    assert made.claim.request.log_date_time == only_row(JobLog).trigger_time


def test_it_is_claimed_like_one_that_was_not_prepared(database: str) -> None:
    job = old_job(executor_param="day=1", executor_timeout=7, executor_fail_retry_count=2)
    old_job(executor_param="day=1", executor_timeout=7, executor_fail_retry_count=2, job_group=job.job_group)
    first, second = as_due(all_rows(Fire))
    by = claimer()
    prepared = transact(lambda session: prepare(session, [first], by, now_ms=T0 - AHEAD))
    one, other = sorted(claim_prepared(prepared, by).claims, key=lambda run: run.fire_id)
    ids = {"fire_id": second.id, "log_id": other.log_id, "job_id": second.job_id}
    request = one.request._replace(job_id=second.job_id, log_id=other.log_id)
    assert one._replace(**ids, request=request, prepared_body=None, has_new_id=True) == other
    assert one.content_for(one.address or "") == dump_json(one.request.to_wire())


@pytest.mark.parametrize(("length", "has_body"), [(0, True), (4_090, True), (4_091, False)])
def test_a_short_request_is_prepared(length: int, has_body: bool, database: str) -> None:
    old_job(glue_type="GLUE_SHELL", glue_source="x" * length, executor_param="day=31")
    (prepared_fire,) = prepare_fires().values()
    run = prepared_fire.claim
    assert (run.prepared_body is not None) is has_body
    assert json.loads(run.content_for(run.address or ""))["glueSource"] == "x" * length


@pytest.mark.parametrize(
    ("job", "fire"),
    [
        ({}, {"trigger_type": "MANUAL"}),
        ({}, {"trigger_type": "RETRY"}),
        ({}, {"epoch": 1, "log_id": 99}),
        ({}, {"state": "SENDING"}),
        ({"executor_route_strategy": "FAILOVER"}, {}),
        ({"executor_route_strategy": "BUSYOVER"}, {}),
        ({"executor_route_strategy": "SHARDING_BROADCAST"}, {}),
        ({"addresses": ""}, {}),
        ({"update_time": T0 - 1_000}, {}),
    ],
)
def test_others_are_left_to_the_claim(database: str, job: dict[str, Any], fire: dict[str, Any]) -> None:
    old_job(**job)
    if fire:
        change(Fire, **fire)
    before = vars(only_row(Fire))
    assert prepare_fires() == {}
    after = vars(only_row(Fire))
    assert all(after[name] == value for name, value in before.items() if not name.startswith("_"))
    assert all_rows(JobLog) == []


CHANGES: list[tuple[str, Callable[[], object], str]] = [
    ("its job was edited", lambda: change(Job, executor_param="new", update_time=T0), "new"),
    ("its group got another address", lambda: change(Group, address_list=SECOND), ""),
    (
        "its address was drained",
        lambda: make_drains(only_row(Job), FIRST),
        "",
    ),
    (
        "its job became a broadcast",
        lambda: change(Job, executor_route_strategy="SHARDING_BROADCAST", update_time=T0),
        "",
    ),
]


@pytest.mark.parametrize(("act", "param"), [case[1:] for case in CHANGES], ids=[case[0] for case in CHANGES])
def test_it_is_routed_anew_if(database: str, act: Callable[[], object], param: str) -> None:
    old_job(executor_param="", addresses=f"{FIRST},{SECOND}")
    prepared = prepare_fires()
    logged = only_row(JobLog)
    act()
    batch = claim_prepared(prepared)
    if batch.new_fires:
        batch = claim_fires(now_ms=T0 + 2)
    assert logged.id not in [run.log_id for run in batch.claims]
    assert [run.request.executor_params for run in batch.claims] == [param] * len(batch.claims)
    assert sorted(log.id for log in all_rows(JobLog)) == sorted(run.log_id for run in batch.claims)
    assert {fire.state for fire in all_rows(Fire)} == {"SENDING"}
    assert batch.claims


def test_another_node_claims_it_like_any(database: str) -> None:
    old_job()
    prepare_fires()
    (run,) = claim_fires(by=claimer("two"), now_ms=T0 + 600).claims
    assert [log.id for log in all_rows(JobLog)] == [run.log_id]
    assert (only_row(Fire).owner, only_row(Fire).attempt) == ("two", 1)


def test_one_of_two_nodes_gets_it(database: str) -> None:
    for _ in range(20):
        old_job()
    prepared = prepare_fires()
    batches = run_concurrently(
        lambda: claim_prepared(prepared, now_ms=T0 + 600),
        lambda: claim_fires(by=claimer("two"), now_ms=T0 + 600),
    )
    claimed = [run.fire_id for batch in batches for run in batch.claims]
    assert sorted(claimed) == sorted(fire.id for fire in all_rows(Fire))
    assert len(all_rows(JobLog)) == 20


def test_it_is_claimed_shortly_before_its_instant(database: str) -> None:
    old_job()
    prepared = prepare_fires()
    assert claim_prepared(prepared, now_ms=T0 - CLAIM_AHEAD_MS - 1).claims == []
    assert (only_row(Fire).state, only_row(Fire).log_id) == ("PENDING", only_row(JobLog).id)
    (run,) = claim_prepared(prepared, now_ms=T0 - CLAIM_AHEAD_MS).claims
    assert (run.due_ms, only_row(Fire).sent_ms, only_row(JobLog).trigger_time) == (T0, T0, T0)
    assert any("(100 ms before due), node one" in line for line in run.trace)


@pytest.mark.parametrize(("now_ms", "sent"), [(T0 - 20, [T0, T0 + 50]), (T0 + 10, [T0 + 10, T0 + 50])])
def test_each_is_sent_at_its_own_instant(database: str, now_ms: Millis, sent: list[Millis]) -> None:
    """A result that comes before the instant of another run of the claim has a duration."""
    old_job()
    make_fire(only_row(Job), due_time=T0 + 50, owner="one")
    assert len(claim_prepared(prepare_fires(), now_ms=now_ms).claims) == 2
    assert [fire.sent_ms for fire in all_rows(Fire)] == sent


def test_one_that_has_changed_waits_for_its_instant(database: str) -> None:
    old_job()
    prepared = prepare_fires()
    change(Job, update_time=T0 - 1_000)
    assert claim_prepared(prepared, now_ms=T0 - 1) == ClaimBatch()
    assert only_row(Fire).state == "PENDING"
    assert len(claim_fires(now_ms=T0).claims) == 1


def test_it_waits_for_its_address_as_it_was_prepared(database: str) -> None:
    for _ in range(3):
        old_job()
    prepared = prepare_fires()
    batch = claim_prepared(prepared, claimer(capacity=lambda _: 2))
    (waiting,) = batch.parked_fires[FIRST]
    assert len(batch.claims) == 2
    (run,) = claim_prepared(prepared).claims
    assert (run.fire_id, run.log_id) == (waiting.id, prepared[waiting.id].claim.log_id)
    assert len(all_rows(JobLog)) == 3


def test_a_withdrawal_leaves_no_log_row(database: str) -> None:
    job = old_job()
    prepared = prepare_fires()
    assert transact(lambda session: scheduled_fires.withdraw(session, [job.id])) == {job.id: [T0]}
    assert all_rows(Fire) == all_rows(JobLog) == []
    assert claim_prepared(prepared).claims == []


def test_it_is_handed_back_at_a_stop(database: str) -> None:
    make_fire(make_due_job(T0 + 10_000, update_time=T0 - 60_000), owner="one")
    prepare_fires()
    assert hand_back(node="one", zone="UTC", now_ms=T0 - 100) == 1
    assert all_rows(Fire) == all_rows(JobLog) == []
    assert only_row(Job).trigger_next_time == T0


def test_clearing_the_log_leaves_it(database: str) -> None:
    old_job()
    prepared = prepare_fires()
    assert transact(lambda session: log_clearing.clear_batch(session, Clearing(0, 0))) == (0, True)
    assert len(claim_prepared(prepared).claims) == 1


def test_clearing_goes_on_behind_those_that_wait_for_their_address(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_clearing, "DELETE_BATCH", 2)
    job = old_job()
    prepare_fires()
    for _ in range(3):
        make_log(job)
    counts = [transact(lambda session: log_clearing.clear_batch(session, Clearing(0, 0))) for _ in range(2)]
    assert counts == [(2, False), (1, True)]
    assert [log.id for log in all_rows(JobLog)] == [only_row(Fire).log_id]


def test_a_run_that_was_ended_before_its_instant_is_not_sent(database: str) -> None:
    old_job()
    prepared = prepare_fires()
    change(JobLog, handle_code=500)
    assert claim_prepared(prepared).claims == []
    assert all_rows(Fire) == []
    assert only_row(JobLog).handle_code == 500


def test_it_runs_though_its_log_row_was_cleared(database: str) -> None:
    """By a Java admin, which does not know fires."""
    old_job()
    prepared = prepare_fires()
    remove(only_row(JobLog))
    (run,) = claim_prepared(prepared).claims
    assert (only_row(Fire).state, only_row(JobLog).id) == ("SENDING", run.log_id)


def test_without_its_job_it_leaves_no_log_row(database: str) -> None:
    """A Java admin that deletes the job may not see the log row yet."""
    old_job()
    prepared = prepare_fires()
    remove(only_row(Job))
    assert claim_prepared(prepared).claims == []
    assert all_rows(Fire) == all_rows(JobLog) == []


@pytest.mark.databases("mariadb", "postgresql")
def test_it_leaves_no_log_row_if_it_is_prepared_while_its_job_is_deleted(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, delete_of_jobs = old_job(), fires.delete_of_jobs

    def delete_prepared(session: Session, job_ids: Sequence[int]) -> int:
        assert prepare_fires()
        return delete_of_jobs(session, job_ids)

    monkeypatch.setattr(fires, "delete_of_jobs", delete_prepared)
    transact(lambda session: removal.delete_jobs(session, [job.id]))
    assert all_rows(Fire) == all_rows(JobLog) == []


def test_an_unresolved_end_removes_it(database: str) -> None:
    old_job()
    prepared = prepare_fires()
    assert unresolve(only_row(JobLog).id)
    assert claim_prepared(prepared).claims == []
    assert all_rows(Fire) == []


@pytest.mark.databases("mariadb", "postgresql")
def test_a_claim_does_not_lock_the_log_row(database: str) -> None:
    old_job()
    prepared = prepare_fires()
    logged = only_row(JobLog)
    with session_scope() as other:
        assert logs.lock_runs(other, [logged.id])
        (run,) = claim_prepared(prepared).claims
    assert (run.log_id, only_row(Fire).state) == (logged.id, "SENDING")


def test_a_job_edited_at_an_unknown_time_is_not_prepared(database: str) -> None:
    old_job()
    change(Job, update_time=None)
    assert prepare_fires() == {}


def test_the_fire_of_a_job_that_a_java_admin_has_deleted_is_not_sent(database: str) -> None:
    job = old_job()
    prepared = prepare_fires()
    remove(job)
    assert claim_prepared(prepared).claims == []
    assert all_rows(Fire) == []
