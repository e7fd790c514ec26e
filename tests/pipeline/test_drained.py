"""Drained addresses get no new runs by any route; runs they have stay there."""

from collections import Counter
from typing import Any

import pytest
from sqlalchemy import update

from app.database.engine import read_scope, session_scope, transact
from app.domain.enums import RouteStrategy
from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.models.registry import Registration
from app.pipeline.record import Lease, fix_address, give_back
from app.pipeline.registration import deregister, refresh_addresses, register
from app.store.executors import drains
from executor_client.wire.capabilities import Capabilities
from executor_client.wire.protocol import RegistryRequest
from tests.pipeline.steps import call_back, claim_fires, claim_one, claimer, give_back_all
from tests.support.factories import (
    FIRST,
    SECOND,
    T0,
    THIRD,
    all_rows,
    make_drains,
    make_fire,
    make_group,
    make_job,
    make_log,
    only_row,
    save,
)
from tests.support.plan import every_database

pytestmark = every_database

ALL = f"{FIRST},{SECOND},{THIRD}"
PICKING = [
    route for route in RouteStrategy if route.value not in ("FAILOVER", "BUSYOVER", "SHARDING_BROADCAST")
]


def job_on_all(route: str, **more: Any) -> Job:
    return make_job(addresses=ALL, executor_route_strategy=route, **more)


def trace_of(log: JobLog) -> str:
    return log.trigger_msg or ""


def claim_all(job: Job, count: int) -> Counter[str | None]:
    """Claim this many fires of a job; return the number of runs per address."""
    for _ in range(count):
        make_fire(job)
    return Counter(claimed.address for claimed in claim_fires().claims)


@pytest.mark.parametrize("route", PICKING)
def test_no_route_selects_a_drained_address(database: str, route: RouteStrategy) -> None:
    job = job_on_all(route)
    make_drains(job, FIRST, THIRD)
    assert claim_all(job, 40) == {SECOND: 40}
    make_drains(job, SECOND)
    assert claim_all(job, 3) == {}


@pytest.mark.parametrize("route", ["ROUND", "LEAST_FREQUENTLY_USED", "LEAST_RECENTLY_USED"])
def test_the_others_share_its_runs_evenly_even_after_many_runs_on_it(database: str, route: str) -> None:
    job = job_on_all(route)
    for _ in range(20):
        make_log(job, executor_address=FIRST, handle_code=200)
    make_drains(job, FIRST)
    counts = claim_all(job, 20)
    assert set(counts) == {SECOND, THIRD}
    assert max(counts.values()) - min(counts.values()) <= 1


@pytest.mark.parametrize("route", ["FAILOVER", "BUSYOVER"])
def test_a_probing_route_does_not_probe_it(database: str, route: str) -> None:
    job = job_on_all(route)
    make_drains(job, SECOND)
    make_fire(job)
    assert list(claim_one().peers) == [FIRST, THIRD]


def test_a_broadcast_counts_only_undrained_addresses(database: str) -> None:
    job = job_on_all("SHARDING_BROADCAST")
    make_drains(job, FIRST)
    make_fire(job)
    assert len(claim_fires().new_fires) == 2
    claimed = claim_fires().claims
    assert [
        (claim.address, claim.request.broadcast_index, claim.request.broadcast_total) for claim in claimed
    ] == [
        (SECOND, 0, 2),
        (THIRD, 1, 2),
    ]
    assert all(f"Drained: 1 address left out [{FIRST}]" in claim.trace for claim in claimed)


def test_an_unsent_shard_moves_to_another_address(database: str) -> None:
    job = job_on_all("SHARDING_BROADCAST")
    make_fire(job)
    claim_fires()
    make_drains(job, SECOND)
    claimed = claim_fires().claims
    assert [claim.address for claim in claimed] == [FIRST, THIRD, THIRD]
    assert [(claim.request.broadcast_index, claim.request.broadcast_total) for claim in claimed] == [
        (0, 3),
        (1, 3),
        (2, 3),
    ]
    assert [log.executor_address for log in all_rows(JobLog)] == [FIRST, THIRD, THIRD]


