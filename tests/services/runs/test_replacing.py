"""Runs that end for a newer one of their job: killed once, again later, and neither retried nor alarmed."""

import threading
from collections.abc import Iterator

import pytest

from app.database.engine import session_scope, transact
from app.domain.enums import KillReason
from app.domain.executors.token_scope import TokenScope
from app.executors.gateway import Gateway
from app.models.alarm import Alarm
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.pipeline.claim import ClaimBatch
from app.pipeline.limits.claim_limited import claim_limited, find_ready
from app.services.executors.callers import Caller
from app.services.runs.callbacks import CallbackStore, StoreResult
from app.services.runs.replacing import AGAIN_S, Replacement
from app.settings.config import Config
from app.store.fires.logs import mark_killed
from executor_client.wire.callbacks import CallbackItem
from tests.pipeline.steps import as_due, call_back, claimer, record_sent, sent
from tests.support.factories import T0, all_rows, make_fire, make_job, only_row, remove
from tests.support.fake_executor import Answer, FakeExecutor

pytestmark = pytest.mark.usefixtures("database")


class Clock:
    """Monotonic clock of a test."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def executor() -> Iterator[FakeExecutor]:
    with FakeExecutor() as fake:
        yield fake


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def replacement(clock: Clock) -> Replacement:
    gateway = Gateway(Config.from_env({}, dotenv=None).executor_networks)
    return Replacement(Caller(gateway, ("a-token-of-some-length",)), monotonic=clock)


def claim(fires: list[Fire]) -> ClaimBatch:
    return transact(lambda session: claim_limited(session, as_due(fires), claimer(), now_ms=T0))


def start(executor: FakeExecutor) -> tuple[Job, int]:
    """Start a run that the next one of its job replaces; return the job and the run's id."""
    job = make_job(
        addresses=executor.address, max_running=1, when_full="replace", executor_fail_retry_count=3
    )
    (run,) = claim([make_fire(job)]).claims
    record_sent(sent(run))
    return job, run.log_id


def test_nothing_is_killed_while_none_waits(executor: FakeExecutor, replacement: Replacement) -> None:
    start(executor)
    replacement.tick(T0)
    assert not executor.requests


def test_the_run_is_killed_and_the_next_one_runs(executor: FakeExecutor, replacement: Replacement) -> None:
    job, log_id = start(executor)
    claim([make_fire(job)])
    assert only_row(Fire, state="WAITING").waits_for.split()[1] == "replacing"
    replacement.tick(T0)
    assert [request.action for request in executor.requests] == ["kill"]
    log = only_row(JobLog, id=log_id)
    assert (log.handle_code, log.killed, log.handle_msg) == (500, 3, "killed by scheduler")
    assert not all_rows(Alarm)
    (fire,) = all_rows(Fire)
    assert fire.state == "WAITING"
    ready = transact(lambda session: claim_limited(session, find_ready(), claimer(), now_ms=T0))
    (run,) = ready.claims
    assert any("until the runs before it were ended" in line for line in run.trace)


def test_a_run_with_a_key_that_its_job_has_no_more_is_replaced(
    executor: FakeExecutor, replacement: Replacement
) -> None:
    job, log_id = start(executor)
    with session_scope() as session:
        session.get_one(Fire, only_row(Fire).id).limit_key = "acme"
    claim([make_fire(job)])
    replacement.tick(T0)
    assert only_row(JobLog, id=log_id).handle_code == 500


def test_the_executor_may_report_before_it_answers(executor: FakeExecutor, replacement: Replacement) -> None:
    job, log_id = start(executor)
    claim([make_fire(job)])
    executor.respond("kill", Answer.json(code=500, msg="not now"))
    replacement.tick(T0)
    assert only_row(JobLog, id=log_id).handle_code == 0
    assert call_back(log_id, 500, "interrupted")
    assert (only_row(JobLog, id=log_id).killed, len(all_rows(Alarm)), len(all_rows(Fire))) == (2, 0, 1)


def test_a_run_that_succeeds_nevertheless_is_a_success(
    executor: FakeExecutor, replacement: Replacement
) -> None:
    job, log_id = start(executor)
    claim([make_fire(job)])
    executor.respond("kill", Answer.json(code=500, msg="not now"))
    replacement.tick(T0)
    assert call_back(log_id)
    assert only_row(JobLog, id=log_id).handle_code == 200


def test_it_is_killed_again_after_a_while(
    executor: FakeExecutor, replacement: Replacement, clock: Clock
) -> None:
    job, _ = start(executor)
    claim([make_fire(job)])
    executor.respond("kill", Answer.json(code=500, msg="not now"))
    for wait_s in (0.0, AGAIN_S - 1, 1.0, 1.0):
        clock.now_s += wait_s
        replacement.tick(T0)
    assert len(executor.requests) == 2


def test_a_success_that_comes_before_the_answer_to_the_kill_does_not_count(
    executor: FakeExecutor, replacement: Replacement
) -> None:
    """npm `xxl-job` reports a killed run as a success before it answers."""
    job, log_id = start(executor)
    claim([make_fire(job)])
    transact(lambda session: mark_killed(session, [log_id], KillReason.REPLACED))
    item = CallbackItem(log_id, 0, 200, "")
    store = CallbackStore()
    answers: list[StoreResult] = []
    reporting = threading.Thread(
        target=lambda: answers.append(store.store((item,), TokenScope(is_global=True)))
    )
    reporting.start()
    reporting.join(0.2)
    assert reporting.is_alive()
    replacement.tick(T0)
    reporting.join()
    store.close()
    assert only_row(JobLog, id=log_id).handle_code == 500
    assert [(answer.ended_count, answer.late, answer.held_items) for answer in answers] == [(0, [], (item,))]


def test_a_success_counts_if_the_kill_is_not_confirmed(executor: FakeExecutor) -> None:
    job, log_id = start(executor)
    transact(lambda session: mark_killed(session, [log_id], KillReason.REPLACED))
    store = CallbackStore()
    answer = store.store((CallbackItem(log_id, 0, 200, ""),), TokenScope(is_global=True))
    store.close()
    assert (answer.ended_count, only_row(JobLog, id=log_id).handle_code) == (1, 200)


def test_a_run_that_is_not_ended_counts_again_once_the_newer_one_is_withdrawn(
    executor: FakeExecutor, replacement: Replacement
) -> None:
    job, log_id = start(executor)
    claim([make_fire(job)])
    executor.respond("kill", Answer.json(code=500, msg="not now"))
    replacement.tick(T0)
    assert only_row(JobLog, id=log_id).killed == 2
    remove(only_row(Fire, state="WAITING"))
    replacement.tick(T0)
    assert call_back(log_id, 500, "failed")
    assert (only_row(JobLog, id=log_id).killed, len(all_rows(Alarm)), only_row(Fire).trigger_type) == (
        0,
        1,
        "RETRY",
    )
