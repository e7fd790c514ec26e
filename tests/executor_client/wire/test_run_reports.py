"""Checkpoints, progress and schemas: between executors and consoles of this project only."""

import os
import signal
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from executor_client import HandlerRegistry, context, job
from executor_client.handlers.schemas import SCHEMAS_MAX, Schemas
from executor_client.wire.lenient_json import dump_json
from executor_client.wire.run_reports import CHECKPOINT_MAX, Progress, checkpoint_text, usable_checkpoint
from tests.executor_client.process import ExecutorProcess
from tests.executor_client.stand_in_admin import StandInAdmin
from tests.support.eventually import eventually
from tests.support.executor_client import FAST, T0, Caller, MakeExecutor
from tests.support.truth_table import truth_table

REPEATING = {"checkpoint": '{"page":3}', "repeats": 1}


@job("reportInChild", process=True)
def report_in_child() -> str:
    """Continue after the checkpoint; the last of many progresses arrives."""
    page = (context.checkpoint or {"page": 0})["page"]
    assert context.save_checkpoint({"page": page + 1})
    for done in range(101):
        context.progress(done, 100, "pages")
    raise SystemExit(1)


def fail_at_page(page: int) -> None:
    context.progress(page, 10, f"page\n{page}")
    assert context.save_checkpoint({"page": page})
    raise ValueError("broken")


@pytest.fixture
def console(admin: StandInAdmin) -> StandInAdmin:
    admin.console = lambda action: "run-state"
    return admin


def last_report(admin: StandInAdmin, log_id: int) -> dict[str, Any]:
    """Return what was reported of a run besides its result, in its last callback."""
    items = [item for body in admin.bodies("callback") for item in body if item["logId"] == log_id]
    return {name: items[-1][name] for name in ("checkpoint", "progress") if items and name in items[-1]}


def reports_of(admin: StandInAdmin, log_id: int) -> dict[str, Any]:
    """Wait for a report; the first callback to a console may be sent again with it."""
    eventually(lambda: last_report(admin, log_id), message=f"no report of {log_id}")
    return last_report(admin, log_id)


def test_a_failed_run_reports_its_checkpoint_and_progress(
    start: MakeExecutor, handlers: HandlerRegistry, console: StandInAdmin
) -> None:
    handlers.job("fails")(lambda: fail_at_page(4))
    handlers.job("succeeds")(lambda: context.save_checkpoint([1]))
    caller = start()
    caller.accepted(1, executorHandler="fails")
    caller.accepted(2, executorHandler="succeeds", jobId=2)
    assert reports_of(console, 1) == {
        "checkpoint": '{"page":4}',
        "progress": '{"done":4,"total":10,"text":"page 4"}',
    }
    eventually(lambda: 2 in console.codes())
    assert last_report(console, 2) == {}, "a success needs no checkpoint"


def test_an_xxl_job_admin_gets_nothing_of_it(
    start: MakeExecutor, handlers: HandlerRegistry, admin: StandInAdmin
) -> None:
    handlers.job("fails")(lambda: fail_at_page(4))
    caller = start()
    caller.accepted(1, executorHandler="fails")
    eventually(lambda: 1 in admin.codes())
    assert last_report(admin, 1) == {}
    assert len(admin.bodies("callback")) == 1
    assert set(caller.log(1)) == {"fromLineNum", "toLineNum", "logContent", "isEnd"}


def test_a_console_that_is_known_by_its_registration_gets_each_result_once(
    start: MakeExecutor, handlers: HandlerRegistry, console: StandInAdmin
) -> None:
    handlers.job("fails")(lambda: fail_at_page(4))
    caller = start()
    eventually(lambda: len(console.bodies("registry")) >= 2)
    caller.accepted(1, executorHandler="fails")
    eventually(lambda: 1 in console.codes())
    caller.accepted(2, executorHandler="fails", jobId=2)
    eventually(lambda: 2 in console.codes())
    assert last_report(console, 1)["checkpoint"] == '{"page":4}'
    assert len(console.bodies("callback")) == 2


def test_a_console_that_is_known_only_by_its_answer_gets_the_report_again(
    start: MakeExecutor, handlers: HandlerRegistry, admin: StandInAdmin
) -> None:
    admin.console = lambda action: "run-state" if action == "callback" else ""
    handlers.job("fails")(lambda: fail_at_page(4))
    start().accepted(1, executorHandler="fails")
    eventually(lambda: len(admin.bodies("callback")) == 2)
    assert reports_of(admin, 1)["checkpoint"] == '{"page":4}'