def test_unsent_shards_are_shared_by_the_other_addresses(database: str) -> None:
    fifth = "http://10.0.0.5:9999/"
    job = make_job(
        addresses=f"{ALL},http://10.0.0.4:9999/,{fifth}", executor_route_strategy="SHARDING_BROADCAST"
    )
    make_fire(job)
    claim_fires()
    make_drains(job, THIRD, "http://10.0.0.4:9999/", fifth)
    assert Counter(claim.address for claim in claim_fires().claims) == {FIRST: 3, SECOND: 2}


def test_the_trace_shows_which_address_was_left_out(database: str) -> None:
    job = job_on_all("FIRST")
    make_drains(job, FIRST)
    make_fire(job)
    claimed = claim_one()
    assert f"Addresses: entered [{SECOND}, {THIRD}]" in claimed.trace
    assert f"Drained: 1 address left out [{FIRST}]" in claimed.trace


def test_the_trace_omits_draining_if_nothing_is_drained(database: str) -> None:
    make_drains(make_job(addresses=ALL), FIRST)  # of another group
    make_job(addresses=ALL)
    make_fire(all_rows(Job)[1])
    claimed = claim_one()
    assert claimed.address == FIRST
    assert not any(line.startswith("Drained") for line in claimed.trace)


@pytest.mark.parametrize("route", ["FIRST", "FAILOVER", "SHARDING_BROADCAST"])
def test_a_run_fails_with_a_reason_if_all_addresses_are_drained(database: str, route: str) -> None:
    job = job_on_all(route, executor_fail_retry_count=1)
    make_drains(job, FIRST, SECOND, THIRD)
    make_fire(job)
    batch = claim_fires()
    assert (batch.claims, batch.new_fires) == ([], [])
    log = only_row(JobLog)
    assert (log.trigger_code, log.executor_address) == (500, None)
    assert (
        "Result: not sent, no executor of demo-executor takes new runs: all 3 addresses are drained"
        in trace_of(log)
    )
    assert only_row(Fire).trigger_type == "RETRY", "retried like any failed run"


def test_another_spelling_of_the_address_is_drained_too(database: str) -> None:
    job = make_job(addresses=f"http://Host-1:9999/,{SECOND}")
    make_drains(job, "http://host-1:9999")
    make_fire(job)
    assert claim_one().address == SECOND


@pytest.mark.parametrize("route", ["FIRST", "SHARDING_BROADCAST", "FAILOVER"])
def test_manual_addresses_are_used_even_if_drained(database: str, route: str) -> None:
    job = job_on_all(route)
    make_drains(job, SECOND)
    make_fire(job, trigger_type="MANUAL", address_list=SECOND)
    (claimed,) = claim_fires().claims or claim_fires().claims
    assert list(claimed.peers) == [SECOND]
    assert f"Drained: 1 address used anyway, entered for this run [{SECOND}]" in claimed.trace


def test_the_retry_of_a_run_with_manual_addresses_uses_an_undrained_one(database: str) -> None:
    job = job_on_all("FIRST", executor_fail_retry_count=1)
    make_drains(job, FIRST)
    make_fire(job, trigger_type="MANUAL", address_list=FIRST)
    claimed = claim_one()
    assert claimed.address == FIRST
    call_back(claimed.log_id, 500)
    assert only_row(Fire).trigger_type == "RETRY"
    assert claim_one(now_ms=T0 + 500).address == SECOND


def test_the_retry_of_a_shard_goes_to_an_undrained_address(database: str) -> None:
    job = job_on_all("SHARDING_BROADCAST")
    make_drains(job, SECOND)
    make_fire(job, trigger_type="RETRY", sharding_param="1/3")
    assert claim_one().address == THIRD


