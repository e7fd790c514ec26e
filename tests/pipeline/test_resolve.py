"""Resolver: open runs are settled by evidence, the delivery policy and, finally, an alarm."""

from collections.abc import Iterator

import pytest
from sqlalchemy import update

from app.database.engine import transact
from app.domain.enums import TriggerCode
from app.domain.runs.evidence import IDLE_CHECK_MS, Fate
from app.executors.calls import Peer
from app.models.alarm import Alarm
from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.pipeline import resolve
from app.pipeline.record import FIRST_CHECK_MS
from app.pipeline.resolve import PERIOD_MS, expire_leases
from app.settings.config import Config
from app.store.fires import scheduled_fires
from executor_client.wire.protocol import TOKEN_HEADER
from tests.pipeline.steps import (
    ABSENT,
    GONE,
    LEASE_MS,
    Signal,
    call_back,
    claim_fires,
    claim_one,
    claimer,
    open_run,
    record_sent,
    register,
    resolving,
    sent,
)
from tests.support.factories import SECOND, T0, all_rows, make_fire, make_group, make_job, only_row
from tests.support.fake_executor import Answer, FakeExecutor, Fault
from tests.support.plan import every_database

pytestmark = every_database

STARTED = Answer.json(
    content={"fromLineNum": 1, "toLineNum": 2, "logContent": "job execute start\nworking\n", "isEnd": False}
)
BUSY = Answer.json(500, msg="job thread is running or has trigger queue.")
HANGS = Answer(fault=Fault.CLOSE)


@pytest.fixture
def executor() -> Iterator[FakeExecutor]:
    """A foreign executor that is alive, is idle and has no log of any run."""
    with FakeExecutor() as running:
        running.respond("log", ABSENT)
        yield running


def fire_state() -> tuple[str, int]:
    fire = only_row(Fire)
    return fire.state, fire.probe_count


def trace() -> str:
    return only_row(JobLog).trigger_msg or ""


def test_a_durable_executor_gets_the_run_again_at_once(
    database: str, config: Config, executor: FakeExecutor
) -> None:
    register(executor.address)
    run = open_run(executor.address)
    with resolving(config) as probe:
        probe(0)
    fire = only_row(Fire)
    assert (fire.state, fire.address, fire.owner, fire.attempt, fire.log_id) == (
        "PENDING",
        executor.address,
        "",
        1,
        run.id,
    )
    assert trace().endswith("Resolver: send again, the executor starts a log id at most once")
    assert fire.boot_id == "boot-1", "so that the claim knows it even without the registration"
    claimed = claim_one(now_ms=T0 + 500)
    assert (claimed.log_id, claimed.attempt, claimed.address, claimed.is_remembered) == (
        run.id,
        2,
        executor.address,
        True,
    )


def test_a_durable_executor_is_recognised_if_its_address_was_entered_without_a_slash(
    database: str, config: Config, executor: FakeExecutor
) -> None:
    entered, registered = executor.address.rstrip("/"), executor.address.rstrip("/") + "/"
    register(registered, "boot-2")
    open_run(entered, boot_id="boot-1")
    with resolving(config) as probe:
        probe(0)
    fire = only_row(Fire)
    assert (fire.state, fire.address, fire.boot_id) == ("PENDING", entered, "boot-2")


def test_a_foreign_executor_gets_it_again_after_two_probes_without_evidence(
    database: str, config: Config, executor: FakeExecutor
) -> None:
    run = open_run(executor.address)
    with resolving(config) as probe:
        probe(0)
        assert fire_state() == ("UNKNOWN", 0), "a request may still be on its way"
        probe(4_999)
        assert only_row(Fire).deadline_ms == T0 + 5_000
        probe(5_000)
        assert fire_state() == ("UNKNOWN", 1)
        probe(9_999)
        assert len(executor.requests_for("log")) == 2, "probes are spaced"
        probe(10_000)
    assert fire_state() == ("PENDING", 0)
    assert "idle and without a log in 2 checks" in trace()
    assert claim_one(now_ms=T0 + 10_500).is_remembered is False
    log_request = executor.requests_for("log")[0].json
    assert (log_request["logId"], log_request["logDateTim"], log_request["fromLineNum"]) == (run.id, T0, 1)


def test_a_run_of_a_group_with_any_name_is_probed(
    database: str, config: Config, executor: FakeExecutor
) -> None:
    """A name that no header can hold as it is would end the check of all runs."""
    group = make_group(app_name="订单", address_list=executor.address)
    open_run(executor.address, job=make_job(job_group=group.id))
    with resolving(config) as probe:
        probe(5_000)
    assert fire_state() == ("UNKNOWN", 1)


