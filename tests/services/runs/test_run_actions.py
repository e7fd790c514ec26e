"""Killing several runs: each executor by itself, with one error for those that do not answer."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from app.database.engine import session_scope
from app.domain.access.permissions import system_actor
from app.errors import Conflict, ExecutorUnreachable
from app.executors.gateway import Gateway
from app.executors.permits import Permits
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.services.executors.callers import Caller
from app.services.runs import run_actions
from app.services.runs.run_actions import kill_runs, retry_run
from app.settings.config import Config
from tests.pipeline.steps import call_back, claim_one
from tests.support.factories import T0, all_rows, make_fire, make_job, make_run, only_row
from tests.support.fake_executor import Answer, FakeExecutor
from tests.support.narrowed import changed_column

pytestmark = pytest.mark.usefixtures("database")
UNREACHABLE = [f"http://127.0.0.1:{port}/" for port in (1, 2, 3)]
Kill = Callable[[list[JobLog]], int]


@pytest.fixture
def executors() -> Iterator[list[FakeExecutor]]:
    with ExitStack() as stack:
        yield [stack.enter_context(FakeExecutor()) for _number in range(2)]


@pytest.fixture
def kill() -> Kill:
    gateway = Gateway(Config.from_env({}, dotenv=None).executor_networks)
    caller = Caller(gateway, ("a-token-of-some-length",), Permits(4))
    return lambda runs: kill_runs(runs, actor=system_actor("test"), caller=caller, now_ms=T0)


def runs_at(*addresses: str) -> list[JobLog]:
    job = make_job(addresses=",".join(dict.fromkeys(addresses)))
    return [make_run(job, log={"executor_address": address}) for address in addresses]


def killed() -> list[int]:
    return [log.killed for log in sorted(all_rows(JobLog), key=lambda log: log.id)]


def test_the_error_of_a_single_run_is_that_of_its_executor(kill: Kill) -> None:
    with pytest.raises(ExecutorUnreachable) as raised:
        kill(runs_at(UNREACHABLE[0]))
    assert "runs killed" not in str(raised.value)


def test_one_error_names_all_executors_that_fail(
    kill: Kill, executors: list[FakeExecutor], monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing, executor = executors
    refusing.respond("kill", Answer.json(code=500, msg="not now"))
    runs = runs_at(refusing.address, executor.address, *UNREACHABLE, refusing.address)
    with pytest.raises(ExecutorUnreachable) as raised:
        kill(runs)
    assert str(raised.value) == (
        f"{refusing.address}: not now; also failed: {', '.join(UNREACHABLE)}; runs killed: 1 of 6"
    )
    assert killed() == [0, 1, 0, 0, 0, 0]
    assert len(refusing.requests) == 1, "an executor that fails is not called again"
    monkeypatch.setattr(run_actions, "NAMED", 2)
    with pytest.raises(ExecutorUnreachable, match=f"{UNREACHABLE[1]} and 1 more; runs killed: 0 of 5"):
        kill([run for run in runs if run.executor_address != executor.address])


def test_runs_that_have_just_ended_do_not_hold_up_the_others(
    kill: Kill, executors: list[FakeExecutor]
) -> None:
    first, second = executors
    runs = runs_at(first.address, first.address, second.address)
    call_back(runs[0].id)
    assert kill(runs) == 2
    assert killed() == [0, 1, 1]
    assert kill(runs) == 0


def test_an_executor_that_answers_slowly_holds_up_no_other(kill: Kill, executors: list[FakeExecutor]) -> None:
    slow, quick = executors
    asked = threading.Event()

    class Asked(threading.Event):
        def wait(self, _timeout_s: float | None = None) -> bool:
            asked.set()
            return True

    slow.respond("kill", Answer(wait=asked))
    quick.respond("kill", Answer(wait=Asked()))
    assert kill(runs_at(slow.address, quick.address)) == 2


def test_no_executor_is_called_once_the_time_is_over(
    kill: Kill, executors: list[FakeExecutor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_actions, "KILL_S", -1.0)
    first, second = executors
    with pytest.raises(ExecutorUnreachable) as raised:
        kill(runs_at(first.address, second.address))
    assert str(raised.value) == (
        f"{first.address}: not called, because no time was left; also failed: {second.address};"
        " runs killed: 0 of 2"
    )
    assert first.requests + second.requests == []


@pytest.mark.databases("mariadb", "postgresql")
def test_a_run_whose_parameter_is_cut_in_the_log_is_repeated_with_the_whole_one_or_not_at_all() -> None:
    def repeat() -> str | None:
        with session_scope() as session:
            retry_run(session, str(log.id), actor=system_actor("test"), now_ms=T0)
        return all_rows(Fire)[-1].executor_param

    whole = "p" * 3_000
    with changed_column("xxl_job_info", "executor_param", "text", back="varchar(2048)"):
        job = make_job(executor_param=whole)
        make_fire(job)
        log = only_row(JobLog, id=claim_one().log_id)
        assert log.executor_param != whole
        assert repeat() == whole
        with session_scope() as session:
            session.get_one(Job, job.id).executor_param = "another"
        with pytest.raises(Conflict, match="only the beginning"):
            repeat()
