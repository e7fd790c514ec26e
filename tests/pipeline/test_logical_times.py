"""Logical times: of each kind of run, on their way through the pipeline, and in the requests to executors."""

import json
from collections.abc import Callable

import pytest

from app.clock import DAY_MS, Millis
from app.database.engine import transact
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.models.registry import Registration
from app.pipeline.claim import claim
from app.pipeline.claimed_run import ClaimedRun
from app.pipeline.late import LATE_MS, settle_late
from app.pipeline.prepare import prepare
from app.pipeline.scan import scan
from app.store.fires import clock_return
from app.store.fires import queue as fires
from tests.pipeline.steps import as_due, call_back, claim_fires, claimer
from tests.support.factories import (
    FIRST,
    SECOND,
    T0,
    all_rows,
    make_due_job,
    make_fire,
    make_job,
    make_run,
    only_row,
    save,
)
from tests.support.plan import every_database
from tests.support.statements import statements

pytestmark = every_database

ZONE = "Asia/Shanghai"
#: a logical time far from all others
GIVEN: Millis = T0 - 400 * DAY_MS
TWELVE = [
    "jobId",
    "executorHandler",
    "executorParams",
    "executorBlockStrategy",
    "executorTimeout",
    "logId",
    "logDateTime",
    "glueType",
    "glueSource",
    "glueUpdatetime",
    "broadcastIndex",
    "broadcastTotal",
]


def trigger(job: Job, due_ms: Millis = T0, **more: object) -> None:
    transact(
        lambda session: fires.insert_manual(
            session,
            job.id,
            executor_param=None,
            address_list=None,
            due_ms=due_ms,
            **more,  # type: ignore[arg-type]
        )
    )


def scan_at(now_ms: Millis) -> None:
    scan(node="one", zone=ZONE, now_ms=now_ms)


def by_hand(job: Job) -> None:
    trigger(job, T0 + 1_234)


def given(job: Job) -> None:
    trigger(job, T0 + 1_234, logical_ms=GIVEN)


def planned(job: Job) -> None:
    trigger(job, T0 + DAY_MS, is_planned=True)


def planned_and_given(job: Job) -> None:
    trigger(job, T0 + DAY_MS, is_planned=True, logical_ms=GIVEN)


def by_an_older_version(job: Job) -> None:
    make_fire(job, fire_key="manual:1", trigger_type="MANUAL", due_time=T0 + 1_234)


@pytest.mark.parametrize(
    ("start", "logical_ms"),
    [
        (by_hand, T0 + 1_000),
        (given, GIVEN),
        (planned, T0 + DAY_MS),
        (planned_and_given, GIVEN),
        (by_an_older_version, T0 + 1_234),
    ],
)
def test_of_a_triggered_run(database: str, start: Callable[[Job], None], logical_ms: Millis) -> None:
    start(make_job())
    claim_fires(now_ms=T0 + 2 * DAY_MS)
    log = only_row(JobLog)
    assert (log.logical_ms, log.fire_time) == (logical_ms, None)


@pytest.mark.parametrize(
    ("schedule_type", "conf", "misfire", "scanned_ms", "trigger_type", "logical_ms"),
    [
        ("CRON", "0/10 * * * * ?", "DO_NOTHING", T0, "CRON", T0),
        ("FIX_RATE", "10", "DO_NOTHING", T0, "CRON", T0),
        ("FIX_DELAY", "10", "DO_NOTHING", T0, "CRON", T0),
        ("FIX_RATE", "10", "FIRE_ONCE_NOW", T0 + 34_000, "MISFIRE", T0 + 30_000),
    ],
)
def test_of_a_scheduled_run(
    database: str,
    schedule_type: str,
    conf: str,
    misfire: str,
    scanned_ms: Millis,
    trigger_type: str,
    logical_ms: Millis,
) -> None:
    make_due_job(T0, schedule_type, conf, misfire_strategy=misfire)
    scan_at(scanned_ms)
    claim_fires(now_ms=scanned_ms)
    log = all_rows(JobLog)[0]
    assert (log.trigger_type, log.logical_ms, log.fire_time) == (trigger_type, logical_ms, logical_ms)


