"""Capture: what handlers print, log and warn is in the logs of their runs, and nowhere else."""

import asyncio
import contextlib
import io
import logging
import multiprocessing
import os
import re
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
from typing import Any

import pytest

from executor_client import HandlerRegistry, context
from executor_client.capture.capture import capturing
from executor_client.logs.lines import TEXT_MAX, LineBuffer
from executor_client.runs.context import current_run
from executor_client.testing import run_handler
from tests.support.executor_client import Caller, MakeExecutor
from tests.support.truth_table import truth_table

Result = Callable[[int], tuple[int, str | None]]


def texts(handler: Callable[[], Any]) -> list[str]:
    """Run a handler; return the lines of its log without time and place."""
    log = run_handler(handler).log
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ", line) for line in log.splitlines()), log
    return [line[20:].rpartition("] ")[2] for line in log.splitlines()]


def print_all() -> None:
    print("one", 2)  # noqa: T201
    print("first\nsecond")  # noqa: T201
    print("to stderr", file=sys.stderr)  # noqa: T201
    sys.stdout.writelines(["wri", "tten\n"])
    sys.stdout.buffer.write("bytes é\n".encode())
    sys.stdout.write("10%\r50%\r100%\r\n")
    sys.stdout.write("unfinished")


def test_printed_text_is_in_the_log_by_lines(capsys: pytest.CaptureFixture[str]) -> None:
    expected = ["one 2", "first", "second", "to stderr", "written", "bytes é", "100%", "unfinished"]
    assert texts(print_all) == expected
    assert capsys.readouterr() == ("", "")


def test_bytes_are_decoded_across_pieces() -> None:
    def write_bytes() -> None:
        data = "中文 é\n".encode()
        for byte in data:
            sys.stdout.buffer.write(bytes([byte]))
        sys.stdout.buffer.write(b"\xff\n\xe4")

    assert texts(write_bytes) == ["中文 é", "\ufffd", "\ufffd"]


def test_text_outside_a_run_passes_through(capsys: pytest.CaptureFixture[str]) -> None:
    with capturing():
        print("outside")  # noqa: T201
        sys.stdout.buffer.write(b"bytes\n")
        assert sys.stdout.encoding.lower() == "utf-8"
    assert capsys.readouterr().out == "outside\nbytes\n"


def test_a_stream_set_later_is_captured_too() -> None:
    with capturing():
        later = io.StringIO()
        with contextlib.redirect_stdout(later):
            assert texts(lambda: print("run")) == ["run"]  # noqa: T201
            print("outside")  # noqa: T201
    assert later.getvalue() == "outside\n"


def test_a_handler_can_redirect_its_output() -> None:
    def handler() -> str:
        with contextlib.redirect_stdout(io.StringIO()) as buffer:
            print("kept")  # noqa: T201
        return buffer.getvalue()

    result = run_handler(handler)
    assert (result.msg, result.log) == ("kept\n", "")


def test_bytes_are_refused_as_by_any_text_stream() -> None:
    assert isinstance(run_handler(lambda: sys.stdout.write(b"x")).error, TypeError)  # type: ignore[arg-type]


def test_everything_is_restored_at_the_end() -> None:
    def state() -> tuple[Any, ...]:
        patched = (threading.Thread.start, ThreadPoolExecutor.submit, ThreadPool.imap)
        return sys.stdout, sys.stderr, *patched, logging.Logger.isEnabledFor, logging.Logger.callHandlers

    before = state()
    with capturing():
        inside = state()
        with capturing():
            assert state() == inside
        assert state() == inside
    assert state() == before
    assert not set(map(id, before)) & set(map(id, inside))


