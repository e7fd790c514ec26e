"""Runs by the id that programs have, their states, and waiting for their end."""

import threading
from collections.abc import Collection

import pytest
from sqlalchemy.orm import Session

from app.database.engine import read_scope, transact
from app.domain.access.permissions import ALL_RIGHTS, Actor, Right, system_actor
from app.domain.runs.outcome import ENDED, STATES, state_of_all
from app.domain.runs.trigger_keys import Trigger
from app.errors import Conflict, ExecutorUnreachable, NotFound, PermissionDenied
from app.executors.gateway import Gateway
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.models.registry import Registration
from app.runtime import interruptible_wait
from app.services.executors.callers import Caller
from app.services.jobs import jobs
from app.services.runs import run_actions, run_lookup
from app.services.runs.following import End, Event, Heartbeat, Line, Trouble, follow
from app.services.runs.run_actions import kill_run, retry_run
from app.services.runs.run_lookup import FoundRun, get_run, row_of, wait_for_end
from app.settings.config import Config
from tests.pipeline.steps import call_back, claim_fires, record_sent, sent
from tests.support.factories import (
    FIRST,
    SECOND,
    T0,
    all_rows,
    make_job,
    make_log,
    make_run,
    only_row,
    remove,
    save,
)
from tests.support.fake_executor import FakeExecutor
from tests.support.runs import log_answer

pytestmark = pytest.mark.usefixtures("database")
ADMIN = system_actor("test")
UNREACHABLE = "http://127.0.0.1:1/"


@pytest.fixture
def caller() -> Caller:
    return Caller(Gateway(Config.from_env({}, dotenv=None).executor_networks), ("a-token-of-some-length",))


def trigger(job: Job) -> Trigger:
    def work(session: Session) -> Trigger:
        return jobs.trigger_job(
            session, job.id, executor_param="p", address_list=None, actor=ADMIN, now_ms=T0
        ).trigger

    return transact(work)


def find(run_id: str, actor: Actor = ADMIN, right: Right = Right.VIEW) -> FoundRun:
    with read_scope() as session:
        return get_run(session, run_id, actor=actor, right=right)


def shown(run: FoundRun) -> tuple[str, str, int, bool]:
    return run.id, run.state, len(run.rows), run.is_broadcast


def test_a_run_has_the_id_of_its_trigger_until_it_has_a_row() -> None:
    made = trigger(make_job())
    assert shown(find(made.id)) == (made.id, "waiting", 0, False)
    assert find(made.id).due_ms == T0
    (claimed,) = claim_fires().claims
    log_id = str(claimed.log_id)
    record_sent(sent(claimed))
    assert shown(find(made.id)) == shown(find(log_id)) == (log_id, "running", 1, False)
    call_back(claimed.log_id)
    assert shown(find(made.id)) == shown(find(log_id)) == (log_id, "succeeded", 1, False)


def test_a_broadcast_is_one_run_with_shards() -> None:
    made = trigger(make_job(executor_route_strategy="SHARDING_BROADCAST", addresses=f"{FIRST},{SECOND}"))
    claim_fires()
    assert shown(find(made.id)) == (made.id, "waiting", 0, False)
    first, second = all_rows(Fire)
    claim_fires([first])
    assert shown(find(made.id)) == (made.id, "waiting", 1, True)
    call_back(all_rows(JobLog)[0].id)
    assert shown(find(made.id)) == (made.id, "running", 1, True)
    claim_fires([second])
    call_back(all_rows(JobLog)[1].id, 500)
    assert shown(find(made.id)) == (made.id, "failed", 2, True)
    with pytest.raises(Conflict, match="several shards"):
        row_of(find(made.id))


@pytest.mark.parametrize(
    ("states", "is_waiting", "state"),
    [
        ([], True, "waiting"),
        (["waiting", "waiting"], False, "waiting"),
        (["waiting", "running"], False, "running"),
        (["succeeded", "waiting"], False, "running"),
        (["succeeded"], True, "running"),
        (["succeeded", "succeeded"], False, "succeeded"),
        (["succeeded", "timed_out", "failed"], False, "failed"),
        (["succeeded", "killed"], False, "killed"),
        (["not_started", "unresolved", "failed"], False, "unresolved"),
    ],
)
def test_the_state_of_a_broadcast(states: Collection[str], is_waiting: bool, state: str) -> None:
    assert state_of_all(states, is_waiting=is_waiting) == state
    assert set(STATES.values()) - ENDED == {"waiting", "running"}


@pytest.mark.parametrize("run_id", ["", "0", "4711", "x", "-1", "٧", "9" * 19, f"1.1.{'a' * 32}", "1.1.a"])
def test_no_run_has_another_id(run_id: str) -> None:
    with pytest.raises(NotFound):
        find(run_id)