def test_of_a_late_run(database: str) -> None:
    job = make_job(misfire_strategy="FIRE_ONCE_NOW", last_fire_ms=T0)
    make_fire(job, fire_key=f"cron:{job.id}:{T0}", due_time=T0, owner="gone")
    settle_late(as_due(all_rows(Fire)), node="one", zone=ZONE, now_ms=T0 + LATE_MS)
    claim_fires(now_ms=T0 + LATE_MS)
    log = only_row(JobLog)
    assert (log.trigger_type, log.logical_ms) == ("MISFIRE", T0)


def test_of_a_prepared_run(database: str) -> None:
    job = make_job(update_time=T0 - DAY_MS)
    fire = make_fire(job, due_time=T0 + 300, logical_ms=GIVEN)
    prepared = transact(lambda session: prepare(session, as_due([fire]), claimer(), now_ms=T0))
    assert len(prepared) == 1
    assert only_row(JobLog).logical_ms == GIVEN


def test_of_a_retry_and_of_its_retry(database: str) -> None:
    trigger(make_job(executor_fail_retry_count=2), logical_ms=GIVEN)
    for days in range(1, 4):
        (claimed,) = claim_fires(now_ms=T0 + days * DAY_MS).claims
        call_back(claimed.log_id, 500, now_ms=T0 + days * DAY_MS)
    logs = all_rows(JobLog)
    assert [log.trigger_type for log in logs] == ["MANUAL", "RETRY", "RETRY"]
    assert {log.logical_ms for log in logs} == {GIVEN}


def test_of_children_and_their_children(database: str) -> None:
    grandchild = make_job()
    child = make_job(child_jobid=str(grandchild.id))
    trigger(make_job(child_jobid=str(child.id)), logical_ms=GIVEN)
    for _ in range(3):
        (claimed,) = claim_fires(now_ms=T0 + DAY_MS).claims
        call_back(claimed.log_id, 200, now_ms=T0 + DAY_MS)
    logs = all_rows(JobLog)
    assert [log.trigger_type for log in logs] == ["MANUAL", "PARENT", "PARENT"]
    assert {log.logical_ms for log in logs} == {GIVEN}


@pytest.mark.parametrize(
    ("columns", "logical_ms"), [({"fire_time": T0 - 5_000}, T0 - 5_000), ({"fire_time": None}, T0)]
)
def test_of_the_child_of_an_adopted_run(
    database: str, columns: dict[str, Millis | None], logical_ms: Millis
) -> None:
    child = make_job()
    run = make_run(make_job(child_jobid=str(child.id)), log={"logical_ms": None, **columns})
    call_back(run.id, 200, now_ms=T0 + DAY_MS)
    assert only_row(Fire).logical_ms == logical_ms


def test_shards_have_that_of_their_broadcast(database: str) -> None:
    job = make_job(addresses=f"{FIRST},{SECOND}", executor_route_strategy="SHARDING_BROADCAST")
    trigger(job, logical_ms=GIVEN)
    claim_fires()
    assert len(claim_fires().claims) == 2
    assert [log.logical_ms for log in all_rows(JobLog)] == [GIVEN, GIVEN]


def test_a_run_that_is_sent_again_keeps_it(database: str) -> None:
    trigger(make_job(), logical_ms=GIVEN)
    claim_fires()
    fire = only_row(Fire)
    fire.state, fire.lease_until = "PENDING", 0
    save(fire)
    registered(FIRST, "durable-dedup,logical-time")
    (claimed,) = claim_fires(now_ms=T0 + DAY_MS).claims
    assert claimed.request_for(FIRST).logical_time == only_row(JobLog).logical_ms == GIVEN


def test_a_clock_that_is_set_back_does_not_change_it(database: str) -> None:
    trigger(make_job(), T0 + DAY_MS)
    transact(
        lambda session: clock_return.bring_back_open(
            session, now_ms=T0, soon_ms=T0 + 1_000, far_ms=T0 + 60_000
        )
    )
    fire = only_row(Fire)
    assert (fire.due_time, fire.logical_ms) == (T0, T0 + DAY_MS)


