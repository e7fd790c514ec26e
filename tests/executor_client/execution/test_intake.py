"""Intake: block strategies, duplicates, handler changes, kill."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, cast

import pytest

from executor_client import Executor, HandlerRegistry, context
from executor_client.execution.ending_threads import EndingThreads
from executor_client.execution.intake import Intake
from executor_client.execution.job_thread import JobThread, Owner
from executor_client.execution.services import Services
from executor_client.handlers.registry import Handler
from executor_client.wire.protocol import SUCCESS, Reply, RunRequest
from tests.executor_client.stand_in_admin import StandInAdmin
from tests.support.eventually import eventually
from tests.support.executor_client import FAST, T0, Caller, MakeExecutor, run_fields

Result = Callable[[int], tuple[int, str | None]]


class Gate:
    """Handler that waits for ``open`` and records its starts and ends."""

    def __init__(self, handlers: HandlerRegistry, name: str = "gate") -> None:
        self.open = threading.Event()
        self.started: list[int] = []
        self.ended: list[int] = []
        handlers.job(name)(self.handle)

    def handle(self) -> None:
        self.started.append(context.log_id)
        while not self.open.wait(0.01) and not context.cancelled.is_set():
            pass
        self.ended.append(context.log_id)


@pytest.fixture
def gate(handlers: HandlerRegistry) -> Gate:
    return Gate(handlers)


def start_run(caller: Caller, gate: Gate, log_id: int, **changes: Any) -> None:
    caller.accepted(log_id, executorHandler="gate", **changes)
    eventually(lambda: log_id in gate.started, message=f"{log_id} does not start")


def test_serial_runs_one_after_the_other_in_order(caller: Caller, gate: Gate, admin: StandInAdmin) -> None:
    start_run(caller, gate, 1)
    for log_id in (2, 3, 4):
        caller.accepted(log_id, executorHandler="gate")
    assert gate.started == [1]
    gate.open.set()
    eventually(lambda: len(admin.codes()) == 4)
    assert gate.started == gate.ended == [1, 2, 3, 4]


@pytest.mark.parametrize("strategy", ["", "SOMETHING_NEW", None])
def test_an_unknown_strategy_is_serial(caller: Caller, gate: Gate, strategy: str | None) -> None:
    start_run(caller, gate, 1)
    caller.accepted(2, executorHandler="gate", executorBlockStrategy=strategy)
    assert gate.started == [1]


def test_different_jobs_run_at_once(caller: Caller, gate: Gate) -> None:
    start_run(caller, gate, 1, jobId=1)
    start_run(caller, gate, 2, jobId=2)


def test_discard_later_rejects_while_busy(caller: Caller, gate: Gate, result: Result) -> None:
    start_run(caller, gate, 1)
    reply = caller.run(2, executorHandler="gate", executorBlockStrategy="DISCARD_LATER")
    assert (reply["code"], reply["msg"]) == (500, "block strategy effect\uff1aDiscard Later")
    gate.open.set()
    assert result(1) == (200, None)
    caller.accepted(3, executorHandler="gate", executorBlockStrategy="DISCARD_LATER")
    assert result(3) == (200, None)


def test_cover_early_ends_the_running_run_first(caller: Caller, gate: Gate, result: Result) -> None:
    start_run(caller, gate, 1)
    caller.accepted(2, executorHandler="gate")
    start_run(caller, gate, 3, executorBlockStrategy="COVER_EARLY")
    assert gate.ended == [1]
    assert result(1) == (500, "block strategy effect\uff1aCover Early [job running, killed]")
    assert result(2) == (
        500,
        "block strategy effect\uff1aCover Early [job not executed, in the job queue, killed.]",
    )
    gate.open.set()
    assert result(3) == (200, None)
    assert gate.started == [1, 3]


def test_kill_ends_the_running_run_and_drops_the_queue(caller: Caller, gate: Gate, result: Result) -> None:
    start_run(caller, gate, 1)
    caller.accepted(2, executorHandler="gate")
    assert caller.post("/kill", {"jobId": 1}) == {"code": 200, "msg": None, "content": None, "data": None}
    assert result(1) == (500, "scheduling center kill job. [job running, killed]")
    assert result(2) == (500, "scheduling center kill job. [job not executed, in the job queue, killed.]")
    assert caller.post("/kill", {"jobId": 1})["msg"] == "job thread already killed."
    assert caller.log(2)["isEnd"] is True, "a run that never started has no log"


def test_a_run_after_a_kill_starts_at_once(caller: Caller, gate: Gate, result: Result) -> None:
    start_run(caller, gate, 1)
    caller.post("/kill", {"jobId": 1})
    gate.open.set()
    caller.accepted(2, executorHandler="gate")
    assert result(2) == (200, None)


class SlowJournal:
    """Journal whose writes of new runs wait for ``open``."""

    def __init__(self, intake: Intake, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open, self.writing = threading.Event(), threading.Event()
        journal = intake._services.journal
        for name in ("accept", "accept_all"):
            monkeypatch.setattr(journal, name, self._slow(getattr(journal, name)))

    def _slow(self, write: Callable[..., Any]) -> Callable[..., Any]:
        def accept(*args: Any, **more: Any) -> Any:
            self.writing.set()
            assert self.open.wait(30)
            return write(*args, **more)

        return accept


def run_request(log_id: int, **changes: Any) -> RunRequest:
    return RunRequest.from_wire(run_fields(log_id, **changes))


@pytest.fixture
def intake(caller: Caller, executors: list[Executor]) -> Intake:
    engine = executors[0]._engine
    assert engine is not None
    return engine._intake


@pytest.mark.parametrize("together", [True, False])
def test_a_kill_does_not_wait_for_the_write_of_a_trigger(
    caller: Caller,
    gate: Gate,
    result: Result,
    intake: Intake,
    monkeypatch: pytest.MonkeyPatch,
    together: bool,
) -> None:
    start_run(caller, gate, 1)
    journal = SlowJournal(intake, monkeypatch)
    requests = [run_request(2, executorHandler="gate"), run_request(3, executorHandler="gate", jobId=2)]
    trigger = (lambda: intake.run_together(requests)) if together else (lambda: intake.run(requests[0]))
    with ThreadPoolExecutor(1) as pool:
        replies = pool.submit(trigger)
        assert journal.writing.wait(30)
        intake.kill(1)
        assert result(1)[0] == 500
        assert not replies.done()
        journal.open.set()
        assert replies.result() in ([Reply(SUCCESS)] * 2, Reply(SUCCESS))
    eventually(lambda: 2 in gate.started, message="the run of a killed thread does not start in a new one")
    gate.open.set()
    assert result(2)[0] == 200


def test_a_trigger_that_is_written_during_a_stop_starts_after_the_next_start(
    intake: Intake, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = SlowJournal(intake, monkeypatch)
    with ThreadPoolExecutor(1) as pool:
        reply = pool.submit(lambda: intake.run(run_request(1, executorHandler="gate")))
        assert journal.writing.wait(30)
        intake.close()
        journal.open.set()
        assert reply.result() == Reply(SUCCESS)
    intake._services.journal.flush()
    assert intake.run_state(1) == Reply(SUCCESS, None, "queued")
    assert gate.started == []


def test_no_run_overlaps_one_that_is_slow_to_end(
    start: MakeExecutor, handlers: HandlerRegistry, result: Result
) -> None:
    """The run that replaces it starts after its end, even if it is replaced several times."""
    release, events = threading.Event(), []

    def slow() -> None:
        events.append("begin")
        while not release.is_set():
            try:
                release.wait(0.01)
            except BaseException:
                continue
        events.append("end")

    handlers.job("slow")(slow)
    caller = start(timing=replace(FAST, abandon_s=30))
    caller.accepted(1, executorHandler="slow")
    eventually(lambda: events == ["begin"])
    caller.accepted(2, executorHandler="slow", executorBlockStrategy="COVER_EARLY")
    caller.accepted(3, executorHandler="slow", executorBlockStrategy="COVER_EARLY")
    caller.post("/kill", {"jobId": 1})
    caller.accepted(4, executorHandler="slow")
    assert result(3) == (500, "scheduling center kill job. [job not executed, in the job queue, killed.]")
    assert events == ["begin"]
    release.set()
    assert result(4) == (200, None)
    assert events == ["begin", "end"] * 2


@pytest.mark.parametrize("ends_by", ["cover", "kill"])
def test_no_run_overlaps_one_that_began_while_its_job_was_being_ended(
    start: MakeExecutor,
    handlers: HandlerRegistry,
    result: Result,
    monkeypatch: pytest.MonkeyPatch,
    ends_by: str,
) -> None:
    events: list[str] = []
    first, last, overlaps = threading.Event(), threading.Event(), threading.Event()

    def slow() -> None:
        number = context.log_id
        events.append(f"begin {number}")
        if number > 2 and "end 2" not in events:
            overlaps.set()
        while not (first if number == 1 else last).is_set():
            try:
                last.wait(0.01)
            except BaseException:
                continue
        events.append(f"end {number}")

    def stop(self: JobThread, reason: str) -> None:
        """End the first run just before; the second one begins."""
        first.set()
        eventually(lambda: "begin 2" in events)
        original(self, reason)

    original = JobThread.stop
    handlers.job("slow")(slow)
    caller = start(timing=replace(FAST, abandon_s=30))
    for log_id in (1, 2):
        caller.accepted(log_id, executorHandler="slow")
    with monkeypatch.context() as patched:
        patched.setattr(JobThread, "stop", stop)
        if ends_by == "kill":
            caller.post("/kill", {"jobId": 1})
        else:
            caller.accepted(3, executorHandler="slow", executorBlockStrategy="COVER_EARLY")
    caller.accepted(4, executorHandler="slow")
    assert not overlaps.wait(0.2)
    last.set()
    assert result(4) == (200, None)
    later = ["begin 4", "end 4"] if ends_by == "kill" else ["begin 3", "end 3", "begin 4", "end 4"]
    assert events == ["begin 1", "end 1", "begin 2", "end 2", *later]


class Hooks:
    """Hooks of a handler ``hooked``; the first call of the one named ``slow`` lasts until ``release``."""

    def __init__(self, handlers: HandlerRegistry, slow: str) -> None:
        self.events: list[str] = []
        self.release, self.again = threading.Event(), threading.Event()
        self._slow = slow
        handlers.job("hooked", init=lambda: self.call("init"), destroy=lambda: self.call("destroy"))(
            lambda: context.cancelled.wait(10 if context.param else 0) and None
        )

    def call(self, hook: str) -> None:
        """Record begin and end."""
        self.events.append(f"{hook} begins")
        if self.events.count("init begins") == 2:
            self.again.set()
        if hook == self._slow and not self.again.is_set():
            self.release.wait(30)
        self.events.append(f"{hook} ends")


@pytest.mark.parametrize("ends_by", ["cover", "kill", "idleness"])
def test_no_hook_overlaps_those_of_the_thread_before(
    start: MakeExecutor, handlers: HandlerRegistry, result: Result, ends_by: str
) -> None:
    hooks = Hooks(handlers, "destroy")
    idle_limit_s = 0.01 if ends_by == "idleness" else 30
    caller = start(timing=replace(FAST, abandon_s=30, idle_limit_s=idle_limit_s))
    caller.accepted(1, executorHandler="hooked", executorParams="" if ends_by == "idleness" else "wait")
    eventually(lambda: "init ends" in hooks.events)
    if ends_by == "kill":
        caller.post("/kill", {"jobId": 1})
    if ends_by != "cover":
        eventually(lambda: "destroy begins" in hooks.events)
    caller.accepted(2, executorHandler="hooked", executorBlockStrategy="COVER_EARLY")
    eventually(lambda: "destroy begins" in hooks.events)
    assert not hooks.again.wait(0.2)
    hooks.release.set()
    assert result(2) == (200, None)
    # The thread of the second run may be idle, and end, before this line is reached.
    assert hooks.events[:6] == [
        f"{hook} {state}" for hook in ("init", "destroy", "init") for state in ("begins", "ends")
    ]


@pytest.mark.parametrize("hook", ["init", "destroy"])
def test_a_hook_that_does_not_end_delays_the_job_for_a_while_only(
    caller: Caller, handlers: HandlerRegistry, result: Result, hook: str
) -> None:
    hooks = Hooks(handlers, hook)
    caller.accepted(1, executorHandler="hooked")
    eventually(lambda: "init begins" in hooks.events)
    caller.post("/kill", {"jobId": 1})
    eventually(lambda: f"{hook} begins" in hooks.events)
    caller.accepted(2, executorHandler="hooked")
    assert result(2) == (200, None)
    hooks.release.set()


def test_idle_beat_reports_a_busy_job(caller: Caller, gate: Gate, result: Result) -> None:
    assert not caller.is_busy()
    start_run(caller, gate, 1)
    assert caller.post("/idleBeat", {"jobId": 1})["msg"] == "job thread is running or has trigger queue."
    assert not caller.is_busy(2)
    gate.open.set()
    result(1)
    assert not caller.is_busy(), "a job whose result is known is idle"


def test_a_log_id_runs_once(caller: Caller, gate: Gate, result: Result) -> None:
    start_run(caller, gate, 1)
    caller.accepted(2, executorHandler="gate")
    for log_id in (1, 2):
        reply = caller.run(log_id, executorHandler="gate")
        assert reply["code"] == 200
        assert "duplicate" in reply["msg"]
    gate.open.set()
    result(2)
    assert "duplicate" in caller.run(1, executorHandler="gate")["msg"]
    caller.accepted(3, executorHandler="gate")
    result(3)
    assert gate.started == [1, 2, 3]


@pytest.mark.parametrize("strategy", ["DISCARD_LATER", "COVER_EARLY"])
def test_a_repeated_trigger_does_not_affect_its_run(
    caller: Caller, gate: Gate, result: Result, strategy: str
) -> None:
    start_run(caller, gate, 1, executorBlockStrategy=strategy)
    reply = caller.run(1, executorHandler="gate", executorBlockStrategy=strategy)
    assert (reply["code"], "duplicate" in reply["msg"]) == (200, True)
    assert gate.ended == []
    gate.open.set()
    assert result(1) == (200, None)


def test_the_same_log_id_of_another_job_is_another_run(caller: Caller, admin: StandInAdmin) -> None:
    caller.accepted(1)
    eventually(lambda: admin.repeats()[1] == 1)
    assert caller.run(1, jobId=2)["msg"] is None
    eventually(lambda: admin.repeats()[1] == 2)


def test_a_trigger_sent_again_with_another_time_is_the_same_run(
    caller: Caller, gate: Gate, result: Result
) -> None:
    start_run(caller, gate, 1)
    assert "duplicate" in caller.run(1, executorHandler="gate", logDateTime=T0 + 60_000)["msg"]
    gate.open.set()
    assert result(1) == (200, None)
    assert gate.started == [1]


def test_a_repeated_trigger_sends_the_result_again(caller: Caller, admin: StandInAdmin) -> None:
    caller.accepted(1)
    eventually(lambda: admin.repeats()[1] == 1)
    eventually(lambda: "callback finished" in caller.log(1)["logContent"])
    assert "duplicate" in caller.run(1)["msg"]
    eventually(lambda: admin.repeats()[1] == 2)


def test_concurrent_triggers_of_one_log_id_run_once(
    caller: Caller, handlers: HandlerRegistry, admin: StandInAdmin
) -> None:
    started: list[int] = []
    handlers.job("count")(lambda: started.append(context.log_id))
    replies: list[str | None] = []
    callers = [Caller(caller.base) for _ in range(8)]
    threads = [
        threading.Thread(
            target=lambda caller=caller: replies.append(caller.run(9, executorHandler="count")["msg"])
        )
        for caller in callers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    eventually(lambda: admin.codes() == {9: 200})
    assert started == [9]
    assert replies.count(None) == 1


def test_another_handler_replaces_the_thread(caller: Caller, gate: Gate, result: Result) -> None:
    start_run(caller, gate, 1)
    caller.accepted(2, executorHandler="ok")
    assert result(1) == (
        500,
        "change jobhandler or glue type, and terminate the old job thread. [job running, killed]",
    )
    assert result(2) == (200, None)


@pytest.mark.parametrize(
    ("name", "hint"), [("Gates", "Did you mean gate?"), ("nope", "This executor has gate, ok.")]
)
def test_an_unknown_handler_is_rejected_and_keeps_the_thread(
    caller: Caller, gate: Gate, result: Result, name: str, hint: str
) -> None:
    start_run(caller, gate, 1)
    reply = caller.run(2, executorHandler=name)
    assert (reply["code"], reply["msg"]) == (500, f"job handler [{name}] not found. {hint}")
    gate.open.set()
    assert result(1) == (200, None)


def test_an_idle_thread_ends_and_is_recreated(start: MakeExecutor, gate: Gate, result: Result) -> None:
    caller = start(timing=replace(FAST, idle_limit_s=0.05))
    gate.open.set()
    caller.accepted(1, executorHandler="gate", jobId=77)
    result(1)
    eventually(
        lambda: not any(thread.name == "job-77" for thread in threading.enumerate()),
        message="the thread stays",
    )
    assert caller.post("/kill", {"jobId": 77})["msg"] == "job thread already killed."
    caller.accepted(2, executorHandler="gate", jobId=77)
    assert result(2) == (200, None)


def test_a_trigger_never_reaches_an_ending_thread(
    start: MakeExecutor, handlers: HandlerRegistry, admin: StandInAdmin
) -> None:
    caller = start(timing=replace(FAST, idle_limit_s=0.001))
    for log_id in range(1, 101):
        caller.accepted(log_id)
    eventually(lambda: len(admin.codes()) == 100)
    assert set(admin.codes().values()) == {200}


def test_a_thread_that_has_ended_is_no_ending_thread() -> None:
    """As one that is killed between its abandonment and its replacement."""
    ending = EndingThreads()
    owner = Owner(lambda thread: True, lambda thread: None, ending.remove)
    thread = JobThread(7, Handler("ok", lambda: None), cast(Services, None), owner)
    ending.add(thread)
    assert ending.last_of(7) is thread
    thread._end()
    ending.add(thread)
    assert ending.last_of(7) is None
    assert ending.all() == []


@pytest.mark.parametrize(
    ("glue_type", "text"),
    [
        ("GLUE_GROOVY", "glueType[GLUE_GROOVY] is not valid."),
        ("GLUE_COBOL", "glueType[GLUE_COBOL] is not valid."),
        ("", "glueType[] is not valid."),
        ("GLUE_SHELL", "fail, current glue type [GLUE(Shell)] not supported."),
    ],
)
def test_unsupported_glue_types_are_rejected(caller: Caller, glue_type: str, text: str) -> None:
    reply = caller.run(1, glueType=glue_type, glueSource="echo")
    assert reply["code"] == 500
    assert reply["msg"].startswith(text)