def test_other_evidence_restarts_the_count(database: str, config: Config, executor: FakeExecutor) -> None:
    executor.respond("beat", Answer(), HANGS, Answer())
    open_run(executor.address)
    with resolving(config) as probe:
        probe(5_000)
        assert fire_state() == ("UNKNOWN", 1)
        probe(10_000)
        assert fire_state() == ("UNKNOWN", 0)
        probe(15_000)
        assert fire_state() == ("UNKNOWN", 1)


@pytest.mark.parametrize(("idle", "log", "reason"), [(BUSY, ABSENT, "busy"), (Answer(), STARTED, "ended")])
def test_a_run_that_the_executor_has_is_started(
    database: str, config: Config, executor: FakeExecutor, idle: Answer, log: Answer, reason: str
) -> None:
    executor.respond("idleBeat", idle)
    executor.respond("log", log)
    open_run(executor.address)
    with resolving(config) as probe:
        probe(0)
    fire = only_row(Fire)
    assert (fire.state, fire.accepted_ms, fire.deadline_ms, fire.probe_count) == (
        "ACCEPTED",
        T0,
        T0 + 15_000,
        0,
    )
    assert only_row(JobLog).trigger_code == 200, "so that it can be killed"
    assert trace().endswith(f"Resolver: started, the executor has the run: {reason}")


def test_no_evidence_for_twenty_seconds_ends_it_with_an_alarm_and_a_late_result_counts(
    database: str, config: Config
) -> None:
    run = open_run(GONE, executor_fail_retry_count=2)
    with resolving(config) as probe:
        for after_ms in (0, 5_000, 10_000, 15_000, 19_999):
            probe(after_ms)
        assert fire_state() == ("UNKNOWN", 0)
        probe(20_000)
    log = only_row(JobLog)
    assert (log.trigger_code, log.handle_code, log.alarm_status) == (504, 0, -1)
    assert (only_row(Alarm).log_id, only_row(Alarm).reason) == (run.id, "unresolved")
    assert all_rows(Fire) == [], "not even a retry: it may have been executed"
    assert trace().endswith("Resolver: unresolved, no evidence within 20 s; the executor is silent")
    assert call_back(run.id, 200, "done after all", now_ms=T0 + 60_000)
    assert (only_row(JobLog).trigger_code, only_row(JobLog).handle_code) == (504, 200)


def test_a_callback_settles_an_open_run_before_any_probe(
    database: str, config: Config, executor: FakeExecutor
) -> None:
    run = open_run(executor.address)
    assert call_back(run.id, 200)
    with resolving(config) as probe:
        probe(0)
    assert (executor.requests, all_rows(Fire)) == ([], [])


def test_a_result_during_a_probe_is_kept(database: str, config: Config, executor: FakeExecutor) -> None:
    run = open_run(executor.address, probe_count=1)
    executor.respond("log", ABSENT.but(wait=(answer := Signal(lambda: call_back(run.id, 200)))))
    with resolving(config) as probe:
        probe(10_000)
    assert answer.called
    assert (only_row(JobLog).handle_code, all_rows(Fire), all_rows(Alarm)) == (200, [], [])
    assert "Resolver" not in trace()


def test_evidence_older_than_a_send_causes_no_redelivery(
    database: str, config: Config, executor: FakeExecutor
) -> None:
    """During the probe the stalled sender renewed its lease, sent, and got no outcome: UNKNOWN again."""
    run = open_run(executor.address, probe_count=1, lease_until=T0 - 5_000)

    def send_meanwhile() -> bool:
        transact(lambda session: session.execute(update(Fire).values(lease_until=T0 + 4_000)))
        return True

    executor.respond("log", ABSENT.but(wait=(sent_now := Signal(send_meanwhile))))
    with resolving(config) as probe:
        probe(5_000)
    assert sent_now.called
    assert (only_row(Fire).state, only_row(JobLog, id=run.id).trigger_code) == ("UNKNOWN", 0)


def test_at_most_once_is_never_redelivered(database: str, config: Config, executor: FakeExecutor) -> None:
    register(executor.address)
    open_run(executor.address, delivery="at_most_once")
    with resolving(config) as probe:
        for after_ms in range(0, 25_000, 5_000):
            probe(after_ms)
    assert only_row(JobLog).trigger_code == 504
    assert len(all_rows(Alarm)) == 1