def registered(address: str, capabilities: str, app_name: str = "demo-executor") -> None:
    save(
        Registration(
            registry_group="EXECUTOR",
            registry_key=app_name,
            registry_value=address,
            update_time=T0,
            capabilities=capabilities,
            boot_id="5f0c",
        )
    )


def claim_given(**job: object) -> ClaimedRun:
    trigger(make_job(**job), logical_ms=GIVEN)
    (claimed,) = claim_fires().claims
    return claimed


@pytest.mark.parametrize(("zone", "sent"), [("", ZONE), ("Europe/Paris", "Europe/Paris")])
def test_an_executor_that_announces_it_is_told(database: str, zone: str, sent: str) -> None:
    registered(FIRST.rstrip("/"), "durable-dedup,run-state,logical-time")
    wire = claim_given(time_zone=zone).request_for(FIRST).to_wire()
    assert [*wire] == [*TWELVE, "logicalTime", "timeZone"]
    assert (wire["logicalTime"], wire["timeZone"]) == (GIVEN, sent)


@pytest.mark.parametrize(
    ("address", "capabilities", "app_name"),
    [
        (FIRST, "", "demo-executor"),
        (FIRST, "durable-dedup,run-state,last-lines", "demo-executor"),
        (SECOND, "logical-time", "demo-executor"),
        (FIRST, "logical-time", "other-executor"),
    ],
)
def test_others_are_sent_exactly_twelve_fields(
    database: str, address: str, capabilities: str, app_name: str
) -> None:
    registered(address, capabilities, app_name)
    assert [*claim_given().request_for(FIRST).to_wire()] == TWELVE


def test_of_two_executors_each_gets_what_it_takes(database: str) -> None:
    registered(SECOND, "logical-time")
    claimed = claim_given(executor_route_strategy="FAILOVER", addresses=f"{FIRST},{SECOND}")
    assert [*claimed.request_for(FIRST).to_wire()] == TWELVE
    assert claimed.request_for(SECOND).logical_time == GIVEN


@pytest.mark.parametrize(("capabilities", "more"), [("logical-time", ["logicalTime", "timeZone"]), ("", [])])
def test_the_body_of_a_prepared_run_is_the_same(database: str, capabilities: str, more: list[str]) -> None:
    registered(FIRST, capabilities)
    fire = make_fire(make_job(update_time=T0 - DAY_MS), due_time=T0 + 300)
    prepared = transact(lambda session: prepare(session, as_due([fire]), claimer(), now_ms=T0))
    body = json.loads(prepared[fire.id].claim.content_for(FIRST))
    assert [*body] == [*TWELVE, *more]
    assert body.get("logicalTime", T0 + 300) == T0 + 300


def test_an_executor_that_announces_it_later_is_told_although_the_run_was_prepared(database: str) -> None:
    fire = make_fire(make_job(update_time=T0 - DAY_MS), due_time=T0 + 300)
    prepared = transact(lambda session: prepare(session, as_due([fire]), claimer(), now_ms=T0))
    registered(FIRST, "logical-time")
    batch = transact(
        lambda session: claim(session, as_due([fire]), claimer(), now_ms=T0 + 300, prepared_by_id=prepared)
    )
    (claimed,) = batch.claims
    assert json.loads(claimed.content_for(FIRST))["logicalTime"] == T0 + 300


def test_no_further_statement_is_needed(database: str) -> None:
    """The claim of runs for executors that take logical times costs as many statements as that of others."""
    counts = []  # The first claim reads the widths of columns, too.
    for number, address in enumerate((FIRST, FIRST, SECOND)):
        if address == SECOND:
            registered(SECOND, "logical-time")
        fire = make_fire(make_job(addresses=address), fire_key=f"manual:{number}", trigger_type="MANUAL")
        with statements() as executed:
            assert len(claim_fires([fire]).claims) == 1
        counts.append(len(executed))
    assert counts[1] == counts[2]