@pytest.mark.parametrize("claimed", [False, True])
def test_runs_need_rights_on_the_group(claimed: bool) -> None:
    job = make_job()
    run_id = trigger(job).id
    if claimed:
        claim_fires()
    stranger = Actor(5, "eve", is_admin=False, rights={job.job_group + 1: ALL_RIGHTS})
    viewer = Actor(6, "ann", is_admin=False, rights={job.job_group: frozenset({Right.VIEW})})
    with pytest.raises(NotFound):
        find(run_id, stranger)
    assert find(run_id, viewer).state == "waiting"
    with pytest.raises(PermissionDenied):
        find(run_id, viewer, Right.OPERATE)


def test_waiting_ends_with_the_run_and_else_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_lookup, "PAUSE_S", 0.01)
    run = make_run(make_job())
    assert wait_for_end(str(run.id), actor=ADMIN, timeout_s=0).state == "running"
    assert wait_for_end(str(run.id), actor=ADMIN, timeout_s=0.03).state == "running"
    ending = threading.Timer(0.1, call_back, [run.id])
    ending.start()
    assert wait_for_end(str(run.id), actor=ADMIN, timeout_s=30).state == "succeeded"
    ending.join()


def test_waiting_ends_when_the_console_stops(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interruptible_wait, "stopping", stopping := threading.Event())
    stopping.set()
    made = trigger(make_job())
    assert wait_for_end(made.id, actor=ADMIN, timeout_s=60).state == "waiting"
    assert list(follow(made.id, 3, actor=ADMIN, caller=caller)) == [End("waiting", False, 3)]


