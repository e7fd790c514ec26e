"""Exits: programs that end without stopping their executor."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.programs import free_port
from tests.executor_client.process import ROOT
from tests.executor_client.stand_in_admin import TOKEN, StandInAdmin
from tests.support.eventually import eventually
from tests.support.executor_client import Caller

BEGIN = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from executor_client import Executor, job
executor = Executor.from_env()
started = threading.Event()
"""
ENDS_DURING_A_RUN = f"""{BEGIN}
@job("h")
def handle():
    started.set()
    while executor._is_started:
        threading.Event().wait(0.01)
    with ThreadPoolExecutor() as pool:
        return ",".join(pool.map(str.upper, "ab"))
executor.start()
started.wait()
"""
GOES_ON_IN_A_THREAD = f"""{BEGIN}
@job("h")
def handle(): return "done"
def serve():
    threading.main_thread().join()
    print("the main thread has ended", flush=True)
    sys.stdin.read()
executor.start()
threading.Thread(target=serve).start()
"""

# the main thread waits for pools before it ends
GOES_ON_IN_A_POOL = GOES_ON_IN_A_THREAD.replace(
    "threading.Thread(target=serve).start()", "ThreadPoolExecutor().submit(serve)"
).replace(
    "threading.main_thread().join()", "while not threading._SHUTTING_DOWN: threading.Event().wait(0.01)"
)
STARTS_LATE = GOES_ON_IN_A_THREAD.replace("executor.start()\n", "").replace(
    "    print(", "    executor.start()\n    print("
)


def start(folder: Path, admin: StandInAdmin, program: str) -> tuple[subprocess.Popen[bytes], Caller]:
    """Start a program with an executor; return it and a client of the executor."""
    (folder / "mine.py").write_text(program)
    port = free_port()
    environment = {
        **os.environ,
        "XXL_JOB_ADMIN_ADDRESSES": admin.url,
        "XXL_JOB_EXECUTOR_APPNAME": "mine",
        "XXL_JOB_EXECUTOR_PORT": str(port),
        "XXL_JOB_ACCESS_TOKEN": TOKEN,
        "XXL_JOB_HOME": str(folder),
        "PYTHONPATH": str(ROOT),
    }
    process = subprocess.Popen(
        [sys.executable, "mine.py"],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    return process, Caller(f"http://127.0.0.1:{port}")


@pytest.mark.skipif((3, 12, 0) <= sys.version_info < (3, 12, 2), reason="these refuse new threads at exit")
def test_a_handler_can_use_a_pool_of_threads_while_the_program_ends(
    tmp_path: Path, admin: StandInAdmin
) -> None:
    process, caller = start(tmp_path, admin, ENDS_DURING_A_RUN)
    with process:
        eventually(lambda: admin.bodies("registry"))
        caller.accepted(1, executorHandler="h")
        assert process.wait(30) == 0
    assert (admin.codes(), admin.message(1)) == ({1: 200}, "A,B")
    assert admin.bodies("registryRemove")


@pytest.mark.parametrize("program", [GOES_ON_IN_A_THREAD, GOES_ON_IN_A_POOL, STARTS_LATE])
def test_a_program_that_goes_on_in_a_thread_keeps_its_executor(
    tmp_path: Path, admin: StandInAdmin, program: str
) -> None:
    process, caller = start(tmp_path, admin, program)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"the main thread has ended\n"
        caller.accepted(1, executorHandler="h")
        eventually(lambda: admin.codes() == {1: 200})
        assert admin.bodies("registryRemove") == []
        process.communicate(timeout=30)
    assert process.returncode == 0
    assert admin.bodies("registryRemove")
