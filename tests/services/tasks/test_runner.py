"""Task runner: nothing is lost or done twice after a kill; cancel and failures between pieces."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from unittest.mock import Mock

import pytest
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, OperationalError
from sqlalchemy.orm import Session

from app.database.engine import transact
from app.domain.access.permissions import Actor
from app.domain.tasks import ResultLine, Step, TaskKind
from app.errors import PermissionDenied
from app.models.audit import AuditEntry
from app.models.task import Task
from app.runtime.wake_up import TASKS, send_wake_up
from app.services.jobs import bulk
from app.services.tasks import task_step as turns
from app.services.tasks.runner import CLAIMS_MAX, TaskRunner
from app.services.tasks.task_step import LEASE_MS, Turn
from app.services.tasks.tasks import TaskDraft
from app.settings.config import Config
from app.store.nodes import tasks
from tests.support.factories import T0, all_rows, make_job, only_row
from tests.support.plan import every_database
from tests.support.tasks import Clock, add_user, fired, one_piece_each, outcomes, run_jobs, stored, submit

#: leases, locks and lost commits differ between databases
pytestmark = [every_database, pytest.mark.usefixtures("database")]

MakeRunner = Callable[..., TaskRunner]


def test_a_task_is_done_piece_by_piece_and_audited_as_its_user(make_runner: MakeRunner) -> None:
    jobs = [make_job() for _ in range(3)]
    task_id = submit(run_jobs(*jobs), add_user())
    make_runner().tick(T0)
    task = stored(task_id)
    assert (task.state, task.done, task.total, task.started_ms, task.finished_ms) == ("DONE", 3, 3, T0, T0)
    assert fired() == [job.id for job in jobs]
    assert outcomes(task_id) == [(job.id, "done", None) for job in jobs]
    entries = all_rows(AuditEntry)
    assert {(entry.username, entry.address, entry.action) for entry in entries} == {
        ("ann", "10.1.2.3", "job.trigger")
    }


def test_the_same_form_makes_one_task_and_another_form_another(make_runner: MakeRunner) -> None:
    job, actor = make_job(), add_user()
    first = submit(run_jobs(job), actor)
    assert submit(run_jobs(job), actor) == first
    assert submit(run_jobs(job, key="other"), actor) != first
    assert submit(run_jobs(job), add_user("bob")) != first
    make_runner().tick(T0)
    assert fired() == [job.id] * 3


def test_a_killed_runner_loses_nothing_and_repeats_nothing(
    make_runner: MakeRunner, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [make_job() for _ in range(4)]
    task_id = submit(run_jobs(*jobs), add_user())
    with monkeypatch.context() as short:
        one_piece_each(short)
        make_runner().tick(T0)  # and is never heard of again
    assert (stored(task_id).state, stored(task_id).done) == ("RUNNING", 1)
    second = make_runner("two")
    second.tick(T0)
    assert stored(task_id).done == 1, "the lease of the first one still holds"
    clock.now_ms += LEASE_MS + 1
    second.tick(clock.now_ms)
    assert (stored(task_id).state, stored(task_id).owner) == ("DONE", "two")
    assert fired() == [job.id for job in jobs]


def test_a_restarted_node_goes_on_at_once(make_runner: MakeRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [make_job() for _ in range(3)]
    task_id = submit(run_jobs(*jobs), add_user())
    with monkeypatch.context() as short:
        one_piece_each(short)
        killed = make_runner()
        killed.tick(T0)
    make_runner().tick(T0)
    killed.tick(T0)  # it lives after all
    assert (stored(task_id).state, stored(task_id).epoch) == ("DONE", 2)
    assert fired() == [job.id for job in jobs]


def test_an_owner_that_was_only_slow_stores_nothing_after_a_take_over(
    make_runner: MakeRunner, clock: Clock
) -> None:
    job, other = make_job(), make_job()
    task_id = submit(run_jobs(job, other), add_user())
    slow_turns = list[Turn]()

    def stall(turn: Turn) -> None:
        slow_turns.append(turn)
        raise OperationalError("SELECT", {}, Exception(1, "away"))

    with pytest.raises(OperationalError):
        make_runner(pieces={TaskKind.BULK.value: stall}).tick(T0)
    clock.now_ms += LEASE_MS + 1
    make_runner("two").tick(clock.now_ms)
    with pytest.raises(turns.TaskLost):
        bulk.change_next(slow_turns[0])
    assert stored(task_id).owner == "two"
    assert fired() == [job.id, other.id]


def test_a_piece_and_its_progress_are_stored_together_or_not_at_all(make_runner: MakeRunner) -> None:
    job = make_job()
    task_id = submit(run_jobs(job), add_user())

    def lose_connection(turn: Turn) -> None:
        def work(session: Session, task: Task, actor: Actor) -> Step:
            bulk._change(
                session, bulk.read_params(task), job.id, actor=actor, clock=turn.clock, logical_ms=T0
            )
            raise OperationalError("COMMIT", {}, Exception(2013, "lost"))

        turn.commit(work)

    with pytest.raises(OperationalError):
        make_runner(pieces={TaskKind.BULK.value: lose_connection}).tick(T0)
    assert (fired(), stored(task_id).done) == ([], 0)
    make_runner().tick(T0)
    assert (fired(), stored(task_id).done) == ([job.id], 1)


def test_a_commit_whose_answer_was_lost_is_not_done_again(make_runner: MakeRunner, clock: Clock) -> None:
    jobs = [make_job() for _ in range(2)]
    task_id = submit(run_jobs(*jobs), add_user())

    def lose_answer(turn: Turn) -> None:
        before = turn.task
        bulk.change_next(Turn(before, clock=turn.clock))
        raise OperationalError("COMMIT", {}, Exception(2013, "lost"))

    runner = make_runner(pieces={TaskKind.BULK.value: lose_answer})
    with pytest.raises(OperationalError):
        runner.tick(T0)
    runner._pieces = {TaskKind.BULK.value: bulk.change_next}
    runner.tick(T0)
    assert fired() == [jobs[0].id], "its own view of the task is out of date"
    clock.now_ms += LEASE_MS + 1
    runner.tick(clock.now_ms)
    assert stored(task_id).state == "DONE"
    assert fired() == [job.id for job in jobs]


def test_a_cancelled_task_stops_after_the_piece_in_progress(
    make_runner: MakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [make_job() for _ in range(3)]
    task_id = submit(run_jobs(*jobs), add_user())
    one_piece_each(monkeypatch)
    runner = make_runner()
    runner.tick(T0)
    assert transact(lambda session: tasks.cancel_task(session, task_id, now_ms=T0 + 1))
    runner.tick(T0)
    runner.tick(T0)
    assert (stored(task_id).state, fired()) == ("CANCELLED", [jobs[0].id])


def test_an_error_ends_the_task_and_no_other(
    make_runner: MakeRunner, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(turn: Turn) -> None:
        text = json.loads(turn.task.parameters)["text"]
        raise PermissionDenied("not yours") if text == "own" else KeyError("x")

    actor, job = add_user(), make_job()
    own, unexpected = (
        submit(TaskDraft(TaskKind.IMPORT, {"text": text}, 1, "k"), actor) for text in ("own", "other")
    )
    good = submit(run_jobs(job), add_user("bob"))
    pieces = {TaskKind.IMPORT.value: fail, TaskKind.BULK.value: bulk.change_next}
    make_runner(pieces=pieces).tick(T0)
    assert [stored(task_id).state for task_id in (own, unexpected, good)] == ["FAILED", "FAILED", "DONE"]
    assert stored(own).error == '"not yours"'
    assert "Unexpected error" in (stored(unexpected).error or "")
    assert f"task piece failed task_id={unexpected}" in caplog.text


def test_a_database_that_is_away_costs_time_and_no_task(make_runner: MakeRunner) -> None:
    calls = list[int]()

    def flaky(turn: Turn) -> None:
        calls.append(turn.task.id)
        if len(calls) < 7:
            raise OperationalError("SELECT", {}, Exception(2006, "away"))
        turn.commit(lambda _s, _t, _a: Step(advance=1, is_done=True))

    task_id = submit(TaskDraft(TaskKind.IMPORT, {}, 1, "k"), add_user())
    runner = make_runner(pieces={TaskKind.IMPORT.value: flaky})
    for _ in range(6):
        with pytest.raises(OperationalError):
            runner.tick(T0)
    runner.tick(T0)
    assert (stored(task_id).state, len(calls)) == ("DONE", 7)


def test_a_piece_that_is_always_refused_ends_its_task(make_runner: MakeRunner) -> None:
    def refused(_turn: Turn) -> None:
        raise DataError("INSERT", {}, Exception(1406, "too long"))

    task_id = submit(TaskDraft(TaskKind.IMPORT, {}, 1, "k"), add_user())
    runner = make_runner(pieces={TaskKind.IMPORT.value: refused})
    for _ in range(2):
        with pytest.raises(DataError):
            runner.tick(T0)
    runner.tick(T0)
    assert stored(task_id).state == "FAILED"
    assert "The database rejected" in (stored(task_id).error or "")


@pytest.mark.parametrize("is_away", [True, False])
def test_a_job_is_refused_for_its_data_and_never_because_the_database_is_away(
    make_runner: MakeRunner, monkeypatch: pytest.MonkeyPatch, is_away: bool
) -> None:
    away: DBAPIError = OperationalError("INSERT", {}, Exception(2006, "away"))
    if not is_away:
        away = IntegrityError("INSERT", {}, Exception(1062, "duplicate"))
    job = make_job()
    task_id, runner = submit(run_jobs(job), add_user()), make_runner()
    with monkeypatch.context() as broken:
        broken.setattr("app.services.jobs.jobs.trigger_job", Mock(side_effect=away))
        with pytest.raises(OperationalError) if is_away else nullcontext():
            runner.tick(T0)
    runner.tick(T0)
    assert [outcome for _id, outcome, _detail in outcomes(task_id)] == ["done" if is_away else "refused"]
    assert fired() == ([job.id] if is_away else [])


def test_a_short_task_does_not_wait_for_a_long_one(
    make_runner: MakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_piece_each(monkeypatch)
    actor = add_user()
    long = submit(run_jobs(*(make_job() for _ in range(20))), actor)
    runner = make_runner()
    runner.tick(T0)
    short = submit(run_jobs(make_job(), key="short"), actor)
    runner.tick(T0)
    assert (stored(long).done, stored(short).state) == (2, "DONE")


def test_long_tasks_of_one_user_leave_places_to_others(
    make_runner: MakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_piece_each(monkeypatch)
    ann, bob = add_user(), add_user("bob")
    long = [submit(run_jobs(make_job(), make_job(), key=str(number)), ann) for number in range(5)]
    short = submit(run_jobs(make_job()), bob)
    runner = make_runner()
    runner.tick(T0)
    assert stored(short).state == "DONE"
    assert [stored(task_id).done for task_id in long] == [1, 1, 0, 0, 0]
    for _ in range(5):
        runner.tick(T0)
    assert {stored(task_id).state for task_id in long} == {"DONE"}


def test_an_error_in_one_turn_leaves_the_others_theirs(make_runner: MakeRunner) -> None:
    def fail_first(turn: Turn) -> None:
        if turn.task.id == first:
            raise OperationalError("SELECT", {}, Exception(1205, "locked"))
        bulk.change_next(turn)

    first, second = submit(run_jobs(make_job()), add_user()), submit(run_jobs(make_job()), add_user("bob"))
    with pytest.raises(OperationalError):
        make_runner(pieces={TaskKind.BULK.value: fail_first}).tick(T0)
    assert (stored(first).state, stored(second).state) == ("RUNNING", "DONE")


def test_a_task_of_a_newer_version_is_left_to_it(make_runner: MakeRunner) -> None:
    task_id = submit(run_jobs(make_job()), add_user())
    make_runner(pieces={}).tick(T0)
    assert stored(task_id).state == "PENDING"
    make_runner().tick(T0)
    assert stored(task_id).state == "DONE"


def test_a_signal_ends_the_wait_for_work(
    make_runner: MakeRunner, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner, job, actor = make_runner(), make_job(), add_user()
    runner.tick(T0)
    with monkeypatch.context() as patient:
        patient.setattr("app.services.tasks.runner.IDLE_S", 60)
        waiting = threading.Thread(target=lambda: runner.tick(T0))
        waiting.start()
        submit(run_jobs(job), actor)
        send_wake_up(config.home, TASKS)
        waiting.join(10)
        assert not waiting.is_alive()
    runner.tick(T0)
    assert fired() == [job.id]


KILLED = """
import os, signal, sys
from pathlib import Path
from app.settings.config import Config
from app.database.engine import bind_engine
from app.services.jobs import bulk
from app.services.tasks.runner import TaskRunner