def test_a_retry_continues_after_the_checkpoint(start: MakeExecutor, handlers: HandlerRegistry) -> None:
    seen: list[Any] = []
    handlers.job("see")(lambda: seen.append(context.checkpoint))
    caller = start()
    caller.accepted(1, executorHandler="see")
    caller.accepted(2, executorHandler="see", **REPEATING)
    caller.accepted(3, executorHandler="see", checkpoint="{broken", repeats=1)
    eventually(lambda: len(seen) == 3)
    assert seen == [None, {"page": 3}, None]


def test_the_journal_knows_the_checkpoint_of_a_run_before_the_console(
    start: MakeExecutor, handlers: HandlerRegistry
) -> None:
    seen: list[Any] = []
    handlers.job("fails")(lambda: seen.append(context.checkpoint) or fail_at_page(7))
    caller = start()
    caller.accepted(1, executorHandler="fails")
    eventually(lambda: not caller.is_busy())
    caller.accepted(2, executorHandler="fails", checkpoint="", repeats=1)
    eventually(lambda: len(seen) == 2)
    assert seen == [None, {"page": 7}]


def test_a_child_process_reports_as_well(
    start: MakeExecutor, handlers: HandlerRegistry, console: StandInAdmin
) -> None:
    handlers.job("reportInChild", process=True)(report_in_child)
    start().accepted(2, executorHandler="reportInChild", **REPEATING)
    assert reports_of(console, 2) == {
        "checkpoint": '{"page":4}',
        "progress": '{"done":100,"total":100,"text":"pages"}',
    }


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_that_a_function_forks_saves_no_checkpoint(
    caller: Caller, handlers: HandlerRegistry, admin: StandInAdmin
) -> None:
    def saves() -> str:
        child = os.fork()
        if child == 0:
            signal.alarm(10)  # ends it if it waits for the journal
            os._exit(5 if context.save_checkpoint("half") else 4)
        return f"exit code {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}"

    handlers.job("saves")(saves)
    caller.accepted(1, executorHandler="saves")
    eventually(lambda: admin.codes() == {1: 200})
    assert admin.message(1) == "exit code 4"


def test_an_abandoned_handler_saves_no_checkpoint(
    caller: Caller, handlers: HandlerRegistry, admin: StandInAdmin
) -> None:
    release = threading.Event()
    saved: list[bool] = []

    def goes_on() -> None:
        saved.append(context.save_checkpoint(1))
        with suppress(BaseException):
            release.wait(30)
        saved.append(context.save_checkpoint(2))

    handlers.job("goes on")(goes_on)
    caller.accepted(1, executorHandler="goes on")
    eventually(lambda: saved)
    caller.post("/kill", {"jobId": 1})
    eventually(lambda: admin.codes() == {1: 500})
    release.set()
    eventually(lambda: len(saved) == 2)
    assert saved == [True, False]


def test_a_restart_loses_no_checkpoint(tmp_path: Path, console: StandInAdmin) -> None:
    process = ExecutorProcess(tmp_path, console.url)
    process.start()
    try:
        process.wait_until_up()
        process.caller.accepted(1, executorHandler="saveAndWait")
        eventually(lambda: process.starts()[1])
        process.kill()
        process.start()
        assert reports_of(console, 1) == {"checkpoint": '"half"'}
    finally:
        process.kill()


def test_progress_is_in_the_log_of_a_running_run_on_request(
    start: MakeExecutor, handlers: HandlerRegistry
) -> None:
    def wait() -> None:
        context.progress(1, 3, "orders")
        context.cancelled.wait(20)

    handlers.job("waits")(wait)
    caller = start()
    caller.accepted(1, executorHandler="waits")
    eventually(lambda: read_log(caller, progress=True).get("progress") is not None)
    assert Progress.parse(read_log(caller, progress=True)["progress"]) == Progress(1, 3, "orders")
    assert "progress" not in read_log(caller)
    caller.post("/kill", {"jobId": 1})
    eventually(lambda: "progress" not in read_log(caller, progress=True))


def test_a_killed_run_is_running_until_its_handler_has_ended(
    start: MakeExecutor, handlers: HandlerRegistry
) -> None:
    noticed, release = threading.Event(), threading.Event()

    def clean_up() -> None:
        context.cancelled.wait(20)
        noticed.set()
        release.wait(20)

    handlers.job("cleansUp")(clean_up)
    caller = start(timing=replace(FAST, cooperative_s=30))
    caller.accepted(1, executorHandler="cleansUp")
    eventually(lambda: read_log(caller, progress=True).get("running"))
    caller.post("/kill", {"jobId": 1})
    noticed.wait(20)
    assert read_log(caller, progress=True)["running"] is True
    assert "running" not in read_log(caller), "for consoles of this project only"
    release.set()
    eventually(lambda: "running" not in read_log(caller, progress=True))
    assert "job execute end" in read_log(caller)["logContent"]