def redelivered(job: Job, address: str, **more: Any) -> JobLog:
    """Return a run in doubt that is to be sent again to its address."""
    log = make_log(job, executor_address=address, trigger_code=0, trigger_msg="first")
    make_fire(job, log_id=log.id, address=address, attempt=1, epoch=1, **more)
    return log


def test_a_run_that_did_not_start_there_is_redelivered_elsewhere(database: str) -> None:
    job = job_on_all("FIRST")
    make_drains(job, FIRST)
    log = redelivered(job, FIRST)
    claimed = claim_one()
    assert (claimed.address, claimed.log_id, claimed.attempt) == (SECOND, log.id, 2)
    assert only_row(JobLog).executor_address == SECOND
    assert f"Drained: 1 address left out [{FIRST}]" in claimed.trace


def test_a_run_that_a_durable_executor_may_have_stays_with_it(database: str) -> None:
    """Any other executor could start it a second time."""
    job = job_on_all("FIRST")
    make_drains(job, FIRST)
    registration = {
        "registry_group": "EXECUTOR",
        "registry_key": "demo-executor",
        "registry_value": FIRST,
        "update_time": T0,
    }
    save(Registration(**registration, capabilities="durable-dedup", boot_id="b1"))
    redelivered(job, FIRST)
    claimed = claim_one()
    assert (claimed.address, claimed.is_remembered) == (FIRST, True)
    assert not any(line.startswith("Drained") for line in claimed.trace)


def test_it_stays_there_even_if_the_registration_vanished_after_the_probe(database: str) -> None:
    """The probe stored the boot id in the fire."""
    job = job_on_all("FIRST")
    make_drains(job, FIRST)
    redelivered(job, FIRST, boot_id="b1")
    claimed = claim_one()
    assert (claimed.address, claimed.is_remembered) == (FIRST, True)


@pytest.mark.parametrize("route", ["FIRST", "FAILOVER"])
def test_a_run_given_back_unsent_keeps_only_its_earlier_address(database: str, route: str) -> None:
    job = job_on_all(route)
    make_drains(job, FIRST)
    log = redelivered(job, FIRST)
    claimed = claim_one()
    if claimed.address is None:
        assert transact(lambda session: fix_address(session, claimed, SECOND, Lease("one", T0 + 9000)))
    assert only_row(JobLog).executor_address == SECOND
    give_back_all(claimed)
    fire = only_row(Fire)
    assert (fire.address, fire.attempt, only_row(JobLog).executor_address) == (FIRST, 1, FIRST)
    make_drains(job, SECOND)  # its next address: it received not a single byte
    again = claim_one()
    assert (again.log_id, list(again.peers), again.attempt) == (log.id, [THIRD], 2)
    assert (again.was_sent_to(FIRST), again.was_sent_to(SECOND), again.was_sent_to(THIRD)) == (
        True,
        False,
        False,
    )


def test_it_leaves_a_durable_executor_it_was_never_sent_to(database: str) -> None:
    job = job_on_all("FIRST")
    registration = {
        "registry_group": "EXECUTOR",
        "registry_key": "demo-executor",
        "registry_value": SECOND,
        "update_time": T0,
    }
    save(Registration(**registration, capabilities="durable-dedup", boot_id="b1"))
    make_drains(job, FIRST)
    redelivered(job, FIRST)
    give_back_all(claim_one())
    make_drains(job, SECOND)
    assert claim_one().address == THIRD


@pytest.mark.parametrize("again", [True, False], ids=["same address", "another"])
@pytest.mark.parametrize("sends", [1, 2])
def test_a_claim_knows_who_may_already_have_the_run(database: str, sends: int, again: bool) -> None:
    log = make_log(job := job_on_all("FIRST"), executor_address=FIRST, trigger_code=0)
    make_fire(job, log_id=log.id, address=FIRST if again else None, attempt=sends, epoch=sends)
    claimed = claim_one()
    assert claimed.was_sent_to(FIRST)
    assert claimed.was_sent_to(SECOND) is (sends > 1), "after more than one send the addresses are not known"


