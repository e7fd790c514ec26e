"""claim(): due fires become SENDING with a log row and an address; one claimer wins.

Source: docs/reference/pipeline.md, section 3.
"""

import pytest
from sqlalchemy import update

from app.database.engine import read_scope, session_scope
from app.domain.enums import RouteStrategy
from app.domain.runs.routing import PROBING, ROUTERS
from app.executors.calls import Peer
from app.models.base import use_zone
from app.models.fire import Fire
from app.models.group import Group
from app.models.job import AFTER_THE_CURRENT_RUN, Job
from app.models.last_seen import LastSeen
from app.models.log import JobLog
from app.models.registry import Registration
from app.models.skip import Skip
from app.pipeline.claim import ORPHAN_MS, claim, find_unseen
from app.pipeline.claimed_run import ClaimedRun
from app.store.runs import listing as log_lists
from tests.pipeline.steps import (
    LEASE_MS,
    TOKEN,
    as_due,
    claim_fires,
    claim_one,
    claimer,
    give_back_all,
    run_concurrently,
    sent,
)
from tests.support.factories import (
    BERLIN_SECOND_TWO,
    FIRST,
    SECOND,
    T0,
    THIRD,
    all_rows,
    make_due_job,
    make_fire,
    make_group,
    make_job,
    make_log,
    only_row,
    remove,
    save,
)
from tests.support.plan import every_database

pytestmark = every_database

ALL = f"{FIRST},{SECOND},{THIRD}"


def test_a_claimed_fire_has_a_log_row_an_address_and_a_lease(database: str) -> None:
    job = make_job(
        executor_handler="report", executor_param="day=1", executor_fail_retry_count=3, executor_timeout=7
    )
    make_fire(job, owner="two")
    claimed = claim_one(now_ms=T0 + 250)
    fire, log = only_row(Fire), only_row(JobLog)
    assert (fire.state, fire.log_id, fire.address, fire.owner) == ("SENDING", log.id, FIRST, "one")
    assert (fire.attempt, fire.epoch, fire.lease_until, fire.sent_ms) == (1, 1, T0 + 250 + LEASE_MS, T0 + 250)
    assert (log.job_group, log.job_id, log.executor_address, log.executor_handler) == (
        job.job_group,
        job.id,
        FIRST,
        "report",
    )
    assert (log.executor_param, log.executor_sharding_param, log.executor_fail_retry_count) == (
        "day=1",
        None,
        3,
    )
    assert (log.trigger_time, log.trigger_code, log.trigger_msg) == (T0, 0, None)
    assert (log.handle_code, log.handle_time, log.handle_msg, log.alarm_status) == (0, None, None, 0)
    assert (log.fire_time, log.trigger_type, log.source_log_id, log.failed) == (T0, "CRON", None, 0)
    assert (claimed.fire_id, claimed.log_id, claimed.job_id, claimed.address) == (
        fire.id,
        log.id,
        job.id,
        FIRST,
    )
    assert (claimed.epoch, claimed.attempt, claimed.due_ms) == (1, 1, T0)


@pytest.mark.parametrize(
    ("key", "source"),
    [
        *[
            ("child:41:7", 41),
            ("retry:41:3", 41),
            ("retry:41:3:0", 41),
            ("cron:7:1714532645000", None),
            ("manual:ab41", None),
            ("", None),
        ],
        *[
            (malformed, None)
            for malformed in (
                "child:",
                "child",
                "retry:x:1",
                "retry:-41:1",
                "retry: 41:1",
                "child:²:1",
                "child:" + "9" * 40,
            )
        ],
    ],
)
def test_children_and_retries_record_the_run_they_follow(database: str, key: str, source: int | None) -> None:
    make_fire(make_job(), fire_key=key, trigger_type="RETRY")
    claim_one(now_ms=T0)
    log = only_row(JobLog)
    assert (log.trigger_type, log.source_log_id) == ("RETRY", source)
    with read_scope() as session:
        assert [found.id for found in log_lists.find_successors(session, 41, group_ids=None, limit=9)] == (
            [log.id] if source else []
        )


