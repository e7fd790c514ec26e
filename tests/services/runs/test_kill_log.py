"""Killing a run, against a fake executor.

Source: docs/reference/scheduling.md, section 14.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from app.database.engine import transact
from app.domain.access.permissions import Actor, Right, system_actor
from app.errors import Conflict, ExecutorUnreachable, NotFound, PermissionDenied
from app.executors.gateway import Gateway
from app.models.alarm import Alarm
from app.models.audit import AuditEntry
from app.models.fire import Fire
from app.models.log import JobLog
from app.services.executors.callers import Caller
from app.services.runs import logs
from app.settings.config import Config
from tests.pipeline.steps import call_back, unresolve
from tests.support.factories import T0, all_rows, make_job, make_run, only_row
from tests.support.fake_executor import Answer, FakeExecutor, Fault

ROOT = system_actor("root")


@pytest.fixture
def executor() -> Iterator[FakeExecutor]:
    with FakeExecutor() as running:
        yield running


@pytest.fixture
def kill(database: str) -> Callable[..., str]:
    caller = Caller(Gateway(Config.from_env({}, dotenv=None).executor_networks), ("a-token-of-some-length",))
    return lambda run, actor=ROOT: logs.kill_log(run.id, actor=actor, caller=caller, now_ms=T0 + 60_000)


def run_at(executor: FakeExecutor, log: dict[str, Any] | None = None, **job: Any) -> JobLog:
    return make_run(
        make_job(addresses=executor.address, **job), log={"executor_address": executor.address, **(log or {})}
    )


def test_a_killed_run_has_failed_with_all_consequences(
    executor: FakeExecutor, kill: Callable[..., str]
) -> None:
    executor.respond("kill", Answer.json(msg="done"))
    run = run_at(executor, {"executor_fail_retry_count": 1}, executor_fail_retry_count=1)
    assert kill(run) == "done"
    log = only_row(JobLog)
    assert (log.trigger_code, log.handle_code, log.handle_msg, log.handle_time, log.killed) == (
        200,
        500,
        "killed by root: done",
        T0 + 60_000,
        1,
    )
    assert only_row(Fire).fire_key == f"retry:{run.id}:1"
    assert only_row(Alarm).log_id == run.id
    assert (only_row(AuditEntry).action, only_row(AuditEntry).object_id) == ("log.kill", run.id)
    assert executor.requests[0].json == {"jobId": run.job_id}
    assert not call_back(run.id, 200, "npm says that it succeeded"), (
        "the killed run's own result comes too late"
    )


@pytest.mark.parametrize(
    "answer",
    [
        Answer.json(500, msg="not supported"),
        Answer(status=404),
        Answer(fault=Fault.CLOSE),
        Answer(b"no JSON"),
    ],
)
def test_a_refused_kill_leaves_the_run_unchanged(
    executor: FakeExecutor, kill: Callable[..., str], answer: Answer
) -> None:
    executor.respond("kill", answer)
    run = run_at(executor)
    with pytest.raises(ExecutorUnreachable):
        kill(run)
    assert (only_row(JobLog).handle_code, only_row(JobLog).handle_msg, only_row(JobLog).alarm_status) == (
        0,
        None,
        0,
    )
    assert only_row(Fire).state == "ACCEPTED"
    assert all_rows(AuditEntry) == all_rows(Alarm) == []
    assert call_back(run.id, 200), "it continues and ends by itself"


@pytest.mark.parametrize(("code", "killed", "alarms"), [(200, 0, 0), (500, 1, 1), (502, 0, 1)])
def test_an_earlier_result_stands(
    executor: FakeExecutor, kill: Callable[..., str], code: int, killed: int, alarms: int
) -> None:
    """pyxxl reports the failure of the killed run before it answers the kill."""
    run = run_at(executor)

    class Result:
        def wait(self, _timeout_s: float) -> bool:
            return call_back(run.id, code, "just in time")

    executor.respond("kill", Answer(wait=Result()))
    kill(run)
    log = only_row(JobLog)
    assert (log.handle_code, log.handle_msg, log.killed) == (code, "just in time", killed)
    assert len(all_rows(Alarm)) == alarms


@pytest.mark.parametrize("ended", ["succeeded", "failed", "refused", "unresolved", "not sent"])
def test_no_kill_is_sent_for_a_run_that_is_not_running(
    executor: FakeExecutor, kill: Callable[..., str], ended: str
) -> None:
    run = run_at(executor, {"trigger_code": {"refused": 500, "not sent": 0}.get(ended, 200)})
    if ended in ("succeeded", "failed"):
        call_back(run.id, {"succeeded": 200, "failed": 500}[ended], "a result")
    if ended == "unresolved":
        unresolve(run.id)
    before = only_row(JobLog)
    with pytest.raises(Conflict):
        kill(run)
    after = only_row(JobLog)
    assert (after.trigger_code, after.handle_code, after.handle_msg) == (
        before.trigger_code,
        before.handle_code,
        before.handle_msg,
    )
    assert executor.requests == []


def test_a_kill_needs_the_operate_right_and_the_job(executor: FakeExecutor, kill: Callable[..., str]) -> None:
    run = run_at(executor)
    group_id = only_row(JobLog).job_group
    for rights, refusal in ((frozenset({Right.VIEW}), PermissionDenied), (frozenset(), NotFound)):
        actor = Actor(user_id=9, username="eve", is_admin=False, rights={group_id: rights} if rights else {})
        with pytest.raises(refusal):
            kill(run, actor)
    transact(lambda session: session.query(JobLog).update({"job_id": 4711}))
    with pytest.raises(NotFound):
        kill(run)
    assert executor.requests == []