def test_a_first_claim_was_sent_to_no_address(database: str) -> None:
    make_fire(job_on_all("FIRST"))
    assert not claim_one().was_sent_to(FIRST)


def test_redelivery_keeps_the_log_if_the_route_became_a_broadcast(database: str) -> None:
    job = job_on_all("SHARDING_BROADCAST")
    make_drains(job, FIRST)
    log = redelivered(job, FIRST)
    batch = claim_fires()
    assert (batch.new_fires, [claim.log_id for claim in batch.claims]) == ([], [log.id])


def test_a_candidate_drained_during_probing_is_not_used(database: str) -> None:
    job = job_on_all("FAILOVER")
    make_fire(job)
    claimed = claim_one()
    make_drains(job, SECOND)

    def fix(address: str, late: bool) -> bool:
        return transact(
            lambda session: fix_address(session, claimed, address, Lease("one", T0 + 9000), late=late)
        )

    assert not fix(SECOND, late=True)
    transact(lambda session: give_back(session, [claimed], node="one"))
    again = claim_one()
    assert list(again.peers) == [FIRST, THIRD]
    claimed = again
    assert fix(FIRST, late=True)


def test_a_candidate_of_a_moved_job_is_looked_up_in_the_group_of_its_run(database: str) -> None:
    job, elsewhere = job_on_all("FAILOVER"), make_group(app_name="elsewhere", address_list=ALL)
    fire = make_fire(job)
    claim_one()
    make_drains(job, SECOND)
    with session_scope() as session:
        session.execute(update(Job).values(job_group=elsewhere.id))
        drains.insert_drain(session, elsewhere.id, FIRST, username="ann", now_ms=T0)
    with read_scope() as session:
        assert drains.takes_no_more(session, fire.id, SECOND)
        assert not drains.takes_no_more(session, fire.id, FIRST)


def test_a_manual_candidate_is_used_even_if_drained(database: str) -> None:
    job = job_on_all("FAILOVER")
    make_drains(job, SECOND)
    entered, routed = make_fire(job, trigger_type="MANUAL", address_list=SECOND), make_fire(job)
    claim_fires()
    with read_scope() as session:
        assert not drains.takes_no_more(session, entered.id, SECOND)
        assert drains.takes_no_more(session, routed.id, SECOND)
        assert not drains.takes_no_more(session, routed.id, FIRST)


def test_the_claim_queries_drains_once_per_batch(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    probed: list[set[int]] = []
    find = drains.find_drained
    monkeypatch.setattr(
        drains, "find_drained", lambda session, ids: probed.append(set(ids)) or find(session, ids)
    )
    jobs = [make_job() for _ in range(4)]
    for job in jobs:
        for _ in range(5):
            make_fire(job)
    assert len(claim_fires(by=claimer()).claims) == 20
    assert probed == [{job.job_group for job in jobs}]


def test_it_stays_drained_through_deregistration_expiry_and_registration(database: str) -> None:
    group = make_group(app_name="orders", address_type=0, address_list=None)
    job = make_job(job_group=group.id)
    request = RegistryRequest("EXECUTOR", "orders", FIRST)
    transact(lambda session: register(session, request, Capabilities(), now_ms=T0))
    make_drains(job, FIRST)
    for _ in range(2):
        make_fire(job)
        assert claim_fires().claims == []
        transact(lambda session: deregister(session, request, now_ms=T0))
        assert all_rows(Group)[0].addresses == []
        transact(lambda session: register(session, request, Capabilities(boot_id="new"), now_ms=T0))
        transact(lambda session: refresh_addresses(session, now_ms=T0))
        assert all_rows(Group)[0].addresses == [FIRST], "its heartbeats count and it stays in the list"
    with read_scope() as session:
        assert drains.find_drained(session, [group.id]) == {group.id: frozenset({FIRST.rstrip("/")})}
    transact(lambda session: drains.delete_drain(session, group.id, FIRST))
    make_fire(job)
    assert claim_one().address == FIRST