def test_the_request_has_twelve_fields_and_no_null(database: str) -> None:
    job = make_job(
        executor_handler=None,
        executor_param=None,
        executor_block_strategy=None,
        glue_source=None,
        glue_updatetime=None,
    )
    make_fire(job)
    claimed = claim_one(now_ms=T0 + 999)
    assert claimed.request.to_wire() == {
        "jobId": job.id,
        "executorHandler": "",
        "executorParams": "",
        "executorBlockStrategy": "SERIAL_EXECUTION",
        "executorTimeout": 0,
        "logId": claimed.log_id,
        "logDateTime": T0,  # whole seconds, as stored in the row, so that /log finds the file
        "glueType": "BEAN",
        "glueSource": "",
        "glueUpdatetime": 0,
        "broadcastIndex": 0,
        "broadcastTotal": 1,
    }


def test_a_negative_timeout_or_retry_count_becomes_zero(database: str) -> None:
    make_fire(make_job(executor_timeout=-5, executor_fail_retry_count=-2))
    assert claim_one().request.executor_timeout == 0
    assert only_row(JobLog).executor_fail_retry_count == 0


@pytest.mark.parametrize(
    ("override", "param"),
    [(None, "the job's"), ("", ""), ("its own", "its own")],
    ids=["not given", "given as empty", "given"],
)
def test_a_fire_can_override_the_parameter(database: str, override: str | None, param: str) -> None:
    make_fire(make_job(executor_param="the job's"), trigger_type="MANUAL", executor_param=override)
    assert claim_one().request.executor_params == param
    log = only_row(JobLog)
    assert (log.executor_param, log.fire_time) == (param, None)


@pytest.mark.parametrize(
    ("override", "address"), [(None, FIRST), ("", FIRST), (" ", FIRST), (f" {SECOND} ,{THIRD}", SECOND)]
)
def test_a_fire_can_override_the_addresses(database: str, override: str | None, address: str) -> None:
    make_fire(make_job(addresses=ALL), trigger_type="MANUAL", address_list=override)
    assert claim_one().address == address


@pytest.mark.parametrize(
    ("address_type", "address"), [(0, FIRST), (1, "10.0.0.1:9999")], ids=["registered", "manual"]
)
def test_a_registered_address_without_a_scheme_is_skipped(
    database: str, address_type: int, address: str
) -> None:
    """This includes one written into the list by a Java admin; a manual one fails with the reason."""
    group = make_group(address_type=address_type, address_list=f"10.0.0.1:9999,{FIRST}")
    make_fire(make_job(job_group=group.id))
    assert claim_one().address == address


@pytest.mark.parametrize(
    ("group_token", "token"), [(None, TOKEN), ("", TOKEN), ("the-groups-own-token", "the-groups-own-token")]
)
def test_the_token_of_the_group_replaces_the_default_token(
    database: str, group_token: str | None, token: str
) -> None:
    make_fire(make_job(job_group=make_group(access_token=group_token).id))
    claimed = claim_one()
    assert tuple(claimed.peers[FIRST]) == (FIRST, "demo-executor", token, "")


@pytest.mark.parametrize(
    ("own", "sent"),
    [(None, (TOKEN, "global-before")), ("own", ("own", "own-before")), ("", (TOKEN, "global-before"))],
)
def test_the_token_before_is_sent_second(database: str, own: str | None, sent: tuple[str, str]) -> None:
    make_fire(make_job(job_group=make_group(access_token=own, former_token="own-before").id))
    claimed = claim_one(claimer(tokens=(TOKEN, "global-before")))
    assert tuple(claimed.peers[FIRST])[2:] == sent


@pytest.mark.parametrize("route", [RouteStrategy.FAILOVER, RouteStrategy.BUSYOVER])
def test_a_probing_route_is_claimed_without_an_address(database: str, route: RouteStrategy) -> None:
    make_fire(make_job(addresses=ALL, executor_route_strategy=route))
    claimed = claim_one()
    assert (claimed.address, list(claimed.peers), claimed.route) == (None, [FIRST, SECOND, THIRD], route)
    assert (only_row(Fire).state, only_row(Fire).address, only_row(JobLog).executor_address) == (
        "ROUTING",
        None,
        None,
    )


def test_lfu_and_lru_start_from_the_log(database: str) -> None:
    for route in ("LEAST_FREQUENTLY_USED", "LEAST_RECENTLY_USED"):
        job = make_job(addresses=ALL, executor_route_strategy=route)
        for number, address in enumerate([SECOND, FIRST, FIRST, THIRD]):
            make_log(job, executor_address=address, trigger_time=T0 - 60_000 + number * 1000)
        make_log(job, executor_address=None)
        make_fire(job)
    by_route = {claimed.route: claimed.address for claimed in claim_fires().claims}
    assert by_route == {
        RouteStrategy.LEAST_FREQUENTLY_USED: SECOND,
        RouteStrategy.LEAST_RECENTLY_USED: SECOND,
    }


