"""Addresses of a group: runs restricted to addresses go to no others, and its own token neither."""

from typing import Any

import pytest

from app.database.engine import read_scope
from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.models.registry import Registration
from app.models.variable import Variable
from app.pipeline.group_addresses import find_foreign
from app.store.executors import groups, registry
from tests.pipeline.steps import TOKEN, claim_fires, claim_one
from tests.support.factories import (
    FIRST,
    SECOND,
    T0,
    THIRD,
    make_fire,
    make_group,
    make_job,
    make_log,
    only_row,
    save,
)
from tests.support.plan import every_database
from tests.support.statements import statements

pytestmark = every_database

OWN = "the-groups-own-token"


def entered(job: Job, *addresses: str, **more: Any) -> Fire:
    """Commit a run restricted to addresses."""
    return make_fire(job, trigger_type="MANUAL", address_list=",".join(addresses), **more)


def move(job: Job, group: Group) -> None:
    job.job_group = group.id
    save(job)


def list_only(job: Job, addresses: str) -> None:
    with read_scope() as session:
        group = session.get_one(Group, job.job_group)
    group.address_list = addresses
    save(group)


@pytest.mark.parametrize("token", [OWN, None], ids=["own token", "global token"])
@pytest.mark.parametrize("route", ["FIRST", "FAILOVER", "SHARDING_BROADCAST"])
def test_a_run_is_not_sent_to_an_address_of_the_group_its_job_has_left(
    database: str, route: str, token: str | None
) -> None:
    job = make_job(executor_route_strategy=route)
    entered(job, FIRST)
    move(job, make_group(app_name="group-b", address_list=SECOND, access_token=token))
    assert claim_fires().claims == []
    log = only_row(JobLog)
    assert (log.trigger_code, log.executor_address, log.alarm_status) == (500, None, -1)
    assert (log.trigger_msg or "").endswith(
        "Result: not sent, none of the addresses entered for this run is one of group-b now"
    )


def test_a_run_goes_to_the_entered_addresses_that_are_still_listed(database: str) -> None:
    job = make_job(addresses=f"{FIRST},{SECOND},{THIRD}")
    entered(job, FIRST, SECOND.rstrip("/"))
    list_only(job, f"{SECOND},{THIRD}")
    assert list(claim_one().peers) == [SECOND.rstrip("/")]


def test_the_shard_of_a_removed_address_goes_to_another_that_was_entered(database: str) -> None:
    job = make_job(addresses=f"{FIRST},{SECOND},{THIRD}", executor_route_strategy="SHARDING_BROADCAST")
    entered(job, SECOND, THIRD)
    assert len(claim_fires().new_fires) == 2
    list_only(job, f"{FIRST},{SECOND}")
    assert [claimed.address for claimed in claim_fires().claims] == [SECOND, SECOND]


@pytest.mark.parametrize(
    ("address_type", "token", "app_name", "age_ms", "is_foreign"),
    [
        (0, OWN, "demo-executor", 0, False),
        (1, None, "demo-executor", 0, False),
        (1, OWN, "demo-executor", 0, True),
        (0, OWN, "demo-executor", registry.DEAD_AFTER_MS + 1_000, True),
        (0, OWN, "other-executor", 0, True),
    ],
    ids=["automatic", "manual", "manual with a token", "silent", "other group"],
)
def test_a_registered_address_belongs_to_its_group(
    database: str, address_type: int, token: str | None, app_name: str, age_ms: int, is_foreign: bool
) -> None:
    """Not to a manual group with its own token: after a leak others may have registered."""
    group = make_group(address_type=address_type, access_token=token)
    row = {"registry_key": app_name, "registry_value": SECOND, "update_time": T0 - age_ms}
    save(Registration(registry_group="EXECUTOR", **row))
    with read_scope() as session:
        of_groups = groups.find_groups(session, [group.id])
        found = find_foreign(session, {group.id: [FIRST, SECOND]}, of_groups, now_ms=T0)
    assert found == ({group.id: frozenset({SECOND})} if is_foreign else {})


@pytest.mark.parametrize(("token", "sent"), [(OWN, ""), (None, TOKEN)])
def test_a_run_that_stays_with_a_removed_address_is_sent_without_the_groups_own_token(
    database: str, token: str | None, sent: str
) -> None:
    job = make_job(job_group=make_group(address_list=SECOND, access_token=token).id)
    log = make_log(job, executor_address=FIRST, trigger_code=0)
    make_fire(job, log_id=log.id, address=FIRST, attempt=1, epoch=1, boot_id="boot-1")
    claimed = claim_one()
    assert (claimed.address, claimed.peers[FIRST].token) == (FIRST, sent)


@pytest.mark.parametrize(("token", "sent"), [(OWN, "${secret.TOKEN}"), (None, "s3cr3t-value")])
def test_a_removed_address_gets_no_secret_either(database: str, token: str | None, sent: str) -> None:
    group = make_group(address_list=SECOND, access_token=token)
    save(Variable(name="TOKEN", group_id=group.id, secret="s3cr3t-value"))
    job = make_job(job_group=group.id, executor_param="${secret.TOKEN}", fill_parameter=1)
    log = make_log(job, executor_address=FIRST, trigger_code=0, param_form=1, filled_param="${secret.TOKEN}")
    make_fire(job, log_id=log.id, address=FIRST, attempt=1, epoch=1, boot_id="boot-1")
    assert claim_one().request_for(FIRST).executor_params == sent


def test_a_run_that_stays_with_an_address_of_a_deleted_group_is_sent_without_a_token(database: str) -> None:
    job = make_job(job_group=404)
    log = make_log(job, executor_address=FIRST, trigger_code=0)
    make_fire(job, log_id=log.id, address=FIRST, attempt=1, epoch=1)
    claimed = claim_one()
    assert (claimed.address, claimed.peers[FIRST].token) == (FIRST, "")


def test_an_unsent_shard_leaves_an_address_that_must_not_get_the_token(database: str) -> None:
    group = make_group(address_list=f"{FIRST},{SECOND}", access_token=OWN)
    job = make_job(job_group=group.id, executor_route_strategy="SHARDING_BROADCAST")
    make_fire(job)
    claim_fires()
    list_only(job, FIRST)
    assert [(claimed.address, claimed.request.broadcast_index) for claimed in claim_fires().claims] == [
        (FIRST, 0),
        (FIRST, 1),
    ]


def test_only_a_claim_of_unlisted_addresses_reads_the_registry(database: str) -> None:
    job = make_job(addresses=f"{FIRST},{SECOND}")
    log = make_log(job, trigger_code=0)
    make_fire(job)
    make_fire(job, log_id=log.id, address=FIRST, attempt=1, epoch=1)
    entered(job, SECOND)
    with statements() as executed:
        assert len(claim_fires().claims) == 3
    live = [sql for sql in executed if "FROM xxl_job_registry" in sql and "registry_key IN" in sql]
    assert live == []
    entered(job, SECOND, THIRD)
    with statements() as executed:
        assert len(claim_fires().claims) == 1
    assert len([sql for sql in executed if "FROM xxl_job_registry" in sql and "registry_key IN" in sql]) == 1
