"""Dispatcher on a real database with fake executors: claims, sends, records, and stops in order."""

import errno
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from app.clock import Millis, now_ms
from app.database.engine import bind_engine, transact
from app.database.faults import FaultLog
from app.domain.schedules.planning import DueFire
from app.executors.dispatch_client import DispatchClient
from app.models.alarm import Alarm
from app.models.fire import Fire
from app.models.group import Group
from app.models.log import JobLog
from app.pipeline.claim import ClaimBatch, claim
from app.pipeline.claimed_run import CLAIM_AHEAD_MS, Claimer
from app.pipeline.record import record
from app.pipeline.send import Sender, SendOutcome
from app.runtime.logging import request_id
from app.runtime.metrics import FIRES_LATE, FIRES_SENT
from app.settings.config import Config
from app.store.fires import queue as fires
from tests.pipeline.steps import LONG_TIMEOUT_S, LOOPBACK, SHORT_TIMEOUT_S, TOKEN, as_due, call_back
from tests.support.eventually import eventually
from tests.support.factories import all_rows, make_fire, make_job, only_row, remove
from tests.support.fake_executor import Answer, FakeExecutor, Fault
from tests.workers.dispatching import await_states, dispatching, executors, fires_of, group_of, states
from workers.dispatch import dispatcher as dispatcher_module
from workers.dispatch import lanes, poll, send_results
from workers.dispatch.claim_pace import ClaimPace
from workers.dispatch.dispatcher import Dispatcher
from workers.dispatch.early_claims import EarlySends
from workers.dispatch.send_limiter import Lane
from workers.dispatch.send_task import SendTask


@pytest.fixture
def executor() -> Iterator[FakeExecutor]:
    with FakeExecutor() as running:
        yield running


def test_a_due_fire_is_sent_and_its_acceptance_recorded(
    database: str, config: Config, executor: FakeExecutor
) -> None:
    executor.respond("run", Answer(headers=(("X-Exec-Capabilities", "durable-dedup,boot=5f0c"),)))
    job = make_job(addresses=executor.address, executor_param="p")
    with dispatching(config) as dispatcher:
        dispatcher.offer(as_due(fires_of(job)))
        await_states({"ACCEPTED": 1})
    (request,) = executor.requests
    log, fire = only_row(JobLog), only_row(Fire)
    assert (request.target, request.json["jobId"], request.json["logId"]) == ("/run", job.id, log.id)
    assert request.headers["XXL-JOB-ACCESS-TOKEN"] == TOKEN
    assert request.json["logDateTime"] == log.trigger_time
    assert (log.trigger_code, log.handle_code, log.executor_address) == (200, 0, executor.address)
    assert (fire.boot_id, fire.owner, fire.attempt) == ("5f0c", "one", 1)
    assert "Result: accepted, answered" in (log.trigger_msg or "")