class Recorder(logging.Handler):
    """Logging handler of the program."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())
        print("written by a handler of the program", file=sys.stderr)  # noqa: T201


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """Handler of the root logger and of ``aside``, which does not propagate; both at their default levels."""
    recorder, root, aside = Recorder(), logging.getLogger(), logging.getLogger("aside")
    level, handlers = root.level, root.handlers[:]
    root.setLevel(logging.WARNING)
    root.handlers[:] = [recorder]
    aside.addHandler(recorder)
    aside.propagate = False
    yield recorder
    root.setLevel(level)
    root.handlers[:] = handlers
    aside.removeHandler(recorder)
    aside.propagate = True


@pytest.mark.parametrize("name", ["myapp.orders", "aside", "root"])
def test_records_from_info_on_are_in_the_log_whatever_the_root_level(
    recorder: Recorder, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    def handler() -> None:
        logger = logging.getLogger(name)
        logger.debug("debugged")
        logger.info("informed %s", 5)
        logger.warning("warned")

    assert texts(handler) == ["INFO informed 5", "WARNING warned"]
    assert recorder.texts == ["warned"], "the program's handlers get what they always got"
    assert capsys.readouterr().err == "written by a handler of the program\n"


def test_a_level_of_its_own_is_respected(recorder: Recorder) -> None:
    noisy = logging.getLogger("noisy")
    noisy.setLevel(logging.ERROR)
    assert texts(lambda: logging.getLogger("noisy.part").info("chatter")) == []
    noisy.setLevel(logging.DEBUG)
    assert texts(lambda: logging.getLogger("noisy.part").debug("detail")) == ["DEBUG detail"]
    noisy.setLevel(logging.NOTSET)
    assert recorder.texts == ["detail"]


def test_records_outside_a_run_are_left_alone(recorder: Recorder) -> None:
    with capturing():
        logging.getLogger("myapp").info("informed")
        logging.getLogger("myapp").warning("warned")
    assert recorder.texts == ["warned"]


def test_a_record_that_cannot_be_formatted_is_logged_raw(recorder: Recorder) -> None:
    assert texts(lambda: logging.getLogger("myapp").info("%d rows", "x")) == ["INFO %d rows ('x',)"]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions have notes since Python 3.11")
def test_a_traceback_has_causes_and_notes() -> None:
    def handler() -> None:
        try:
            raise KeyError("day")
        except KeyError as exc:
            error = ValueError("no day")
            error.add_note("in row 7")
            raise error from exc

    log = run_handler(handler).log
    expected = ["KeyError: 'day'", "direct cause of the following", "ValueError: no day", "in row 7"]
    assert [log.find(text) for text in expected] == sorted(log.find(text) for text in expected)
    assert all(text in log for text in expected)


class TestThreads:
    """Threads and tasks of a handler belong to its run."""

    pool = ThreadPoolExecutor(1)

    def say(self, text: str) -> None:
        print(text, current_run() is not None)  # noqa: T201

    def in_thread(self) -> None:
        thread = threading.Thread(target=self.say, args=("thread",))
        thread.start()
        thread.join()

    def in_timer(self) -> None:
        timer = threading.Timer(0, self.say, ("timer",))
        timer.start()
        timer.join()

    def in_pool(self) -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(self.say, ["pool"]))

    def in_shared_pool(self) -> None:
        self.pool.submit(self.say, "shared").result()

    def in_thread_pool(self) -> None:
        with ThreadPool(1) as pool:
            pool.apply(self.say, ["apply"])
            pool.map(self.say, ["map"])
            list(pool.imap(self.say, ["imap"]))
            list(pool.imap_unordered(self.say, ["unordered"]))

    async def in_tasks(self) -> None:
        await asyncio.create_task(asyncio.to_thread(self.say, "task"))
        await asyncio.get_running_loop().run_in_executor(None, self.say, "executor")

    @pytest.mark.parametrize(
        ("method", "expected"),
        [
            ("in_thread", ["thread True"]),
            ("in_timer", ["timer True"]),
            ("in_pool", ["pool True"]),
            ("in_shared_pool", ["shared True"]),
            ("in_thread_pool", ["apply True", "map True", "imap True", "unordered True"]),
            ("in_tasks", ["task True", "executor True"]),
        ],
    )
    def test_what_they_print_is_in_the_log(self, method: str, expected: list[str]) -> None:
        assert texts(getattr(self, method)) == expected

    def test_a_thread_of_a_shared_pool_belongs_to_no_run(self) -> None:
        with capturing(), ThreadPoolExecutor(1) as pool:
            run_handler(lambda: pool.submit(current_run).result())
            assert pool.submit(current_run).result() is None

    def test_tasks_of_a_shared_thread_pool_belong_to_the_run_of_their_caller(self) -> None:
        pools: list[ThreadPool] = []

        def param_in_pool() -> str:
            if not pools:
                pools.append(ThreadPool(1))
            return str(pools[0].starmap(lambda: context.param, [()]))

        with capturing():
            assert [run_handler(param_in_pool, param).msg for param in ("a", "b")] == ["['a']", "['b']"]
            with pools[0] as pool:
                assert pool.starmap(lambda: context.param, [()]) == [None]

    def test_a_thread_that_outlives_its_run_belongs_to_none(self) -> None:
        ended, seen = threading.Event(), []

        def stay() -> None:
            ended.wait(30)
            seen.extend([current_run(), context.param, context.log_id, context.cancelled.is_set()])

        thread = threading.Thread(target=stay)
        with capturing():
            run_handler(thread.start, "a", cancelled=True)
            ended.set()
            thread.join()
        assert seen == [None, None, -1, True], "it still learns that it has to end"

    def test_a_thread_that_outlives_its_run_cannot_write_into_its_log(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        ended, logged = threading.Event(), []

        def stay() -> None:
            ended.wait(30)
            logged.append(context.log("late"))
            print("late")  # noqa: T201

        thread = threading.Thread(target=stay)
        with capturing():
            result = run_handler(thread.start)
            ended.set()
            thread.join()
        assert (result.log, logged, capsys.readouterr().out) == ("", [False], "late\n")


def test_runs_at_the_same_time_do_not_mix(caller: Caller, handlers: HandlerRegistry, result: Result) -> None:
    barrier = threading.Barrier(2)

    def handler() -> None:
        for number in range(50):
            barrier.wait(30)
            print("line", number, "of", context.log_id)  # noqa: T201

    handlers.job("h")(handler)
    for log_id in (1, 2):
        caller.accepted(log_id, executorHandler="h", jobId=log_id)
    for log_id in (1, 2):
        assert result(log_id)[0] == 200
        lines = [line for line in caller.log(log_id)["logContent"].splitlines() if " line " in line]
        assert [line[20:] for line in lines] == [f"line {number} of {log_id}" for number in range(50)]


def forks() -> None:
    child = os.fork()
    print("in the child" if child == 0 else "in the parent")  # noqa: T201
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_log_begins_once_though_its_handler_forks(
    caller: Caller, handlers: HandlerRegistry, result: Result
) -> None:
    """As with multiprocessing: what the processes print is in the log, in whatever order."""
    handlers.job("h")(forks)
    caller.accepted(1, executorHandler="h")
    assert result(1) == (200, None)
    first, *lines = caller.log(1)["logContent"].splitlines()
    assert "job execute start" in first
    assert not [line for line in lines if "job execute start" in line]
    assert {line[20:] for line in lines} >= {"in the child", "in the parent"}


FORKING = multiprocessing.get_context("fork")


def exit_code_of_forked(function: Callable[[], Any]) -> int | None:
    """Call a function in a forked process; return the exit code, negative if it had to be killed."""
    process = FORKING.Process(target=function)
    process.start()
    process.join(10)
    process.kill()
    process.join()
    return process.exitcode


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_writes_though_a_thread_was_writing_at_the_fork(
    caller: Caller, handlers: HandlerRegistry, result: Result
) -> None:
    held, release = threading.Event(), threading.Event()

    def write(output: LineBuffer) -> None:
        with output._lock:
            held.set()
            release.wait(30)

    def handler() -> int | None:
        threading.Thread(target=write, args=(current_run()._output,)).start()  # type: ignore[union-attr]
        held.wait(30)
        try:
            return exit_code_of_forked(lambda: print("in the child"))  # noqa: T201
        finally:
            release.set()

    handlers.job("h")(handler)
    caller.accepted(1, executorHandler="h")
    assert result(1) == (200, "0")
    assert "in the child" in caller.log(1)["logContent"]


@truth_table("length", [TEXT_MAX, TEXT_MAX + 1, 2 * TEXT_MAX, 100_000])
@truth_table("end", ["", "\n"])
def test_a_long_line_is_in_the_log_in_pieces(length: int, end: str) -> None:
    def handler() -> None:
        print("x" * length, end=end)  # noqa: T201
        print(end="" if end else "\n")  # noqa: T201
        print("next")  # noqa: T201

    *pieces, last = texts(handler)
    assert last == "next"
    assert "".join(pieces) == "x" * length
    assert len(pieces) == -(-length // TEXT_MAX)


def bar(text: str) -> None:
    for percent in (10, 50, 100):
        print(f"\r{text} {percent}%", end="", flush=True)  # noqa: T201


def lost(text: str) -> None:
    print(text, end="", flush=True)  # noqa: T201
    os._exit(0)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_unfinished_lines_are_written_once_by_the_process_that_began_them(
    caller: Caller, handlers: HandlerRegistry, result: Result
) -> None:
    def handler() -> None:
        print("one ", end="", flush=True)  # noqa: T201
        exit_code_of_forked(lambda: bar("first"))
        exit_code_of_forked(lambda: lost("second"))
        print("two")  # noqa: T201

    handlers.job("h")(handler)
    caller.accepted(1, executorHandler="h")
    assert result(1) == (200, None)
    lines = [line[20:] for line in caller.log(1)["logContent"].splitlines() if "-----" not in line]
    assert lines == ["first 100%", "second", "one two"]


def param_seen() -> str | None:
    return context.param


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_that_outlives_its_run_belongs_to_none(
    caller: Caller, handlers: HandlerRegistry, result: Result
) -> None:
    pools: list[Any] = []

    def handler() -> str:
        if not pools:
            pools.append(FORKING.Pool(1))
        return str(pools[0].apply(param_seen))

    handlers.job("h")(handler)
    for log_id in (1, 2):
        caller.accepted(log_id, executorHandler="h", executorParams=f"p{log_id}")
    assert (result(1)[1], result(2)[1]) == ("p1", "None")
    pools[0].terminate()


def returns() -> str:
    return "done"


def leaves() -> None:
    sys.exit(3)


def fails() -> None:
    raise ValueError("no day")


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(("in_child", "code"), [(returns, 0), (leaves, 3), (fails, 1)])
def test_a_forked_process_ends_with_the_handler(
    caller: Caller, handlers: HandlerRegistry, result: Result, in_child: Callable[[], Any], code: int
) -> None:
    def handler() -> Any:
        child = os.fork()
        if child == 0:
            print("in the child", end="")  # noqa: T201
            return in_child()
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    handlers.job("h")(handler)
    caller.accepted(1, executorHandler="h")
    assert result(1) == (200, str(code))
    text = caller.log(1)["logContent"]
    assert text.count("job execute end") == text.count("in the child") == 1
    assert text.count("ValueError: no day") == (in_child is fails)


@pytest.mark.parametrize("capture_output", [True, False])
def test_capture_can_be_switched_off(
    start: MakeExecutor,
    handlers: HandlerRegistry,
    result: Result,
    capsys: pytest.CaptureFixture[str],
    capture_output: bool,
) -> None:
    caller = start(capture_output=capture_output)
    handlers.job("h")(lambda: print("printed"))  # noqa: T201
    caller.accepted(1, executorHandler="h")
    assert result(1)[0] == 200
    assert ("printed" in caller.log(1)["logContent"]) is capture_output
    assert ("printed" in capsys.readouterr().out) is not capture_output


def child_writes() -> None:
    warnings.warn("old option", stacklevel=1)
    logging.getLogger("myapp").info("informed")
    logging.getLogger("myapp").warning("warned")
    subprocess.run(["sh", "-c", "echo inherited; echo inherited too >&2"], check=True)
    os.write(1, b"of a library in C\n")
    print("unfinished", end="")  # noqa: T201


def test_all_that_a_child_process_writes_is_in_the_log(
    start: MakeExecutor, handlers: HandlerRegistry, result: Result
) -> None:
    caller = start(route_logging=True)
    handlers.job("h", process=True)(child_writes)
    caller.accepted(1, executorHandler="h")
    assert result(1) == (200, None)
    lines = caller.log(1)["logContent"].splitlines()
    ends = ["old option", "INFO informed", "WARNING warned", "inherited", "inherited too", "library in C"]
    for end in [*ends, "unfinished"]:
        assert [line[:2] for line in lines if line.endswith(end)] == ["20"], (end, lines)