@pytest.mark.parametrize("route", ["ROUND", "LEAST_FREQUENTLY_USED", "LEAST_RECENTLY_USED"])
def test_a_claim_that_is_rolled_back_takes_no_turn(database: str, route: str) -> None:
    """After a deadlock, for example, it is repeated."""
    job, by = make_job(addresses=ALL, executor_route_strategy=route), claimer()
    make_fire(job)
    claim_one(by)
    make_fire(job)
    due = as_due(all_rows(Fire))
    with session_scope() as session:
        (undone,) = claim(session, due, by, now_ms=T0).claims
        session.rollback()
    assert claim_one(by).address == undone.address


def test_round_continues_within_one_claim(database: str) -> None:
    job = make_job(addresses=ALL, executor_route_strategy="ROUND")
    for _ in range(6):
        make_fire(job)
    addresses = [claimed.address for claimed in claim_fires().claims]
    assert sorted(addresses[:3]) == [FIRST, SECOND, THIRD]  # type: ignore[type-var]
    assert addresses[3:] == addresses[:3]


@pytest.mark.parametrize(
    ("route", "addresses"),
    [
        ("FIRST", None),
        ("ROUND", ""),
        ("LEAST_RECENTLY_USED", " , "),
        ("FAILOVER", None),
        ("SHARDING_BROADCAST", ""),
    ],
)
def test_an_empty_group_gives_one_failed_row(database: str, route: str, addresses: str | None) -> None:
    make_fire(make_job(addresses=addresses, executor_route_strategy=route))
    batch = claim_fires()
    assert (batch.claims, batch.new_fires, batch.parked_fires) == ([], [], {})
    log = only_row(JobLog)
    assert (log.trigger_code, log.handle_code, log.executor_address, log.alarm_status) == (500, 0, None, -1)
    assert (log.trigger_msg or "").endswith("Result: not sent, no executor of demo-executor is registered")
    assert all_rows(Fire) == []


@pytest.mark.parametrize("registered", [True, False], ids=["overdue", "removed"])
def test_a_run_without_instances_shows_when_one_was_last_seen(database: str, registered: bool) -> None:
    job = make_job(addresses=None)
    row = {
        "registry_group": "EXECUTOR",
        "registry_key": "demo-executor",
        "registry_value": FIRST,
        "update_time": T0 - 3_600_000,
    }
    last_seen = LastSeen(app_name="demo-executor", address=FIRST, last_seen_ms=T0 - 3_600_000)
    save(Registration(**row) if registered else last_seen)
    make_fire(job)
    claim_fires()
    reason = "no executor of demo-executor is registered; the last one was seen 2024-05-01 10:04:05.000 +0800"
    assert (only_row(JobLog).trigger_msg or "").endswith(reason)


def test_a_missing_group_gives_one_failed_row(database: str) -> None:
    make_fire(make_job(job_group=4711))
    assert claim_fires().claims == []
    log = only_row(JobLog)
    assert (log.job_group, log.trigger_code, log.handle_code) == (4711, 500, 0)
    assert "group of this job no longer exists" in (log.trigger_msg or "")
    assert all_rows(Group) == all_rows(Fire) == []


def test_a_run_without_instances_is_retried_like_any_failure(database: str) -> None:
    job = make_job(addresses="", executor_fail_retry_count=2, retry_interval_s=30)
    make_fire(job)
    claim_fires()
    log, retry = only_row(JobLog), only_row(Fire)
    assert (retry.trigger_type, retry.fail_retry_count, retry.due_time) == ("RETRY", 1, T0 + 30_000)
    assert retry.fire_key == f"retry:{log.id}:2"


def test_a_run_without_instances_counts_as_a_result_of_a_fixed_delay(database: str) -> None:
    job = make_due_job(AFTER_THE_CURRENT_RUN, "FIX_DELAY", "20", addresses="")
    make_fire(job)
    claim_fires(now_ms=T0 + 1000)
    assert only_row(Job).trigger_next_time == T0 + 21_000


def test_fires_of_deleted_jobs_are_removed(database: str) -> None:
    job, kept = make_job(), make_job()
    make_fire(job)
    make_fire(kept)
    remove(job)
    batch = claim_fires()
    assert [claimed.job_id for claimed in batch.claims] == [kept.id]
    assert [fire.job_id for fire in all_rows(Fire)] == [kept.id]
    assert [log.job_id for log in all_rows(JobLog)] == [kept.id]