def test_at_least_once_goes_elsewhere_if_its_executor_is_gone(database: str, config: Config) -> None:
    group = make_group(address_type=0, address_list=SECOND)
    run = open_run(GONE, job=make_job(job_group=group.id, delivery="at_least_once"))
    with resolving(config) as probe:
        probe(0)
    assert only_row(Fire).address is None
    assert "the executor is gone" in trace()
    claimed = claim_one()
    assert (claimed.address, claimed.log_id, claimed.attempt) == (SECOND, run.id, 2)
    assert only_row(JobLog).executor_address == SECOND


def test_at_least_once_waits_for_a_silent_executor_that_is_registered_with_a_slash(
    database: str, config: Config
) -> None:
    """The address was entered without it for this run."""
    group = make_group(address_type=0, address_list=f"{GONE},{SECOND}")
    open_run(GONE.rstrip("/"), job=make_job(job_group=group.id, delivery="at_least_once"))
    with resolving(config) as probe:
        probe(0)
    assert fire_state() == ("UNKNOWN", 0)


def test_at_least_once_is_redelivered_to_a_live_executor(
    database: str, config: Config, executor: FakeExecutor
) -> None:
    open_run(executor.address, delivery="at_least_once")
    with resolving(config) as probe:
        probe(0)
        assert fire_state() == ("UNKNOWN", 0)
        probe(5_000)
    assert (only_row(Fire).state, only_row(Fire).address) == ("PENDING", executor.address)


def test_an_accepted_run_is_probed_after_ten_seconds(
    database: str, config: Config, executor: FakeExecutor
) -> None:
    make_fire(make_job(addresses=executor.address))
    record_sent(sent(claim_one()))
    with resolving(config) as probe:
        probe(FIRST_CHECK_MS - 1)
        assert executor.requests == []
        probe(FIRST_CHECK_MS)
        assert len(executor.requests_for("beat")) == 1


def test_an_accepted_run_that_is_busy_is_left_alone(
    database: str, config: Config, executor: FakeExecutor
) -> None:
    executor.respond("idleBeat", BUSY)
    open_run(executor.address, "ACCEPTED")
    with resolving(config) as probe:
        for after_ms in range(10_000, 400_000, 15_000):
            probe(after_ms)
    assert fire_state() == ("ACCEPTED", 0)
    assert trace() == "sent"


def test_an_accepted_run_that_was_lost_before_it_started_is_redelivered(
    database: str, config: Config, executor: FakeExecutor
) -> None:
    open_run(executor.address, "ACCEPTED")
    with resolving(config) as probe:
        probe(10_000)
        assert fire_state() == ("ACCEPTED", 1)
        probe(14_999)
        assert fire_state() == ("ACCEPTED", 1)
        probe(15_000)
    assert fire_state() == ("PENDING", 0)
    assert only_row(JobLog).trigger_code == 0
    record_sent(sent(claim_one(now_ms=T0 + 16_000), Fate.REFUSED, text="job handler not found"))
    assert only_row(JobLog).trigger_code == 500, "the outcome of the second send counts"
    assert len(all_rows(Alarm)) == 1


def test_a_result_is_lost_after_ninety_seconds_with_a_live_console(
    database: str, config: Config, executor: FakeExecutor
) -> None:
    executor.respond("log", STARTED)
    open_run(executor.address, "ACCEPTED")
    times = [10_000, 15_000, *range(30_000, 105_000, 15_000)]
    with resolving(config, console=False) as alone:
        for after_ms in range(10_000, 310_000, 15_000):
            alone(after_ms)
    assert fire_state() == ("ACCEPTED", 0), "no console could have received a result"
    transact(lambda session: session.query(Fire).update({"deadline_ms": T0}))
    with resolving(config) as probe:
        for after_ms in times:
            probe(after_ms)
        assert fire_state() == ("ACCEPTED", len(times))
        probe(105_000)
    assert (only_row(JobLog).trigger_code, only_row(Alarm).reason) == (504, "unresolved")
    assert "the run has ended, and no result arrived within 90 s" in trace()


def test_a_run_accepted_by_a_durable_executor_stays_there_after_it_expires(
    database: str, config: Config, executor: FakeExecutor
) -> None:
    open_run(executor.address, "ACCEPTED", boot_id="boot-1")
    with resolving(config) as probe:
        probe(10_000)
        probe(15_000)
        probe(30_000)
    assert fire_state() == ("ACCEPTED", 3), "its journal starts or reports it: nothing to send again"


