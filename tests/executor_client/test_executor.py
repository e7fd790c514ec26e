"""Executor: start, stop, command line, errors of one line."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from executor_client import Executor, ExecutorConfig, HandlerRegistry, StartRefused, context
from executor_client.wire.errors import ExecutorError
from tests.acceptance.programs import free_port
from tests.executor_client.process import ROOT, ExecutorProcess, command
from tests.executor_client.stand_in_admin import TOKEN, StandInAdmin
from tests.support.eventually import eventually
from tests.support.executor_client import FAST, T0, Caller, MakeExecutor

MakeConfig = Callable[..., ExecutorConfig]


def test_importing_the_package_loads_the_standard_library_only(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from executor_client import Executor, job, context\n"
        "import executor_client.wire.protocol\n"
        "assert not {'flask', 'urllib3', 'waitress', 'werkzeug'} & set(sys.modules), sorted(sys.modules)\n"
        "assert context.job_id == -1 and callable(job)\n"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        check=True,
        timeout=30,
    )


def test_a_with_block_starts_and_stops(
    config: MakeConfig, handlers: HandlerRegistry, admin: StandInAdmin
) -> None:
    with Executor(config(), handlers) as executor:
        caller = Caller(executor.address.rstrip("/"))
        caller.accepted(1)
        eventually(lambda: admin.codes() == {1: 200})
        with pytest.raises(ExecutorError, match="already started"):
            executor.start()
    executor.stop()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(caller.base.rpartition(":")[2]))) != 0


def test_it_can_be_started_again(config: MakeConfig, handlers: HandlerRegistry, admin: StandInAdmin) -> None:
    executor = Executor(config(), handlers)
    for log_id in (1, 2):
        with executor:
            Caller(executor.address.rstrip("/")).accepted(log_id)
            eventually(lambda log_id=log_id: log_id in admin.codes())


@pytest.mark.parametrize("folders", [{}, {"log_path": Path("logs")}])
def test_a_handler_may_change_the_working_directory(
    start: MakeExecutor,
    handlers: HandlerRegistry,
    admin: StandInAdmin,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    folders: dict[str, Path],
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)
    handlers.job("moves")(lambda: os.chdir(elsewhere))
    caller = start(home=Path("instance"), **folders)
    for log_id in (1, 2):
        caller.accepted(log_id, executorHandler="moves")
        eventually(lambda log_id=log_id: log_id in admin.codes())
    assert [caller.log(log_id)["isEnd"] for log_id in (1, 2)] == [False, False]
    assert list(elsewhere.iterdir()) == []


def test_a_long_run_is_killed_at_the_stop(
    config: MakeConfig, handlers: HandlerRegistry, admin: StandInAdmin
) -> None:
    def spin() -> None:
        while True:
            pass

    handlers.job("spin")(spin)
    with Executor(config(), handlers) as executor:
        caller = Caller(executor.address.rstrip("/"))
        caller.accepted(1, executorHandler="spin")
        eventually(lambda: "execute start" in caller.log(1)["logContent"])
    assert admin.codes() == {1: 500}
    assert admin.message(1) == "web container destroy and kill the job. [job running, killed]"


def test_a_stop_waits_for_a_run_that_was_killed_just_before(
    config: MakeConfig, handlers: HandlerRegistry, admin: StandInAdmin
) -> None:
    release = threading.Event()

    def clean_up() -> None:
        context.cancelled.wait(30)
        release.wait(30)

    handlers.job("h")(clean_up)
    executor = Executor(config(timing=replace(FAST, cooperative_s=30, shutdown_wait_s=30)), handlers)
    executor.start()
    caller = Caller(executor.address.rstrip("/"))
    caller.accepted(1, executorHandler="h")
    eventually(lambda: "execute start" in caller.log(1)["logContent"])
    caller.post("/kill", {"jobId": 1})
    stopping = threading.Thread(target=executor.stop)
    stopping.start()
    eventually(lambda: admin.bodies("registryRemove"))
    release.set()
    stopping.join(30)
    assert admin.codes() == {1: 500}
    assert admin.message(1) == "scheduling center kill job. [job running, killed]"


@pytest.mark.parametrize("way", ["handler", "async", "pool"])
def test_a_handler_cannot_stop_its_executor(
    config: MakeConfig, handlers: HandlerRegistry, admin: StandInAdmin, way: str
) -> None:
    executor = Executor(config(), handlers)

    async def stop() -> None:
        executor.stop()

    def stop_in_pool() -> None:
        with ThreadPoolExecutor() as pool:
            pool.submit(executor.stop).result()

    ways = {"handler": lambda: executor.stop(), "async": stop, "pool": stop_in_pool}
    handlers.job("h")(ways[way])
    with executor:
        caller = Caller(executor.address.rstrip("/"))
        caller.accepted(1, executorHandler="h")
        eventually(lambda: admin.codes() == {1: 500})
        assert "ExecutorError: a handler cannot stop the executor" in str(admin.message(1))
        caller.accepted(2)
        eventually(lambda: admin.codes() == {1: 500, 2: 200})


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_keeps_no_connection(config: MakeConfig, handlers: HandlerRegistry) -> None:
    executor = Executor(config(), handlers)
    executor.start()
    reading, writing = os.pipe()
    try:
        address = ("127.0.0.1", int(executor.address.rstrip("/").rpartition(":")[2]))
        with socket.create_connection(address, timeout=10) as connection:
            connection.sendall(b"POST /beat HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
            assert connection.recv(4)
            child = os.fork()
            if child == 0:
                os.close(writing)
                os.read(reading, 1)
                os._exit(0)
            executor.stop()
            while connection.recv(1024):
                pass
    finally:
        executor.stop()
        os.close(writing)
        os.close(reading)
    os.waitpid(child, 0)


def test_a_stopping_executor_rejects_new_runs_and_knows_accepted_ones(
    config: MakeConfig, handlers: HandlerRegistry, admin: StandInAdmin
) -> None:
    release = threading.Event()
    handlers.job("wait")(lambda: release.wait(10) and None)
    executor = Executor(config(timing=replace(FAST, shutdown_wait_s=10)), handlers)
    executor.start()
    caller = Caller(executor.address.rstrip("/"))
    caller.accepted(1, executorHandler="wait")
    eventually(lambda: "execute start" in caller.log(1)["logContent"])
    stopping = threading.Thread(target=executor.stop)
    stopping.start()
    # a run of no handler is never accepted
    eventually(lambda: "stopping" in caller.run(2, executorHandler="none")["msg"])
    assert admin.bodies("registryRemove")
    assert caller.run(2)["msg"] == "the executor is stopping"
    assert "duplicate" in caller.run(1, executorHandler="wait")["msg"]
    release.set()
    stopping.join(10)
    assert admin.codes() == {1: 200}


def test_a_run_whose_handler_was_not_called_yet_runs_after_the_next_start(
    config: MakeConfig, handlers: HandlerRegistry, admin: StandInAdmin
) -> None:
    release = threading.Event()
    handlers.job("h", init=lambda: release.wait(30))(lambda: "called")
    executor = Executor(config(port=free_port()), handlers)
    executor.start()
    Caller(executor.address.rstrip("/")).accepted(1, executorHandler="h")
    executor.stop()
    assert admin.codes() == {}
    release.set()
    with executor:
        eventually(lambda: admin.codes() == {1: 200})


def test_cleaning_keeps_the_log_of_a_run_that_is_older_than_the_retention(
    start: MakeExecutor, handlers: HandlerRegistry, executors: list[Executor]
) -> None:
    handlers.job("waits")(lambda: context.cancelled.wait(30))
    caller = start(log_retention_days=3)
    caller.accepted(1, executorHandler="waits", logDateTime=T0)
    read = {"logId": 1, "logDateTim": T0, "fromLineNum": 1}
    eventually(lambda: caller.post("/log", read)["content"]["toLineNum"] == 1)
    engine = executors[0]._engine
    assert engine is not None
    engine._clean()
    assert caller.post("/log", read)["content"]["toLineNum"] == 1


def test_a_port_in_use_fails_the_start_and_leaves_nothing_open(
    config: MakeConfig, handlers: HandlerRegistry
) -> None:
    with socket.socket() as other_socket:
        other_socket.bind(("127.0.0.1", 0))
        other_socket.listen()
        executor = Executor(config(port=other_socket.getsockname()[1]), handlers)
        with pytest.raises(StartRefused, match="the port is in use"):
            executor.start()
    with executor:
        pass


def test_a_refused_start_closes_its_port(
    config: MakeConfig, handlers: HandlerRegistry, tmp_path: Path
) -> None:
    port = free_port()
    with Executor(config(port=0), handlers), pytest.raises(StartRefused, match="another executor"):
        Executor(config(port=0), handlers).start()
    (tmp_path / "blocked").write_text("")
    refused = Executor(config(port=port, log_path=tmp_path / "blocked" / "logs"), handlers)
    with pytest.raises(StartRefused, match="XXL_JOB_EXECUTOR_LOG_PATH"):
        refused.start()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


GOOD = ("executor_client.demo", "--admin", "http://127.0.0.1:1/x", "--appname", "a", "--port", "0")


@pytest.mark.parametrize(
    ("arguments", "environment", "expected"),
    [
        ((), {}, "no app name: set XXL_JOB_EXECUTOR_APPNAME"),
        (("executor_client.demo", "--appname", "a"), {}, "no admin address"),
        ((*GOOD, "--port", "x"), {}, "'x' is not a port"),
        ((*GOOD, "--nonsense"), {}, "unrecognized arguments: --nonsense"),
        ((*GOOD, "--host", "0.0.0.0"), {}, "refused to start"),
        ((*GOOD, "--host", "192.0.2.1"), {"XXL_JOB_ACCESS_TOKEN": TOKEN}, "cannot listen on 192.0.2.1:0"),
        (
            (*GOOD, "--host", "nowhere.invalid"),
            {"XXL_JOB_ACCESS_TOKEN": TOKEN},
            "cannot listen on nowhere.invalid:0",
        ),
        (
            (*GOOD, "--host", "a..b"),
            {"XXL_JOB_ACCESS_TOKEN": TOKEN},
            "cannot listen on a..b:0: not a host name",
        ),
        ((*GOOD, "--token-file", "none"), {}, "no such token file"),
        (GOOD, {"XXL_JOB_ACCESS_TOKEN_FILE": "none"}, "none: no such token file"),
        (GOOD, {"XXL_JOB_ACCESS_TOKEN_FILE": "/dev/null"}, "the file /dev/null is empty"),
        (
            GOOD,
            {"XXL_JOB_ACCESS_TOKEN": TOKEN, "XXL_JOB_ACCESS_TOKEN_FILE": "none"},
            "XXL_JOB_ACCESS_TOKEN and XXL_JOB_ACCESS_TOKEN_FILE are both set: set one of them",
        ),
        ((*GOOD, "--allow-glue", "groovy"), {}, "groovy is not one of"),
        (
            ("no.such.module", *GOOD[1:]),
            {},
            "cannot import no.such.module: there is no such module here",
        ),
        (
            ("broken", *GOOD[1:]),
            {},
            "cannot import broken: ZeroDivisionError: division by zero (broken.py:1)",
        ),
        (("wordy", *GOOD[1:]), {}, "cannot import wordy: ImportError: one (wordy.py:1)"),
        (("leaves", *GOOD[1:]), {}, "cannot import leaves: SystemExit: set DATABASE_URL (leaves.py:1)"),
        (("twice", *GOOD[1:]), {}, "naming conflicts"),
        (("bound", *GOOD[1:]), {}, "call executor_client.register()"),
        (("empty", *GOOD[1:]), {}, "no handler: name a module"),
        (GOOD, {"XXL_JOB_HOME": "/proc/nope"}, "XXL_JOB_"),
    ],
)
def test_an_impossible_start_ends_with_one_line(
    tmp_path: Path, arguments: tuple[str, ...], environment: dict[str, str], expected: str
) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "wordy.py").write_text("raise ImportError('one\\n\\ntwo')\n")
    (tmp_path / "leaves.py").write_text("raise SystemExit('set DATABASE_URL')\n")
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "twice.py").write_text(
        "from executor_client import job\n@job('a')\ndef one(): pass\n@job('a')\ndef two(): pass\n"
    )
    (tmp_path / "bound.py").write_text(
        "from executor_client import job\nclass A:\n    @job('a')\n    def one(self): pass\n"
    )
    ended = command(tmp_path, *arguments, **environment)
    assert ended.returncode == 2
    assert expected in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert ended.stdout == ""


def test_a_port_of_another_program_is_reported(tmp_path: Path) -> None:
    with socket.socket() as other_socket:
        other_socket.bind(("127.0.0.1", 0))
        other_socket.listen()
        port = other_socket.getsockname()[1]
        ended = command(tmp_path, *GOOD, "--port", str(port))
    assert (ended.returncode, ended.stderr) == (
        2,
        f"executor_client: cannot listen on 127.0.0.1:{port}: the port is in use by another program\n",
    )


def test_five_lines_are_a_program(tmp_path: Path, admin: StandInAdmin) -> None:
    (tmp_path / "mine.py").write_text(
        "from executor_client import Executor, context, job\n"
        "@job('hello')\n"
        "def hello():\n"
        "    context.log('hello %s', context.param)\n"
        "Executor.from_env().run()\n"
    )
    port = free_port()
    settings = {
        "XXL_JOB_ADMIN_ADDRESSES": admin.url,
        "XXL_JOB_EXECUTOR_APPNAME": "mine",
        "XXL_JOB_EXECUTOR_PORT": str(port),
    }
    environment = {
        **os.environ,
        **settings,
        "XXL_JOB_ACCESS_TOKEN": TOKEN,
        "XXL_JOB_HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT),
    }
    with subprocess.Popen(
        [sys.executable, "mine.py"], cwd=tmp_path, env=environment, stderr=subprocess.PIPE
    ) as process:
        eventually(lambda: admin.bodies("registry"))
        caller = Caller(f"http://127.0.0.1:{port}")
        caller.accepted(1, executorHandler="hello", executorParams="you")
        eventually(lambda: admin.codes() == {1: 200})
        caller.session.close()
        process.send_signal(2)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 0
    assert b"executor started appname=mine address=http://127.0.0.1:" in errors
    assert b"Traceback" not in errors
    assert TOKEN.encode() not in errors


@pytest.mark.parametrize("handler", ["endForked", "endForkedInChild"])
def test_a_handler_may_end_a_process_that_it_forked(
    tmp_path: Path, admin: StandInAdmin, handler: str
) -> None:
    """As multiprocessing does; the signal is none for the executor."""
    executor = ExecutorProcess(tmp_path, admin.url)
    executor.start()
    try:
        executor.wait_until_up()
        for log_id in (1, 2):
            executor.caller.accepted(log_id, executorHandler=handler)
            eventually(lambda log_id=log_id: log_id in admin.codes())
            assert (admin.codes()[log_id], admin.message(log_id)) == (200, "exit code -15")
        assert executor.terminate() == 0
    finally:
        executor.kill()
    assert b"Traceback" not in executor.output.read_bytes()


def test_a_program_given_as_a_module_is_served_once(tmp_path: Path, admin: StandInAdmin) -> None:
    (tmp_path / "mine.py").write_text(
        "from executor_client import Executor, job\n@job('h')\ndef h(): ...\nExecutor.from_env().run()\n"
    )
    settings = {
        "XXL_JOB_ADMIN_ADDRESSES": admin.url,
        "XXL_JOB_EXECUTOR_APPNAME": "mine",
        "XXL_JOB_EXECUTOR_PORT": str(free_port()),
    }
    environment = {
        **os.environ,
        **settings,
        "XXL_JOB_ACCESS_TOKEN": TOKEN,
        "XXL_JOB_HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT),
    }
    argv = [sys.executable, "-m", "executor_client", "mine"]
    with subprocess.Popen(argv, cwd=tmp_path, env=environment, stderr=subprocess.PIPE) as process:
        try:
            eventually(lambda: admin.bodies("registry"))
            process.terminate()
            _, errors = process.communicate(timeout=20)
        finally:
            process.kill()
    assert process.returncode == 0
    assert errors.count(b"executor started appname=mine") == 1


GUARDED = "if __name__ == '__main__':\n    Executor.from_env().run()\n"
UNGUARDED = "Executor.from_env().run()\n"


@pytest.mark.parametrize(
    ("program", "main"),
    [
        (["shop/mine.py"], UNGUARDED),
        (["-m", "shop.mine"], GUARDED),
        pytest.param(["shop/mine.py"], GUARDED, marks=pytest.mark.extensive),
        pytest.param(["-m", "shop.mine"], UNGUARDED, marks=pytest.mark.extensive),
    ],
)
def test_a_process_handler_can_be_in_the_main_program(
    tmp_path: Path, admin: StandInAdmin, main: str, program: list[str]
) -> None:
    code = (
        ("from . import __name__ as package\n" if "-m" in program else "")
        + "from executor_client import Executor, context, job\n"
        "@job('h', process=True)\n"
        "def handle():\n"
        "    return 'from the child'\n" + main
    )
    assert message_of(admin, tmp_path, code, program) == "from the child"


@pytest.mark.parametrize(
    ("method", "main", "program"),
    [
        ("fork", UNGUARDED, ["shop/mine.py"]),
        ("fork", GUARDED, ["shop/mine.py"]),
        ("spawn", GUARDED, ["shop/mine.py"]),
        ("fork", UNGUARDED, ["-c", "import shop.mine"]),
    ],
)
def test_a_process_handler_beside_the_start_can_use_processes(
    tmp_path: Path, admin: StandInAdmin, method: str, main: str, program: list[str]
) -> None:
    code = (
        "import multiprocessing\n"
        "from concurrent.futures import ProcessPoolExecutor\n"
        "from executor_client import Executor, ExecutorConfig, HandlerRegistry\n"
        "handlers = HandlerRegistry()\n"
        "def double(number):\n"
        "    return 2 * number\n"
        "@handlers.job('h', process=True)\n"
        "def handle():\n"
        f"    method = multiprocessing.get_context({method!r})\n"
        "    with ProcessPoolExecutor(1, mp_context=method) as pool:\n"
        "        return pool.submit(double, 21).result()\n"
    ) + main.replace("Executor.from_env()", "Executor(ExecutorConfig.from_env(), handlers)")
    assert message_of(admin, tmp_path, code, program) == "42"


def message_of(admin: StandInAdmin, folder: Path, code: str, program: list[str]) -> str | None:
    """Return the message of the handler ``h`` of a main program."""
    (folder / "shop").mkdir()
    (folder / "shop" / "__init__.py").touch()
    (folder / "shop" / "mine.py").write_text(code)
    port = free_port()
    settings = {
        "XXL_JOB_ADMIN_ADDRESSES": admin.url,
        "XXL_JOB_EXECUTOR_APPNAME": "mine",
        "XXL_JOB_EXECUTOR_PORT": str(port),
    }
    environment = {
        **os.environ,
        **settings,
        "XXL_JOB_ACCESS_TOKEN": TOKEN,
        "XXL_JOB_HOME": str(folder),
        "PYTHONPATH": str(ROOT),
    }
    with subprocess.Popen(
        [sys.executable, *program], cwd=folder, env=environment, stderr=subprocess.PIPE
    ) as process:
        eventually(lambda: admin.bodies("registry"))
        caller = Caller(f"http://127.0.0.1:{port}")
        caller.accepted(1, executorHandler="h")
        eventually(lambda: admin.codes())
        caller.session.close()
        process.terminate()
        process.communicate(timeout=20)
    return admin.message(1)