left = [int(sys.argv[3])]

def change_or_die(turn):
    if left[0] == 0:
        write = bulk._change
        def dying(*given, **named):
            write(*given, **named)
            os.kill(os.getpid(), signal.SIGKILL)
        bulk._change = dying
    left[0] -= 1
    bulk.change_next(turn)

config = Config(home=Path(sys.argv[2]), database_url=sys.argv[1], time_zone="Asia/Shanghai")
bind_engine(config)
runner = TaskRunner(config, node="killed", pieces={"bulk": change_or_die})
while True:
    runner.tick(0)
"""


def test_a_process_killed_inside_a_piece_loses_that_piece_only(
    make_runner: MakeRunner, config: Config, clock: Clock
) -> None:
    jobs = [make_job() for _ in range(5)]
    task_id = submit(run_jobs(*jobs), add_user())
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, config.database_url, str(config.home), "2"],
        check=False,
        timeout=60,
        env=os.environ,
    )
    assert killed.returncode == -signal.SIGKILL
    task = stored(task_id)
    assert (task.state, task.done, task.owner) == ("RUNNING", 2, "killed")
    clock.now_ms = task.lease_until + 1
    make_runner("two").tick(clock.now_ms)
    assert (stored(task_id).state, fired()) == ("DONE", [job.id for job in jobs])
    assert len(outcomes(task_id)) == 5


def test_a_task_that_ends_its_process_is_not_begun_without_end(make_runner: MakeRunner, clock: Clock) -> None:
    begun = list[int]()

    def die(turn: Turn) -> None:
        begun.append(turn.task.epoch)
        raise SystemExit

    task_id = submit(TaskDraft(TaskKind.IMPORT, {"text": "x"}, 1, "k"), add_user())
    innocent = submit(run_jobs(make_job()), add_user("bob"))
    pieces = {TaskKind.IMPORT.value: die, TaskKind.BULK.value: bulk.change_next}
    for number in range(CLAIMS_MAX):
        with pytest.raises(SystemExit):
            make_runner(f"node {number}", pieces=pieces).tick(clock.now_ms)
        clock.now_ms += LEASE_MS + 1
    make_runner("last", pieces=pieces).tick(clock.now_ms)
    assert stored(innocent).state == "DONE"
    task = stored(task_id)
    assert (task.state, begun) == ("FAILED", [1, 2, 3, 4, 5])
    assert "The workers ended several times while doing this task" in (task.error or "")


def test_progress_ends_the_count_of_claims(
    make_runner: MakeRunner, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [make_job() for _ in range(CLAIMS_MAX + 2)]
    task_id = submit(run_jobs(*jobs), add_user())
    one_piece_each(monkeypatch)
    for number in range(len(jobs)):
        make_runner(f"node {number}").tick(clock.now_ms)
        clock.now_ms += LEASE_MS + 1
    assert (stored(task_id).state, stored(task_id).claims) == ("DONE", 0)
    assert fired() == [job.id for job in jobs]


def test_result_lines_keep_long_names(make_runner: MakeRunner) -> None:
    def piece(turn: Turn) -> None:
        line = ResultLine(0, "done", 1, "x" * 999, {"a": 1})
        turn.commit(lambda _s, _t, _a: Step(advance=3, lines=[line], is_done=True))

    task_id = submit(TaskDraft(TaskKind.IMPORT, {}, 1, "k"), add_user())
    make_runner(pieces={TaskKind.IMPORT.value: piece}).tick(T0)
    assert (only_row(Task).total, outcomes(task_id)) == (3, [(1, "done", '{"a":1}')])