def test_a_log_is_followed_to_the_end_of_its_run(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.services.runs.following.PAUSE_S", 0.0)
    monkeypatch.setattr("app.services.runs.following.HEARTBEAT_S", 0.0)
    with FakeExecutor() as executor:
        made = trigger(make_job(addresses=executor.address))
        events = follow(made.id, 2, actor=ADMIN, caller=caller)
        assert next(events) == Heartbeat(), "it waits for the claim"
        (claimed,) = claim_fires().claims
        record_sent(sent(claimed))
        executor.respond("log", log_answer(2, "two", "<three>"), log_answer(4))
        assert [next(events) for _ in range(3)] == [Line(2, "two"), Line(3, "<three>"), Heartbeat()]
        executor.respond("log", log_answer(4, "four"), log_answer(5))
        call_back(claimed.log_id)
        assert list(events) == [Line(4, "four"), End("succeeded", True, 5)]


def test_the_log_of_a_killed_run_is_followed_while_its_handler_cleans_up(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.services.runs.following.PAUSE_S", 0.0)
    monkeypatch.setattr("app.services.runs.following.HEARTBEAT_S", 0.0)
    with FakeExecutor() as executor:
        job = make_job(addresses=executor.address)
        save(
            Registration(
                registry_group="EXECUTOR",
                registry_key="demo-executor",
                registry_value=executor.address,
                update_time=T0,
                boot_id="b1",
                capabilities="run-state",
            )
        )
        log = {"executor_address": executor.address, "handle_code": 500, "killed": 1}
        run = make_run(job, log=log)
        executor.respond("log", log_answer(1, running=True), log_answer(1, "ended"), log_answer(2))
        events = follow(str(run.id), 1, actor=ADMIN, caller=caller)
        assert list(events) == [Heartbeat(), Line(1, "ended"), End("killed", True, 2)]


def test_a_log_ends_where_its_executor_has_no_text(caller: Caller) -> None:
    """pyxxl and two Go clients name a last line there too: it would be followed for ever."""
    with FakeExecutor() as executor:
        run = make_log(
            make_job(addresses=executor.address), executor_address=executor.address, handle_code=200
        )
        executor.respond("log", log_answer(1, "one"), log_answer(2, ""))
        events = follow(str(run.id), 1, actor=ADMIN, caller=caller)
        assert [next(events), next(events)] == [Line(1, "one"), End("succeeded", True, 2)]


def test_following_a_broadcast_names_its_shards(caller: Caller) -> None:
    made = trigger(make_job(executor_route_strategy="SHARDING_BROADCAST", addresses=f"{FIRST},{SECOND}"))
    claim_fires()
    claim_fires(all_rows(Fire))
    ids = tuple(str(log.id) for log in all_rows(JobLog))
    assert list(follow(made.id, 1, actor=ADMIN, caller=caller)) == [End("waiting", False, 1, ids)]


def test_an_executor_that_is_gone_is_named_once(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.services.runs.following.PAUSE_S", 0.0)
    run = make_run(make_job())
    events: list[Event] = []
    for event in follow(str(run.id), 1, actor=ADMIN, caller=caller):
        events.append(event)
        call_back(run.id, 500)
    assert [type(event) for event in events] == [Trouble, End]
    assert FIRST.rstrip("/") in str(events[0])
    assert events[1] == End("failed", True, 1)


def test_a_run_that_is_deleted_ends_its_events_with_the_reason(caller: Caller) -> None:
    with FakeExecutor() as executor:
        run = make_run(make_job(addresses=executor.address), log={"executor_address": executor.address})
        executor.respond("log", log_answer(1, "one"))
        events = follow(str(run.id), 1, actor=ADMIN, caller=caller)
        assert next(events) == Line(1, "one")
        remove(run)
        assert list(events) == [Trouble("Log id is invalid"), End("running", False, 2)]


def test_a_reader_who_loses_the_right_gets_no_further_line(caller: Caller) -> None:
    with FakeExecutor() as executor:
        run = make_run(make_job(addresses=executor.address), log={"executor_address": executor.address})
        readers = [ADMIN, Actor(7, "ann", is_admin=False)]
        executor.respond("log", log_answer(1, "one"), log_answer(2, "two"))
        events = follow(str(run.id), 1, actor=ADMIN, caller=caller, present=lambda _session: readers.pop(0))
        assert next(events) == Line(1, "one")
        assert list(events) == [Trouble("Log id is invalid"), End("running", False, 2)]


def test_a_stream_has_a_longest_time(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.services.runs.following.FOLLOW_MAX_S", 0.0)
    made = trigger(make_job())
    assert list(follow(made.id, 7, actor=ADMIN, caller=caller)) == [End("waiting", False, 7)]


@pytest.mark.parametrize("end", ["time", "stop"])
def test_a_log_that_always_grows_ends_its_stream_too(
    caller: Caller, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    if end == "stop":
        monkeypatch.setattr("app.runtime.interruptible_wait.stopping", stopping := threading.Event())
        stopping.set()
    else:
        monkeypatch.setattr("app.services.runs.following.FOLLOW_MAX_S", 0.0)
    with FakeExecutor() as executor:
        run = make_run(make_job(addresses=executor.address), log={"executor_address": executor.address})
        executor.respond("log", log_answer(1, "one"), log_answer(2, "two"))
        events = list(follow(str(run.id), 1, actor=ADMIN, caller=caller))
        assert events == [Line(1, "one"), End("running", False, 2)]


def test_a_kill_ends_the_running_shards_and_nothing_that_waits(caller: Caller) -> None:
    with FakeExecutor() as executor:
        job = make_job(executor_route_strategy="SHARDING_BROADCAST", addresses=f"{executor.address},{FIRST}")
        made = trigger(job)
        with pytest.raises(Conflict, match="withdraw it instead"):
            kill_run(made.id, actor=ADMIN, caller=caller, now_ms=T0)
        claim_fires()
        first, second = claim_fires(all_rows(Fire)).claims
        record_sent(sent(first), sent(second))
        call_back(second.log_id)
        kill_run(made.id, actor=ADMIN, caller=caller, now_ms=T0)
        assert [log.killed for log in all_rows(JobLog)] == [1, 0]
        with pytest.raises(Conflict, match="has ended already"):
            kill_run(made.id, actor=ADMIN, caller=caller, now_ms=T0)


def test_a_kill_of_a_broadcast_passes_a_shard_whose_executor_does_not_answer(caller: Caller) -> None:
    with FakeExecutor() as executor, FakeExecutor() as other:
        addresses = (UNREACHABLE, executor.address, other.address)
        job = make_job(executor_route_strategy="SHARDING_BROADCAST", addresses=",".join(addresses))
        made = trigger(job)
        claim_fires()
        record_sent(*(sent(claimed) for claimed in claim_fires(all_rows(Fire)).claims))
        with pytest.raises(ExecutorUnreachable, match=f"^{UNREACHABLE}: .*; runs killed: 2 of 3$"):
            kill_run(made.id, actor=ADMIN, caller=caller, now_ms=T0)
        assert {log.executor_address: log.killed for log in all_rows(JobLog)} == dict(
            zip(addresses, (0, 1, 1), strict=True)
        )


def test_a_run_that_ends_before_its_kill_is_not_killed(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(make_job())
    found_before = run_actions.find_killable(str(run.id), actor=ADMIN)
    call_back(run.id)
    monkeypatch.setattr(run_actions, "find_killable", lambda _run_id, **_options: found_before)
    with pytest.raises(Conflict, match="has ended already"):
        kill_run(str(run.id), actor=ADMIN, caller=caller, now_ms=T0)


def test_a_retry_repeats_the_parameter_and_of_a_shard_its_instance_and_number() -> None:
    job = make_job(executor_param="of the job")
    whole = make_log(job, executor_param="day=1", handle_code=500)
    shard = make_log(job, executor_param="", executor_sharding_param="1/2", handle_code=500)
    for log in (whole, shard):
        made = transact(
            lambda session, log=log: retry_run(session, str(log.id), actor=ADMIN, now_ms=T0).trigger
        )
        assert find(made.id).state == "waiting"
    assert [(fire.executor_param, fire.address_list, fire.sharding_param) for fire in all_rows(Fire)] == [
        ("day=1", None, None),
        ("", FIRST, "1/2"),
    ]
    assert only_row(Fire, executor_param="day=1").job_id == job.id