@pytest.mark.parametrize("state", ["ROUTING", "SENDING", "ACCEPTED", "UNKNOWN"])
def test_only_pending_fires_are_claimed(database: str, state: str) -> None:
    make_fire(make_job(), state=state, log_id=7)
    assert claim_fires().claims == []
    assert all_rows(JobLog) == []


def test_a_fire_without_capacity_at_its_address_is_parked_and_stays_pending(database: str) -> None:
    first, second = make_job(), make_job(addresses=SECOND)
    for job in (first, first, first, second):
        make_fire(job)
    capacities = {FIRST: 2, SECOND: 5}
    batch = claim_fires(by=claimer(capacity=capacities.__getitem__))
    assert [claimed.address for claimed in batch.claims] == [FIRST, FIRST, SECOND]
    pending = only_row(Fire, state="PENDING")
    assert {address: [fire.id for fire in waiting] for address, waiting in batch.parked_fires.items()} == {
        FIRST: [pending.id]
    }
    assert (pending.log_id, pending.attempt, pending.epoch) == (None, 0, 0)
    assert len(all_rows(JobLog)) == 3


def test_a_run_given_back_keeps_its_log_id_and_is_routed_again(database: str) -> None:
    group = make_group(address_list=ALL)
    make_fire(make_job(job_group=group.id, executor_route_strategy="ROUND"))
    by = claimer()
    first = claim_one(by)
    give_back_all(first)
    fire = only_row(Fire)
    assert (fire.state, fire.owner, fire.log_id, fire.address, fire.attempt) == (
        "PENDING",
        "",
        first.log_id,
        None,
        0,
    )
    second = claim_one(by, now_ms=T0 + 900)
    assert (second.log_id, second.attempt, second.epoch) == (first.log_id, 1, 2)
    assert second.request.log_id == first.log_id
    assert second.address != first.address, "the first may hang"
    assert (only_row(JobLog).id, only_row(JobLog).executor_address) == (first.log_id, second.address)


def test_a_run_given_back_keeps_an_address_that_is_mandatory(database: str) -> None:
    make_fire(
        make_job(addresses=ALL, executor_route_strategy="SHARDING_BROADCAST"),
        sharding_param="1/3",
        address=SECOND,
    )
    shard = claim_one()
    give_back_all(shard)
    assert only_row(Fire).address == SECOND
    assert claim_one().address == SECOND


def test_a_run_given_back_after_an_earlier_send_keeps_its_address(database: str) -> None:
    job = make_job(addresses=ALL, executor_route_strategy="ROUND")
    make_fire(job, log_id=make_log(job, executor_address=THIRD).id, address=THIRD, attempt=1, epoch=1)
    again = claim_one()
    give_back_all(again)
    assert only_row(Fire).address == THIRD


def test_redelivery_keeps_the_time_that_names_the_log_file(database: str) -> None:
    make_fire(make_job(addresses=ALL))
    first = claim_one(now_ms=T0)
    give_back_all(first)
    assert (
        claim_one(now_ms=T0 + 86_400_000).request.log_date_time
        == first.request.log_date_time
        == only_row(JobLog).trigger_time
    )


def test_the_request_has_the_time_that_its_row_reads_back_in_a_repeated_hour(database: str) -> None:
    use_zone("Europe/Berlin")
    make_fire(make_job(), due_time=BERLIN_SECOND_TWO)
    first = claim_one(now_ms=BERLIN_SECOND_TWO + 100)
    assert first.request.log_date_time == only_row(JobLog).trigger_time
    give_back_all(first)
    assert claim_one(now_ms=BERLIN_SECOND_TWO + 5_000).request.log_date_time == first.request.log_date_time


def test_redelivery_to_another_address_updates_the_log_row(database: str) -> None:
    job = make_job(addresses=ALL)
    log = make_log(job, executor_address="http://10.9.9.9:9999/")
    make_fire(job, log_id=log.id, address=None, attempt=1, epoch=1)
    assert claim_one().address == only_row(JobLog).executor_address == FIRST


def resend_elsewhere(job: Job, silent: str, shard: str | None = None) -> ClaimedRun:
    """Claim a run that is to be sent elsewhere, since its executor does not answer."""
    log = make_log(job, executor_address=silent, trigger_code=0)
    fire = make_fire(job, log_id=log.id, attempt=1, epoch=1, sharding_param=shard)
    (claimed,) = claim_fires([fire]).claims
    return claimed