def test_fires_that_are_due_soon_are_prepared_and_sent_when_they_are_due(
    database: str, config: Config, executor: FakeExecutor
) -> None:
    due_ms = now_ms() + 400
    job = make_job(addresses=executor.address, update_time=due_ms - 60_000)
    fires = [make_fire(job, due_time=due_ms, owner="one") for _ in range(3)]
    with dispatching(config) as dispatcher:
        dispatcher.offer_ahead(as_due(fires))
        eventually(lambda: len(all_rows(JobLog)) == 3)
        prepared = [log.id for log in all_rows(JobLog)]
        assert states() == {"PENDING": 3}
        assert executor.requests == []
        eventually(lambda: now_ms() >= due_ms - CLAIM_AHEAD_MS)
        dispatcher.offer(as_due(fires))
        await_states({"ACCEPTED": 3})
    assert all(request.received_ms >= due_ms for request in executor.requests)
    assert [log.id for log in all_rows(JobLog)] == prepared
    assert sorted(request.json["logId"] for request in executor.requests) == prepared
    assert {request.json["logDateTime"] for request in executor.requests} == {due_ms // 1000 * 1000}


def test_a_fire_that_is_not_prepared_is_claimed_when_it_is_due(
    database: str, config: Config, executor: FakeExecutor
) -> None:
    job = make_job(addresses=executor.address)
    with dispatching(config) as dispatcher:
        fire = make_fire(job, due_time=now_ms() + CLAIM_AHEAD_MS, owner="one")
        dispatcher.offer(as_due([fire]))
        await_states({"ACCEPTED": 1})
    (request,) = executor.requests
    assert request.received_ms >= fire.due_time


def test_a_fire_that_comes_too_late_to_be_prepared_is_claimed_like_any(
    database: str, config: Config, executor: FakeExecutor
) -> None:
    job = make_job(addresses=executor.address, update_time=now_ms() - 60_000)
    due = as_due(fires_of(job))
    with dispatching(config) as dispatcher:
        dispatcher.offer_ahead(due)
        dispatcher.offer(due)
        await_states({"ACCEPTED": 1})
    assert len(all_rows(JobLog)) == len(executor.requests) == 1


def test_lines_about_a_triggered_run_carry_the_id_of_its_request(
    database: str, config: Config, executor: FakeExecutor
) -> None:
    request, lines = "5f0c7a3b9d214e86", []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append((request_id.get(), record.getMessage()))

    logger, handler = logging.getLogger("workers.dispatch.send_task"), Handler()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    job = make_job(addresses=executor.address)
    try:
        with dispatching(config) as dispatcher:
            triggered = fires_of(job, trigger_type="MANUAL", fire_key=f"manual:1-{'a' * 32}@{request}")
            dispatcher.offer(as_due([*triggered, *fires_of(job)]))
            await_states({"ACCEPTED": 2})
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    ((carried, line),) = lines
    assert carried == request
    assert line.startswith("run sent log_id=")


def test_requests_are_counted_and_those_over_a_second_late_as_late(
    database: str, config: Config, executor: FakeExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    for counter in (FIRES_SENT, FIRES_LATE):
        monkeypatch.setattr(counter, "values", {})
    job = make_job(addresses=executor.address)
    with dispatching(config) as dispatcher:
        for late_ms in (0, 2_000):
            dispatcher.offer(as_due([make_fire(job, due_time=now_ms() - late_ms, owner="one")]))
        await_states({"ACCEPTED": 2})
    assert FIRES_SENT.values == {(str(job.job_group), "accepted"): 2}
    assert FIRES_LATE.values[str(job.job_group),] >= 1


@pytest.mark.parametrize("reason", ["refused", "no listener", "not allowed"])
def test_a_definite_refusal_ends_the_run(
    database: str, config: Config, executor: FakeExecutor, reason: str
) -> None:
    executor.respond("run", Answer.json(500, msg="job handler [x] not found."))
    address = {
        "refused": executor.address,
        "no listener": "http://127.0.0.1:1111/",
        "not allowed": "http://8.8.8.8:9999/",
    }[reason]
    job = make_job(addresses=address)
    with dispatching(config) as dispatcher:
        dispatcher.offer(as_due(fires_of(job)))
        eventually(lambda: only_row(JobLog).trigger_code == 500 if all_rows(JobLog) else False)
    assert all_rows(Fire) == []
    assert len(all_rows(Alarm)) == 1
    assert "Result: refused" in (only_row(JobLog).trigger_msg or "")


@pytest.mark.parametrize("fault", [Fault.SILENCE, Fault.RESET_AFTER_BODY, Fault.CUT])
def test_a_send_that_may_have_arrived_is_unknown_and_not_repeated(
    database: str, config: Config, executor: FakeExecutor, fault: Fault
) -> None:
    executor.respond("run", Answer(fault=fault), Answer())
    job = make_job(addresses=executor.address, executor_fail_retry_count=3)
    with dispatching(config, trigger_timeout_s=SHORT_TIMEOUT_S) as dispatcher:
        dispatcher.offer(as_due(fires_of(job)))
        await_states({"UNKNOWN": 1})
    assert len(executor.requests) == 1
    log = only_row(JobLog)
    assert (log.trigger_code, log.handle_code) == (0, 0)
    assert "Result: unknown, no answer" in (log.trigger_msg or "")


def test_failover_takes_the_first_live_executor_and_the_next_if_it_refuses(
    database: str, config: Config
) -> None:
    with executors(4) as (dead, refusing, taking, spare):
        dead.respond("beat", Answer.json(500, msg="not well"))
        refusing.respond("run", Answer.json(500, msg="no handler"))
        job = make_job(addresses=group_of(dead, refusing, taking, spare), executor_route_strategy="FAILOVER")
        with dispatching(config) as dispatcher:
            dispatcher.offer(as_due(fires_of(job)))
            await_states({"ACCEPTED": 1})
        actions = [
            [request.action for request in executor.requests] for executor in (dead, refusing, taking, spare)
        ]
    assert actions == [["beat"], ["beat", "run"], ["beat", "run"], []]
    assert dead.requests[0].body == b"{}"
    log, fire = only_row(JobLog), only_row(Fire)
    assert (log.executor_address, fire.address, log.trigger_code) == (taking.address, taking.address, 200)
    trace = log.trigger_msg or ""
    order = [
        f"Probe beat {dead.address}: no, code 500: not well",
        f"Sent to: {refusing.address}",
        f"Sent to: {taking.address}",
    ]
    assert sorted(order, key=trace.index) == order


def test_failover_stops_if_the_outcome_is_unknown(database: str, config: Config) -> None:
    with executors(2) as (lost, spare):
        lost.respond("run", Answer(fault=Fault.RESET_AFTER_BODY))
        job = make_job(addresses=group_of(lost, spare), executor_route_strategy="FAILOVER")
        with dispatching(config) as dispatcher:
            dispatcher.offer(as_due(fires_of(job)))
            await_states({"UNKNOWN": 1})
        assert spare.requests == []
    assert only_row(Fire).address == lost.address


@pytest.mark.parametrize("route", ["FIRST", "FAILOVER"])
def test_a_host_without_free_files_gives_its_runs_back(
    database: str,
    config: Config,
    executor: FakeExecutor,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    route: str,
) -> None:
    def lack(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    caplog.set_level(logging.WARNING)
    job = make_job(addresses=f"{executor.address},{executor.address}other/", executor_route_strategy=route)
    with dispatching(config) as dispatcher:
        with monkeypatch.context() as full:
            full.setattr(DispatchClient, "_open_connection", lack)
            dispatcher.offer(as_due(fires_of(job)))
            eventually(lambda: "runs given back" in caplog.text)
        await_states({"ACCEPTED": 1})
    log, fire = only_row(JobLog), only_row(Fire)
    assert (log.trigger_code, log.executor_address, fire.attempt) == (200, executor.address, 1)
    assert [request.json["logId"] for request in executor.requests_for("run")] == [log.id]
    assert "Too many open files" not in (log.trigger_msg or "")


def test_busyover_probes_for_the_job_and_skips_busy_executors(database: str, config: Config) -> None:
    with executors(3) as (hanging, busy, idle):
        hanging.respond("idleBeat", Answer(fault=Fault.SILENCE))
        busy.respond("idleBeat", Answer.json(500, msg="job thread is running or has trigger queue."))
        job = make_job(addresses=group_of(hanging, busy, idle), executor_route_strategy="BUSYOVER")
        with dispatching(config) as dispatcher:
            dispatcher.offer(as_due(fires_of(job)))
            await_states({"ACCEPTED": 1})
        assert [request.action for request in busy.requests] == ["idleBeat"]
        assert busy.requests[0].json == {"jobId": job.id}
    assert only_row(JobLog).executor_address == idle.address


def test_a_run_fails_if_every_candidate_refuses(
    database: str, config: Config, executor: FakeExecutor
) -> None:
    executor.respond("beat", Answer.json(500))
    job = make_job(addresses=f"{executor.address},http://127.0.0.1:1111/", executor_route_strategy="FAILOVER")
    with dispatching(config) as dispatcher:
        dispatcher.offer(as_due(fires_of(job)))
        eventually(lambda: only_row(JobLog).trigger_code == 500 if all_rows(JobLog) else False)
    assert executor.requests_for("run") == []
    assert "no executor is available" in (only_row(JobLog).trigger_msg or "")
    assert only_row(JobLog).executor_address is None


def test_a_broadcast_reaches_every_executor_with_its_shard(database: str, config: Config) -> None:
    with executors(3) as members:
        job = make_job(addresses=group_of(*members), executor_route_strategy="SHARDING_BROADCAST")
        with dispatching(config) as dispatcher:
            dispatcher.offer(as_due(fires_of(job)))
            await_states({"ACCEPTED": 3})
        shares = [
            (executor.requests[0].json["broadcastIndex"], executor.requests[0].json["broadcastTotal"])
            for executor in members
        ]
    assert shares == [(0, 3), (1, 3), (2, 3)]


def test_a_hanging_executor_holds_only_its_own_slots(database: str, config: Config) -> None:
    release = threading.Event()
    with executors(2) as (hanging, quick):
        hanging.respond("run", Answer(wait=release))
        stuck, free = make_job(addresses=hanging.address), make_job(addresses=quick.address)
        with dispatching(config, address_inflight_max=2) as dispatcher:
            dispatcher.offer(as_due([*fires_of(stuck, 8), *fires_of(free, 30)]))
            eventually(lambda: len(quick.requests) == 30)
            await_states({"ACCEPTED": 30, "SENDING": 2, "PENDING": 6})
            assert len(hanging.requests) == 2
            release.set()
            await_states({"ACCEPTED": 38})
        assert len(hanging.requests) == 8
        logs = [request.json["logId"] for request in hanging.requests]
    assert len(set(logs)) == 8
    assert len(all_rows(JobLog)) == 38


def test_hanging_executors_that_would_fill_the_fast_lane_delay_no_other(
    database: str, config: Config
) -> None:
    """Three with two slots each share four permits; a healthy one gets its runs long before the timeout."""
    release = threading.Event()
    with executors(4) as (*hanging, quick):
        for executor in hanging:
            executor.respond("run", Answer(wait=release))
        stuck = [fire for executor in hanging for fire in fires_of(make_job(addresses=executor.address), 4)]
        with dispatching(config, address_inflight_max=2, fast_max=4) as dispatcher:
            dispatcher.offer(as_due(stuck))
            eventually(lambda: sum(len(executor.requests) for executor in hanging) >= 4)
            dispatcher.offer(as_due(fires_of(make_job(addresses=quick.address), 30)))
            eventually(lambda: len(quick.requests) == 30, timeout_s=LONG_TIMEOUT_S / 2)
            eventually(lambda: [len(executor.requests) for executor in hanging] == [2, 2, 2])
            release.set()
            await_states({"ACCEPTED": 42})
    assert len(all_rows(JobLog)) == 42


@pytest.mark.parametrize("route", ["FAILOVER", "BUSYOVER"])
def test_candidates_that_hang_delay_no_other_job(database: str, config: Config, route: str) -> None:
    """The runs that probe them would fill the fast lane until the timeout."""
    with executors(2) as (hanging, quick):
        hanging.respond("*", Answer(fault=Fault.SILENCE))
        stuck = make_job(addresses=hanging.address, executor_route_strategy=route)
        with dispatching(config, fast_max=2) as dispatcher:
            dispatcher.offer(as_due(fires_of(stuck, 2 * lanes.FAST_AHEAD)))
            eventually(lambda: hanging.requests)
            dispatcher.offer(as_due(fires_of(make_job(addresses=quick.address), 30)))
            eventually(lambda: len(quick.requests) == 30, timeout_s=LONG_TIMEOUT_S / 2)
            assert states()["ROUTING"] == 2 * lanes.FAST_AHEAD


def test_a_job_whose_candidates_hang_is_slow(
    database: str, config: Config, executor: FakeExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "SLOW_SENDS", 0)
    executor.respond("beat", Answer(fault=Fault.SILENCE))
    job = make_job(addresses=executor.address, executor_route_strategy="FAILOVER")
    with dispatching(config, trigger_timeout_s=SHORT_TIMEOUT_S) as dispatcher:
        dispatcher.offer(as_due(fires_of(job)))
        await_states({})
        assert dispatcher._lanes.lane_of(job.id) is Lane.SLOW


def test_runs_waiting_for_a_former_address_go_to_another(
    database: str, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs hang there, the others are parked until the group gets another address."""
    monkeypatch.setattr(lanes, "AHEAD_UNKNOWN", 1)
    with executors(2) as (hanging, quick):
        hanging.respond("run", Answer(fault=Fault.SILENCE))
        job = make_job(addresses=hanging.address)
        with dispatching(config, address_inflight_max=2, trigger_timeout_s=SHORT_TIMEOUT_S) as dispatcher:
            dispatcher.offer(as_due(fires_of(job, 20)))
            eventually(lambda: len(hanging.requests) == 2)
            transact(lambda session: session.execute(update(Group).values(address_list=quick.address)))
            await_states({"UNKNOWN": 2, "ACCEPTED": 18})
        assert (len(hanging.requests), len(quick.requests)) == (2, 18)


def test_one_unclaimable_fire_costs_the_others_little(
    database: str,
    config: Config,
    executor: FakeExecutor,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """If each of its group were claimed alone, the first of a large group would be sent too late."""
    sizes: list[int] = []

    def counted(session: Session, due: Sequence[DueFire], claimer: Claimer, **more: Any) -> ClaimBatch:
        sizes.append(len(due))
        return claim(session, due, claimer, **more)

    monkeypatch.setattr(dispatcher_module, "claim", counted)
    job = make_job(addresses=executor.address)
    due = as_due([*fires_of(job, 40), *fires_of(job, trigger_type="ODD"), *fires_of(job, 23)])
    with dispatching(config, address_inflight_max=16) as dispatcher:
        dispatcher.offer(due)
        await_states({"ACCEPTED": 63, "PENDING": 1})
    assert max(sizes) == 64
    assert sizes.count(1) < 20, "two, and again when the poll finds the unclaimable one"
    assert "not written item=DueFire" in caplog.text


def test_outcomes_are_written_in_groups(
    database: str, config: Config, executor: FakeExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fire that falls due meanwhile waits for one group, not for the outcomes of a whole herd."""
    sizes: list[int] = []

    def counted(session: Session, sents: Sequence[SendOutcome], *, node: str, now_ms: Millis) -> None:
        sizes.append(len(sents))
        record(session, sents, node=node, now_ms=now_ms)

    monkeypatch.setattr(send_results, "record", counted)
    monkeypatch.setattr(send_results, "OUTCOMES_GROUP", 2)
    with dispatching(config) as dispatcher:
        dispatcher.offer(as_due(fires_of(make_job(addresses=executor.address), 5)))
        await_states({"ACCEPTED": 5})
    assert max(sizes) <= 2
    assert sum(sizes) == 5


def test_slow_claims_make_runs_late_but_still_sent(
    database: str,
    config: Config,
    executor: FakeExecutor,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As with a distant database: each claim takes longer than the send window and its lease allow."""

    def slow_claim(session: Session, due: Sequence[DueFire], claimer: Claimer, **more: Any) -> ClaimBatch:
        threading.Event().wait(1.2)
        return claim(session, due, claimer, **more)

    with dispatching(config) as dispatcher:
        monkeypatch.setattr(dispatcher_module, "claim", slow_claim)
        dispatcher.offer(as_due(fires_of(make_job(addresses=executor.address), 3)))
        await_states({"ACCEPTED": 3})
    assert len(executor.requests) == 3
    assert "given back" not in caplog.text
    assert {fire.attempt for fire in all_rows(Fire)} == {1}


def test_a_wake_up_triggers_a_poll(
    database: str, config: Config, executor: FakeExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit of a manual, child or retry fire wakes the poll, whose period is an hour here."""
    monkeypatch.setattr(poll, "PERIOD_S", 3_600.0)
    child = make_job(addresses=executor.address)
    job = make_job(addresses=executor.address, child_jobid=str(child.id))
    with dispatching(config):
        for number in (1, 2):
            transact(
                lambda session: fires.insert_manual(
                    session, job.id, executor_param=None, address_list=None, due_ms=now_ms()
                )
            )
            eventually(lambda count=number: len(executor.requests) == count)
        await_states({"ACCEPTED": 2})
        call_back(all_rows(JobLog)[0].id, 200, now_ms=now_ms())
        eventually(lambda: len(executor.requests) == 3)
        await_states({"ACCEPTED": 2})


def test_rows_of_the_console_and_orphans_are_found_without_an_offer(
    database: str, config: Config, executor: FakeExecutor
) -> None:
    job = make_job(addresses=executor.address)
    with dispatching(config):
        fires_of(job, trigger_type="MANUAL", owner="")
        make_fire(job, owner="a dead node", due_time=now_ms() - 5_000)
        make_fire(job, owner="", due_time=now_ms() + 3_600_000)
        await_states({"ACCEPTED": 2, "PENDING": 1})
    assert len(executor.requests) == 2


def test_nothing_is_claimed_while_the_clock_is_wrong(
    database: str, config: Config, executor: FakeExecutor
) -> None:
    """A clock that is ahead would send fires of other nodes' rings too early."""
    steady = threading.Event()
    job = make_job(addresses=executor.address)
    with dispatching(config, may_fire=steady.is_set) as dispatcher:
        dispatcher.offer(as_due(fires_of(job)))
        make_fire(job, owner="another node", due_time=now_ms() - 2_000)
        threading.Event().wait(0.6)  # two polls and more
        assert (states(), executor.requests) == ({"PENDING": 2}, [])
        steady.set()
        await_states({"ACCEPTED": 2})
    assert len(executor.requests) == 2


def test_two_dispatchers_send_each_run_once(database: str, config: Config, executor: FakeExecutor) -> None:
    fires = fires_of(make_job(addresses=executor.address), 60)
    with dispatching(config, "one") as first, dispatching(config, "two") as second:
        first.offer(as_due(fires))
        second.offer(as_due(fires[::-1]))
        await_states({"ACCEPTED": 60})
    logs = [request.json["logId"] for request in executor.requests]
    assert len(logs) == len(set(logs)) == len(all_rows(JobLog)) == 60


def test_a_deleted_or_claimed_fire_is_not_sent(database: str, config: Config, executor: FakeExecutor) -> None:
    job = make_job(addresses=executor.address)
    deleted, claimed, kept = fires_of(job, 3)
    remove(deleted)
    due = as_due([deleted, claimed, kept])
    with dispatching(config) as dispatcher:
        make_fire(job, id=claimed.id + 100, state="SENDING", log_id=99)
        dispatcher.offer(due)
        await_states({"ACCEPTED": 2, "SENDING": 1})
        dispatcher.offer(due)
        eventually(lambda: len(executor.requests) == 2)
    assert len(all_rows(JobLog)) == 2


def test_a_stop_waits_for_the_sends_in_flight(database: str, config: Config, executor: FakeExecutor) -> None:
    release = threading.Event()
    executor.respond("run", Answer(wait=release))
    job = make_job(addresses=executor.address)
    dispatcher = Dispatcher(replace(config, executor_networks=LOOPBACK), node="one", tokens=(TOKEN,))
    dispatcher.start()
    dispatcher.offer(as_due(fires_of(job)))
    eventually(lambda: executor.requests)
    stopping = threading.Thread(target=dispatcher.stop)
    stopping.start()
    late = fires_of(job)
    stopping.join(0.3)
    assert stopping.is_alive()
    release.set()
    stopping.join(10)
    assert not stopping.is_alive()
    assert states() == {"ACCEPTED": 1, "PENDING": 1}
    assert only_row(Fire, id=late[0].id).log_id is None
    dispatcher.stop()  # a second stop is not an error
    assert len(executor.requests) == 1


def raise_error(*_: object) -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize("path", ["run", "trigger"])
def test_an_answer_that_cannot_be_judged_keeps_no_slot(
    database: str,
    config: Config,
    executor: FakeExecutor,
    path: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Over a connection that is open; its run stays claimed for the resolver."""
    job = make_job(addresses=executor.address)
    with dispatching(config, address_inflight_max=1) as dispatcher:
        dispatcher.offer(as_due(fires_of(job)))
        await_states({"ACCEPTED": 1})
        with monkeypatch.context() as broken:
            if path == "trigger":
                unserved = "invalid request, uri-mapping(/run) not found."
                executor.respond("run", Answer.json(code=500, msg=unserved))
                broken.setattr(Sender, "_remember_path", raise_error)
            else:
                broken.setattr("app.pipeline.send._judge", raise_error)
            dispatcher.offer(as_due(fires_of(job)))
            eventually(lambda: "send failed log_id=" in caplog.text)
        executor.respond("run", Answer())
        dispatcher.offer(as_due(fires_of(job)))
        await_states({"ACCEPTED": 2, "SENDING": 1})
    assert "dispatcher did not end in time" not in caplog.text


def test_a_stop_does_not_wait_for_unprobed_candidates(
    database: str, config: Config, executor: FakeExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    executor.respond("beat", Answer(fault=Fault.SILENCE))
    candidates = ",".join(f"{executor.address}{number}/" for number in range(30))
    with dispatching(config) as dispatcher:
        dispatcher.offer(as_due(fires_of(make_job(addresses=candidates, executor_route_strategy="FAILOVER"))))
        eventually(lambda: executor.requests)
    assert "dispatcher did not end in time" not in caplog.text
    assert len(executor.requests) < 5
    assert states() == {"PENDING": 1}
    assert only_row(Fire).attempt == 0


def test_a_process_that_was_suspended_gives_its_runs_back(
    database: str,
    config: Config,
    executor: FakeExecutor,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    monkeypatch.setattr(ClaimPace, "start_before", lambda *_: 0.0)
    job = make_job(addresses=executor.address)
    with dispatching(config) as dispatcher:
        dispatcher.offer(as_due(fires_of(job)))
        eventually(lambda: "runs given back" in caplog.text)
        assert executor.requests == []
        monkeypatch.undo()
        await_states({"ACCEPTED": 1})
    assert only_row(Fire).attempt == 1, "a run that was not sent was not attempted"
    assert only_row(Fire).epoch >= 2
    assert [request.json["logId"] for request in executor.requests] == [only_row(JobLog).id]


def test_a_host_that_was_suspended_before_the_send_gives_its_runs_back(
    database: str,
    config: Config,
    executor: FakeExecutor,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Meanwhile other nodes have found that their lease has expired."""
    caplog.set_level(logging.WARNING)
    suspended_s, real, start = [1_000.0], time.clock_gettime, EarlySends.start
    monkeypatch.setattr(time, "clock_gettime", lambda clock: real(clock) + suspended_s[-1])

    def start_later(held: EarlySends, sends: Sequence[SendTask], start_before: float) -> None:
        if len(suspended_s) == 1:
            suspended_s.append(4_600.0)
        start(held, sends, start_before)

    monkeypatch.setattr(EarlySends, "start", start_later)
    with dispatching(config) as dispatcher:
        dispatcher.offer(as_due(fires_of(make_job(addresses=executor.address))))
        await_states({"ACCEPTED": 1})
    assert "runs given back" in caplog.text
    assert (only_row(Fire).attempt, only_row(Fire).epoch) == (1, 2)
    assert len(executor.requests) == 1


def test_outcomes_wait_for_an_unavailable_database(
    database: str, config: Config, database_kind: str, executor: FakeExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, failed = threading.Event(), list[str]()
    monkeypatch.setattr(FaultLog, "write", lambda _log, _logger, event, _error: failed.append(event))
    executor.respond("run", Answer(wait=release))
    nowhere = {
        "sqlite": "sqlite:////nowhere/at/all.db",
        "mariadb": "mysql+pymysql://root@127.0.0.1:1/x",
        "mysql": "mysql+pymysql://root@127.0.0.1:1/x",
        "postgresql": "postgresql+psycopg://xxl_job@127.0.0.1:1/x",
    }
    with dispatching(config) as dispatcher:
        dispatcher.offer(as_due(fires_of(make_job(addresses=executor.address))))
        eventually(lambda: executor.requests)
        bind_engine(replace(config, database_url=nowhere[database_kind]))
        release.set()
        eventually(lambda: any("outcomes not written" in event for event in failed))
        bind_engine(config)
        await_states({"ACCEPTED": 1})
    assert len(executor.requests) == 1