def test_the_run_of_a_dead_sender_still_gets_a_trace(
    database: str, config: Config, executor: FakeExecutor
) -> None:
    register(executor.address)
    make_fire(make_job(addresses=executor.address), due_time=T0 - 30)
    claim_fires(by=claimer("dead"))
    assert only_row(JobLog).trigger_msg is None
    expire_leases(node="two", now_ms=T0 + LEASE_MS + 1)
    with resolving(config) as probe:
        probe(LEASE_MS + 1)
    assert trace().splitlines() == [
        "Trigger: CRON, due 2024-05-01 11:04:04.970 +0800",
        "Claimed: 2024-05-01 11:04:05.000 +0800 (30 ms after due), node dead",
        f"Sent to: {executor.address}",
        "Result: unknown, node dead never reported",
        "Resolver: send again, the executor starts a log id at most once",
    ]


def test_two_resolvers_probe_a_run_once(database: str, config: Config, executor: FakeExecutor) -> None:
    open_run(executor.address)
    with resolving(config) as first_probe, resolving(config) as second_probe:
        first_probe(5_000)
        second_probe(5_000)
    assert len(executor.requests_for("log")) == 1
    assert fire_state() == ("UNKNOWN", 1)


def test_a_job_is_asked_for_once_for_all_its_runs(
    database: str, config: Config, executor: FakeExecutor
) -> None:
    executor.respond("log", STARTED)
    job, other = (make_job(addresses=executor.address) for _ in range(2))
    for of_job in (job, job, job, other):
        open_run(executor.address, job=of_job)
    with resolving(config) as probe:
        probe(5_000)
    asked = [request.json["jobId"] for request in executor.requests_for("idleBeat")]
    assert (sorted(asked), len(executor.requests_for("log"))) == ([job.id, other.id], 4)


def test_a_job_that_becomes_busy_during_a_check_is_left_alone(
    database: str, config: Config, executor: FakeExecutor
) -> None:
    executor.respond("idleBeat", Answer.json(), BUSY)
    open_run(executor.address)
    with resolving(config) as probe:
        probe(5_000)
    assert fire_state() == ("ACCEPTED", 0)


def test_runs_in_doubt_are_checked_before_accepted_ones(
    database: str, config: Config, executor: FakeExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolve, "CHECK_ROWS", 2)
    for deadline_ms in (T0 - 3, T0 - 2):
        open_run(executor.address, "ACCEPTED", deadline_ms=deadline_ms)
    open_run(executor.address, deadline_ms=T0)
    with resolving(config) as probe:
        probe(5_000)
    checked = {fire.deadline_ms for fire in all_rows(Fire) if fire.probe_count}
    assert checked == {T0 + 5_000 + IDLE_CHECK_MS}
    assert sorted(fire.deadline_ms for fire in all_rows(Fire) if not fire.probe_count) == [T0 - 2]


def test_runs_in_doubt_leave_a_quarter_to_accepted_ones(
    database: str, config: Config, executor: FakeExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolve, "CHECK_ROWS", 4)
    for state in ("UNKNOWN",) * 5 + ("ACCEPTED",) * 2:
        open_run(executor.address, state)
    with resolving(config) as probe:
        probe(5_000)
    checked = [fire.state for fire in all_rows(Fire) if fire.probe_count]
    assert sorted(checked) == ["ACCEPTED", "UNKNOWN", "UNKNOWN", "UNKNOWN"]


@pytest.mark.parametrize(
    ("rows", "waits"), [(1, [3, 4_500, 5_000]), (2, [PERIOD_MS, 4_500, 5_000])], ids=["full", "few"]
)
def test_checks_pause_by_what_they_cost(
    database: str,
    config: Config,
    executor: FakeExecutor,
    monkeypatch: pytest.MonkeyPatch,
    rows: int,
    waits: list[int],
) -> None:
    monkeypatch.setattr(resolve, "CHECK_ROWS", rows)
    open_run(executor.address)
    executor.respond("idleBeat", BUSY)
    cpu_s = iter((10.0, 10.001, 20.0, 21.5, 30.0, 39.0))
    with resolving(config, cpu_s=cpu_s.__next__) as probe:
        assert [probe(at_ms) for at_ms in (5_000, 30_000, 60_000)] == waits