@pytest.mark.parametrize("route", list(ROUTERS))
def test_a_run_is_sent_elsewhere_by_every_route(database: str, route: RouteStrategy) -> None:
    job = make_job(addresses=ALL, executor_route_strategy=route)
    for silent in (FIRST, SECOND, THIRD) * 3:
        assert resend_elsewhere(job, silent).address != silent


@pytest.mark.parametrize(
    ("shard", "silent", "address"), [("0/3", FIRST, SECOND), ("2/3", THIRD, FIRST), ("0/3", SECOND, FIRST)]
)
def test_a_shard_is_sent_elsewhere(database: str, shard: str, silent: str, address: str) -> None:
    job = make_job(addresses=ALL, executor_route_strategy="SHARDING_BROADCAST")
    claimed = resend_elsewhere(job, silent, shard)
    assert (claimed.address, f"{claimed.request.broadcast_index}/3") == (address, shard)


@pytest.mark.parametrize("route", sorted(PROBING))
def test_a_probing_route_asks_the_silent_executor_last(database: str, route: RouteStrategy) -> None:
    job = make_job(addresses=ALL, executor_route_strategy=route)
    assert list(resend_elsewhere(job, SECOND).peers) == [THIRD, FIRST, SECOND]


@pytest.mark.parametrize("route", [RouteStrategy.FIRST, RouteStrategy.FAILOVER])
def test_without_another_address_a_run_is_sent_to_the_same_again(database: str, route: RouteStrategy) -> None:
    job = make_job(addresses=FIRST, executor_route_strategy=route)
    assert list(resend_elsewhere(job, FIRST).peers) == [FIRST]


def edit_the_job() -> None:
    """Edit the only job, and how often its failed runs are retried."""
    columns = {"executor_handler": "edited", "executor_param": "day=2", "executor_fail_retry_count": 5}
    with session_scope() as session:
        session.execute(update(Job).values(columns))


@pytest.mark.parametrize(("given", "param"), [(None, "day=2"), ("own", "own")])
def test_a_run_given_back_executes_what_its_edited_job_does(
    database: str, given: str | None, param: str
) -> None:
    make_fire(make_job(executor_handler="report", executor_param="day=1"), executor_param=given)
    give_back_all(claim_one())
    edit_the_job()
    request, log = claim_one().request, only_row(JobLog)
    assert (request.executor_handler, request.executor_params) == ("edited", param)
    assert (log.executor_handler, log.executor_param, log.executor_fail_retry_count) == ("edited", param, 5)


@pytest.mark.parametrize(("given", "param"), [(None, "day=1"), ("own", "own")])
def test_redelivery_is_the_same_request_after_an_edit_of_the_job(
    database: str, given: str | None, param: str
) -> None:
    job = make_job(executor_handler="report", executor_param="day=1", executor_fail_retry_count=2)
    log = make_log(job, executor_param=param)
    make_fire(job, log_id=log.id, address=FIRST, attempt=1, epoch=1, executor_param=given)
    edit_the_job()
    request, log = claim_one().request, only_row(JobLog)
    assert (request.executor_handler, request.executor_params) == ("report", param)
    assert (log.executor_handler, log.executor_param, log.executor_fail_retry_count) == ("report", param, 2)


def test_redelivery_of_code_has_the_parameter_that_goes_with_it(database: str) -> None:
    job = make_job(glue_type="GLUE_SHELL", glue_source="echo 1", executor_param="day=1")
    make_fire(job, log_id=make_log(job, executor_param="day=1").id, address=FIRST, attempt=1, epoch=1)
    with session_scope() as session:
        session.execute(update(Job).values(glue_source="echo 2", executor_param="day=2"))
    request = claim_one().request
    assert (request.glue_source, request.executor_params) == ("echo 2", "day=2")
    assert only_row(JobLog).executor_param == "day=2", "its retry has it too"


def test_a_run_given_back_before_routing_is_probed_again(database: str) -> None:
    make_fire(make_job(addresses=ALL, executor_route_strategy="FAILOVER"))
    first = claim_one()
    give_back_all(first)
    second = claim_one()
    assert (second.log_id, second.address, list(second.peers)) == (first.log_id, None, [FIRST, SECOND, THIRD])


