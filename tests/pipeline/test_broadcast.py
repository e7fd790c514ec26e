"""SHARDING_BROADCAST in the claim: one fire and one log row per shard, from one snapshot of the addresses."""

import pytest

from app.models.fire import Fire
from app.models.log import JobLog
from tests.pipeline.steps import claim_fires, claim_one, claimer, run_concurrently
from tests.support.factories import (
    FIRST,
    SECOND,
    T0,
    THIRD,
    all_rows,
    make_fire,
    make_group,
    make_job,
    only_row,
    save,
)

ALL = f"{FIRST},{SECOND},{THIRD}"


@pytest.mark.parametrize("trigger_type", ["CRON", "MISFIRE", "MANUAL", "PARENT", "RETRY", "API"])
def test_a_broadcast_becomes_one_fire_per_shard(database: str, trigger_type: str) -> None:
    job = make_job(addresses=ALL, executor_route_strategy="SHARDING_BROADCAST", executor_fail_retry_count=4)
    make_fire(
        job, fire_key="key", trigger_type=trigger_type, executor_param="p", fail_retry_count=2, owner="two"
    )
    batch = claim_fires()
    assert (batch.claims, batch.parked_fires, all_rows(JobLog)) == ([], {}, [])
    shards = all_rows(Fire)
    assert [(shard.fire_key, shard.sharding_param, shard.address) for shard in shards] == [
        ("key:0", "0/3", FIRST),
        ("key:1", "1/3", SECOND),
        ("key:2", "2/3", THIRD),
    ]
    kept = {
        (shard.trigger_type, shard.executor_param, shard.fail_retry_count, shard.state, shard.due_time)
        for shard in shards
    }
    assert kept == {(trigger_type, "p", 2, "PENDING", T0)}
    assert [fire.id for fire in batch.new_fires] == [shard.id for shard in shards]
    claims = claim_fires().claims
    assert [
        (claim.address, claim.request.broadcast_index, claim.request.broadcast_total) for claim in claims
    ] == [
        (FIRST, 0, 3),
        (SECOND, 1, 3),
        (THIRD, 2, 3),
    ]
    logs = all_rows(JobLog)
    assert [log.executor_sharding_param for log in logs] == ["0/3", "1/3", "2/3"]
    assert {log.fire_time for log in logs} == {T0 if trigger_type in ("CRON", "MISFIRE") else None}
    assert {log.executor_fail_retry_count for log in logs} == {2}


def test_shards_keep_the_snapshot_when_the_group_changes(database: str) -> None:
    group = make_group(address_list=ALL)
    make_fire(make_job(job_group=group.id, executor_route_strategy="SHARDING_BROADCAST"))
    claim_fires()
    group.address_list = THIRD
    save(group)
    assert [claimed.address for claimed in claim_fires().claims] == [FIRST, SECOND, THIRD]


def test_a_broadcast_to_manual_addresses_uses_them(database: str) -> None:
    make_fire(
        make_job(addresses=ALL, executor_route_strategy="SHARDING_BROADCAST"),
        address_list=f"{SECOND},{THIRD}",
    )
    assert len(claim_fires().new_fires) == 2
    assert [claimed.address for claimed in claim_fires().claims] == [SECOND, THIRD]


@pytest.mark.parametrize(("shard", "address"), [("1/3", SECOND), ("2/3", THIRD), ("7/9", FIRST)])
def test_the_retry_of_a_shard_targets_the_same_shard(database: str, shard: str, address: str) -> None:
    make_fire(
        make_job(addresses=ALL, executor_route_strategy="SHARDING_BROADCAST"),
        trigger_type="RETRY",
        sharding_param=shard,
    )
    claimed = claim_one()
    assert claimed.address == address
    assert f"{claimed.request.broadcast_index}/{claimed.request.broadcast_total}" == shard
    assert only_row(JobLog).executor_sharding_param == shard


def test_concurrent_claimers_expand_a_broadcast_once(database: str) -> None:
    make_fire(make_job(addresses=ALL, executor_route_strategy="SHARDING_BROADCAST"))
    fires = all_rows(Fire)
    batches = run_concurrently(
        lambda: claim_fires(fires, claimer("one")), lambda: claim_fires(fires, claimer("two"))
    )
    assert sum(len(batch.new_fires) for batch in batches) == 3
    assert len(all_rows(Fire)) == 3
