"""Draining while the dispatcher runs: a drained address gets no new runs; those it has end as usual."""

from collections.abc import Callable

import pytest

from app.clock import now_ms
from app.database.engine import session_scope
from app.domain.access.permissions import system_actor
from app.executors.gateway import Gateway
from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.services.executors import drains
from app.services.executors.callers import Caller
from app.services.runs import logs
from app.settings.config import Config
from tests.pipeline.steps import LOOPBACK, SHORT_TIMEOUT_S, TOKEN, as_due, call_back
from tests.support.eventually import eventually
from tests.support.factories import all_rows, make_job, make_log
from tests.support.fake_executor import Answer, FakeExecutor, Fault
from tests.workers.dispatching import await_states, dispatching, executors, fires_of, group_of
from workers.dispatch import candidates, lanes

ACTOR = system_actor("test")


def change(operation: Callable[..., None], job: Job, member: FakeExecutor) -> None:
    """Drain a member, or undo it, as the console does."""
    with session_scope() as session:
        operation(session, job.job_group, member.address, actor=ACTOR, now_ms=now_ms())


def runs_of(*members: FakeExecutor) -> list[int]:
    return [len(member.requests_for("run")) for member in members]


@pytest.mark.parametrize(
    "route", ["FIRST", "ROUND", "RANDOM", "CONSISTENT_HASH", "LEAST_FREQUENTLY_USED", "FAILOVER", "BUSYOVER"]
)
def test_a_drained_address_gets_nothing_and_the_others_get_all(
    database: str, config: Config, monkeypatch: pytest.MonkeyPatch, route: str
) -> None:
    monkeypatch.setattr(candidates, "PROBE_S", 5.0)  # a slow machine must not fail a candidate
    with executors(3) as members:
        drained, *others = members
        job = make_job(addresses=group_of(*members), executor_route_strategy=route)
        with dispatching(config) as dispatcher:
            dispatcher.offer(as_due(fires_of(job, 12)))
            await_states({"ACCEPTED": 12})
            before = runs_of(drained)
            change(drains.drain, job, drained)
            dispatcher.offer(as_due(fires_of(job, 24)))
            await_states({"ACCEPTED": 36})
            assert runs_of(drained) == before
            assert sum(runs_of(*others)) == 36 - before[0]
            change(drains.undrain, job, drained)
            if route == "FIRST":
                dispatcher.offer(as_due(fires_of(job, 1)))
                await_states({"ACCEPTED": 37})
                assert runs_of(drained) == [before[0] + 1]


def test_runs_of_a_drained_address_are_killed_read_and_ended_as_usual(database: str, config: Config) -> None:
    with executors(2) as (drained, other):
        drained.respond(
            "log",
            Answer.json(content={"fromLineNum": 1, "toLineNum": 1, "logContent": "line one", "isEnd": False}),
        )
        job = make_job(addresses=group_of(drained, other))
        with dispatching(config) as dispatcher:
            dispatcher.offer(as_due(fires_of(job, 2)))
            await_states({"ACCEPTED": 2})
        change(drains.drain, job, drained)
        first, second = all_rows(JobLog)
        caller = Caller(Gateway(LOOPBACK), (TOKEN,))
        assert "line one" in logs.read_log(first.id, 1, actor=ACTOR, caller=caller).log_content
        logs.kill_log(first.id, actor=ACTOR, caller=caller, now_ms=now_ms())
        assert len(drained.requests_for("kill")) == 1
        assert call_back(second.id, 200, "done")
    assert [log.handle_code for log in all_rows(JobLog)] == [500, 200]
    assert all_rows(Fire) == []


def test_runs_waiting_for_a_hanging_executor_move_once_it_is_drained(
    database: str, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "AHEAD_UNKNOWN", 1)
    with executors(2) as (hanging, other):
        hanging.respond("run", Answer(fault=Fault.SILENCE))
        job = make_job(addresses=group_of(hanging, other))
        with dispatching(config, address_inflight_max=2, trigger_timeout_s=SHORT_TIMEOUT_S) as dispatcher:
            dispatcher.offer(as_due(fires_of(job, 20)))
            eventually(lambda: runs_of(hanging) == [2])
            change(drains.drain, job, hanging)
            await_states({"UNKNOWN": 2, "ACCEPTED": 18})
        assert runs_of(hanging, other) == [2, 18]


@pytest.mark.parametrize("moved", [True, False], ids=["drained", "redelivered"])
def test_busy_is_a_refusal_if_the_run_was_not_sent_there_before(
    database: str, config: Config, moved: bool
) -> None:
    """An executor that never had the run is busy with another."""
    with executors(2) as (first, other):
        job = make_job(addresses=group_of(first, other))
        if moved:
            change(drains.drain, job, first)
        for member in (first, other):
            member.respond("run", Answer.json(code=500, msg="block strategy effect：Discard Later"))
        log = make_log(job, executor_address=first.address, trigger_code=0)
        sent_before = {"log_id": log.id, "address": first.address, "attempt": 1, "epoch": 1}
        with dispatching(config) as dispatcher:
            dispatcher.offer(as_due(fires_of(job, **sent_before)))
            await_states({} if moved else {"UNKNOWN": 1})
        assert runs_of(first, other) == ([0, 1] if moved else [1, 0])
    assert [member.trigger_code for member in all_rows(JobLog)] == [500 if moved else 0]


def test_a_candidate_drained_during_long_probing_is_skipped(database: str, config: Config) -> None:
    """Four that hang cost 300 ms each; meanwhile the fifth, which would be chosen, is drained."""
    with executors(6) as (*hanging, drained, spare):
        for member in hanging:
            member.respond("beat", Answer(fault=Fault.SILENCE))
        job = make_job(addresses=group_of(*hanging, drained, spare), executor_route_strategy="FAILOVER")
        with dispatching(config) as dispatcher:
            dispatcher.offer(as_due(fires_of(job)))
            eventually(lambda: hanging[0].requests)
            change(drains.drain, job, drained)
            await_states({"ACCEPTED": 1})
        assert runs_of(drained, spare) == [0, 1]
    (log,) = all_rows(JobLog)
    assert log.executor_address == spare.address


def test_a_run_fails_at_once_with_a_reason_if_all_are_drained(database: str, config: Config) -> None:
    with executors(2) as members:
        job = make_job(addresses=group_of(*members))
        for member in members:
            change(drains.drain, job, member)
        with dispatching(config) as dispatcher:
            dispatcher.offer(as_due(fires_of(job)))
            eventually(lambda: all_rows(JobLog) and all_rows(JobLog)[0].trigger_code == 500)
        assert [member.requests for member in members] == [[], []]
    (log,) = all_rows(JobLog)
    assert "takes new runs: all 2 addresses are drained" in (log.trigger_msg or "")
    assert len(all_rows(Group)[0].addresses) == 2