def test_a_run_claimed_by_another_node_is_not_given_back(database: str) -> None:
    make_fire(make_job())
    first = claim_one()
    give_back_all(first, node="two")
    assert only_row(Fire).state == "SENDING"
    give_back_all(first)
    claim_one(claimer("two"))
    give_back_all(first)
    assert (only_row(Fire).state, only_row(Fire).owner) == ("SENDING", "two")


def test_concurrent_claimers_have_one_winner_per_fire(database: str) -> None:
    group = make_group(address_list=ALL)
    job = make_job(job_group=group.id, executor_route_strategy="ROUND")
    fires = [make_fire(job) for _ in range(40)]
    batches = run_concurrently(
        *(lambda node=f"node{number}": claim_fires(fires, claimer(node)) for number in range(4))
    )
    claimed = [claimed for batch in batches for claimed in batch.claims]
    for _ in range(4):  # a row skipped because the other claimer held it may have been left by both
        claimed += claim_fires().claims
    assert sorted(claim.fire_id for claim in claimed) == [fire.id for fire in fires]
    assert len({claim.log_id for claim in claimed}) == len(all_rows(JobLog)) == len(fires)


def test_log_ids_match_their_fires_in_a_large_batch(database: str) -> None:
    jobs = [make_job(executor_param=f"number {number}") for number in range(5)]
    for number in range(120):
        make_fire(jobs[number % 5])
    batch = claim_fires()
    logs = {log.id: log for log in all_rows(JobLog)}
    assert len(batch.claims) == len(logs) == 120
    for claimed in batch.claims:
        assert logs[claimed.log_id].job_id == claimed.job_id
        assert logs[claimed.log_id].executor_param == claimed.request.executor_params


def test_an_unknown_route_uses_the_first_address(database: str) -> None:
    make_fire(make_job(addresses=ALL, executor_route_strategy="MAGIC"))
    make_fire(make_job(addresses=ALL, executor_route_strategy=None))
    assert [claimed.address for claimed in claim_fires().claims] == [FIRST, FIRST]


def test_the_trace_shows_trigger_node_and_address(database: str) -> None:
    job = make_job(
        addresses=ALL, executor_route_strategy="LAST", executor_timeout=9, executor_fail_retry_count=2
    )
    make_fire(job, owner="two", address_list=None)
    trace = claim_one(now_ms=T0 + 120).trace
    assert trace == (
        "Trigger: CRON, due 2024-05-01 11:04:05.000 +0800, seen by node two",
        "Claimed: 2024-05-01 11:04:05.120 +0800 (120 ms after due), node one",
        f"Addresses: entered [{FIRST}, {SECOND}, {THIRD}]",
        "Route: LAST; block strategy: SERIAL_EXECUTION; timeout: 9 s; retries left: 2",
        ">>> trigger <<<",
    )


@pytest.mark.parametrize(
    ("owner", "due_ms", "found"),
    [
        ("", T0, True),
        ("", T0 + 1, False),
        ("one", T0, True),  # own ones of an earlier run of this node
        ("one", T0 + 1, False),
        ("two", T0, False),  # in the other node's ring
        ("two", T0 - ORPHAN_MS, True),
        ("two", T0 - ORPHAN_MS + 1, False),
    ],
)
def test_the_poll_finds_fires_that_no_ring_holds(database: str, owner: str, due_ms: int, found: bool) -> None:
    fire = make_fire(make_job(), owner=owner, due_time=due_ms)
    make_fire(make_job(), state="SENDING", due_time=T0 - 60_000, log_id=1)
    ids = [due.id for due in find_unseen("one", after_id=0, now_ms=T0, limit=10)]
    assert ids == ([fire.id] if found else [])


def test_the_poll_continues_after_its_last_row(database: str) -> None:
    job = make_job()
    ids = [make_fire(job).id for _ in range(5)]
    assert [fire.id for fire in find_unseen("one", after_id=0, now_ms=T0, limit=2)] == ids[:2]
    assert [fire.id for fire in find_unseen("one", after_id=ids[1], now_ms=T0, limit=9)] == ids[2:]
    assert all_rows(Skip) == []


def test_log_lines_of_a_run_show_no_secrets(database: str) -> None:
    make_fire(make_job(executor_param="param-of-the-run", glue_source="source-of-the-run"))
    claimed = claim_one(now_ms=T0)
    text = repr(sent(claimed)) + repr(Peer("http://127.0.0.1:9/", "demo", TOKEN))
    assert f"log_id={claimed.log_id}" in text
    for secret in (TOKEN, "param-of-the-run", "source-of-the-run"):
        assert secret not in text