def test_a_run_stays_with_its_group_when_its_job_is_moved(
    database: str, config: Config, executor: FakeExecutor
) -> None:
    """Its executor knows only the token of that group, and must not learn that of the other."""
    token = "token-of-the-old-group"
    group = make_group(app_name="old", address_list=executor.address, access_token=token)
    other = make_group(app_name="new", address_list=SECOND, access_token="token-of-the-new-group")
    run = open_run(executor.address, job=make_job(job_group=group.id))
    register(executor.address, app_name="old")
    transact(lambda session: session.query(Job).update({"job_group": other.id}))
    with resolving(config) as probe:
        probe(0)
    assert {request.headers[TOKEN_HEADER] for request in executor.requests} == {token}
    assert only_row(Fire).boot_id == "boot-1", "its registration in the old group is found"
    claimed = claim_one(now_ms=T0 + 500)
    assert (claimed.log_id, claimed.address, claimed.job_group) == (run.id, executor.address, group.id)
    assert claimed.peers == {executor.address: Peer(executor.address, "old", token)}


@pytest.mark.parametrize(("state", "after_ms"), [("ACCEPTED", 200_000), ("UNKNOWN", 30_000)])
def test_an_address_that_was_removed_from_its_group_never_gets_the_groups_own_token(
    database: str, config: Config, executor: FakeExecutor, state: str, after_ms: int
) -> None:
    """Its executor may know the token from a leak, and claim for ever that it is busy."""
    group = make_group(address_type=1, address_list=SECOND, access_token="the-groups-own-token")
    open_run(executor.address, state, job=make_job(job_group=group.id), boot_id="boot-1")
    with resolving(config) as probe:
        for at_ms in range(0, after_ms, 5_000):
            probe(at_ms)
    assert executor.requests == []
    assert only_row(JobLog).trigger_code == TriggerCode.UNRESOLVED


@pytest.mark.parametrize(("state", "after_ms"), [("ACCEPTED", 200_000), ("UNKNOWN", 30_000)])
def test_an_address_of_a_deleted_group_gets_no_token(
    database: str, config: Config, executor: FakeExecutor, state: str, after_ms: int
) -> None:
    """Whether the group had its own is no longer known; its job was moved to another one."""
    group = make_group(address_list=executor.address, access_token="the-groups-own-token")
    open_run(executor.address, state, job=make_job(job_group=group.id), boot_id="boot-1")
    transact(lambda session: session.query(Group).filter_by(id=group.id).delete())
    with resolving(config) as probe:
        for at_ms in range(0, after_ms, 5_000):
            probe(at_ms)
    assert executor.requests == []
    assert only_row(JobLog).trigger_code == TriggerCode.UNRESOLVED


@pytest.mark.parametrize("state", ["ACCEPTED", "UNKNOWN"])
def test_an_executor_that_has_deregistered_is_probed_like_others(
    database: str, config: Config, executor: FakeExecutor, state: str
) -> None:
    """It finishes its runs before it ends."""
    executor.respond("idleBeat", Answer.json(500, msg="job thread is running or has trigger queue."))
    group = make_group(address_type=0, address_list=SECOND, access_token="the-groups-own-token")
    open_run(executor.address, state, job=make_job(job_group=group.id), boot_id="boot-1")
    with resolving(config) as probe:
        for at_ms in range(0, 200_000, 5_000):
            probe(at_ms)
    assert {request.headers[TOKEN_HEADER] for request in executor.requests} == {"the-groups-own-token"}
    assert only_row(JobLog).trigger_code != TriggerCode.UNRESOLVED


def test_a_silent_executor_is_probed_once_for_all_its_runs(
    database: str, config: Config, executor: FakeExecutor
) -> None:
    executor.respond("beat", HANGS)
    job = make_job(addresses=executor.address)
    for _ in range(20):
        open_run(executor.address, job=job)
    with resolving(config) as probe:
        probe(0)
    assert [request.action for request in executor.requests] == ["beat"]


def test_a_stop_leaves_a_claimed_run_to_its_end(
    database: str, config: Config, executor: FakeExecutor
) -> None:
    """The run has its log row: withdrawn, it would be shown as running for ever."""
    register(executor.address)
    run = open_run(executor.address)
    make_fire(make_job())
    with resolving(config) as probe:
        probe(0)
    job_id = only_row(JobLog).job_id
    assert transact(lambda session: scheduled_fires.withdraw(session, [job_id])) == {}
    assert only_row(Fire, log_id=run.id).state == "PENDING"