def test_the_last_lines_of_a_log_are_returned_on_request(
    start: MakeExecutor, handlers: HandlerRegistry
) -> None:
    text = "".join(f"line {number}\n" for number in range(100))
    handlers.job("prints")(lambda: sys.stdout.write(text) and None)
    caller = start()
    caller.accepted(1, executorHandler="prints")
    eventually(lambda: "job execute end" in read_log(caller)["logContent"])
    end = read_log(caller, lastLines=3)
    assert end["fromLineNum"] == end["toLineNum"] - 2 >= 100
    assert "line 99\n" in end["logContent"]
    assert "job execute end" in end["logContent"]
    for unusable in (0, -1, "x", None):
        assert read_log(caller, lastLines=unusable)["fromLineNum"] == 1


def read_log(caller: Caller, **more: Any) -> dict[str, Any]:
    return dict(caller.post("/log", {"logId": 1, "logDateTime": T0, "fromLineNum": 1, **more})["content"])


def test_outside_a_run_there_is_nothing_to_report() -> None:
    assert (context.checkpoint, context.save_checkpoint(1), context.progress(1, 2)) == (None, False, False)
    with pytest.raises(AttributeError, match="save_checkpoint"):
        context.checkpoint = 1  # type: ignore[misc]


@truth_table(
    "value, problem",
    [
        (object(), "the checkpoint is not JSON: Object of type object is not JSON serializable"),
        (float("nan"), "the checkpoint is not JSON: Out of range float values"),
        ("ü" * 3_000, f"the checkpoint has 6002 bytes as JSON, at most {CHECKPOINT_MAX} are kept"),
    ],
)
def test_an_unusable_checkpoint_is_refused(value: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        checkpoint_text(value)


@truth_table("sent", [None, 7, "", "{", '"' + "x" * CHECKPOINT_MAX + '"', '"\x00"'])
def test_an_unusable_checkpoint_is_not_read(sent: Any) -> None:
    assert usable_checkpoint(sent) is None


@truth_table(
    "done, total, percent",
    [(0, 10, 0), (3, 10, 30), (999, 1000, 99), (1000, 1000, 100), (11, 10, 100), (-1, 10, 0), (0, 0, 100)],
)
def test_percent_of_a_progress(done: float, total: float, percent: int) -> None:
    assert Progress.of(done, total).percent == percent


@truth_table("sent", [None, "", "[]", "{}", '{"done":"x","total":1}', '{"done":NaN,"total":1}'])
def test_an_unusable_progress_is_not_read(sent: Any) -> None:
    assert Progress.parse(sent) is None


def test_progress_takes_numbers_only() -> None:
    assert Progress.of(Fraction(1, 2), 10**15) == Progress(0.5, 10**15)
    for done in ("3", None, True, float("inf"), float("nan"), 10**16):
        with pytest.raises(ValueError, match=r"progress\(done, total\) takes numbers"):
            Progress.of(done, 10)  # type: ignore[arg-type]


def test_schemas_are_sent_on_request_only(
    start: MakeExecutor, handlers: HandlerRegistry, admin: StandInAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    schemas = {"ok": {"type": "object", "properties": {"day": {"type": "string"}}}}
    monkeypatch.setattr(handlers, "schemas", lambda: schemas)
    digest = Schemas.of(schemas).digest

    def announce(action: str) -> str:
        has_them = any("handlerSchemas" in body for body in admin.bodies("registry"))
        asked = f"schemas={digest}" in admin.headers("registry")["X-Exec-Capabilities"] and not has_them
        return "run-state,send-schemas" if asked else "run-state"

    admin.console = announce
    start()
    eventually(lambda: len(admin.bodies("registry")) >= 6)
    bodies = admin.bodies("registry")
    assert [number for number, body in enumerate(bodies) if "handlerSchemas" in body] == [2]
    assert bodies[2]["handlerSchemas"] == schemas


def test_schemas_are_limited() -> None:
    schemas = {f"handler{number:04}": {"title": "x" * 600} for number in range(200)}
    kept = Schemas.of(schemas)
    assert len(dump_json(kept.by_handler)) <= SCHEMAS_MAX < len(dump_json(schemas))
    assert len(kept.digest) == 16
    assert Schemas.of({}).digest == ""


def test_a_schema_that_is_too_long_takes_the_place_of_no_other() -> None:
    schemas = {"a": {"enum": [f"value-{number}" for number in range(10_000)]}, "b": {"type": "object"}}
    assert Schemas.of(schemas).by_handler == {"b": {"type": "object"}}
