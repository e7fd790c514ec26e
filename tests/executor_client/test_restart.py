"""Restarts: queued, running, finished and reported runs after SIGKILL and SIGTERM."""

import os
import random
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psutil
import pytest
import requests

from executor_client.execution.intake import MSG_RESTARTED
from tests.executor_client.process import ExecutorProcess
from tests.executor_client.stand_in_admin import StandInAdmin
from tests.support.eventually import eventually

JOBS = 10


@pytest.fixture
def process(tmp_path: Path, admin: StandInAdmin) -> Iterator[ExecutorProcess]:
    made = ExecutorProcess(tmp_path, admin.url, "--allow-glue", "shell")
    made.start()
    made.wait_until_up()
    yield made
    made.kill()


def test_every_run_of_a_killed_executor_is_reported(process: ExecutorProcess, admin: StandInAdmin) -> None:
    caller = process.caller
    admin.down()
    caller.accepted(1, executorHandler="record", jobId=1)  # finished, not called back
    eventually(lambda: "callback failed" in caller.log(1)["logContent"])
    caller.accepted(2, executorHandler="record", executorParams="60000", jobId=2)  # started
    eventually(lambda: process.starts()[2])
    caller.accepted(3, executorHandler="record", jobId=2)  # waits
    process.kill()
    admin.up()
    process.start()
    eventually(lambda: len(admin.codes()) == 3, message="a result is missing")
    assert admin.codes() == {1: 200, 2: 500, 3: 200}
    assert admin.message(2) == MSG_RESTARTED
    assert process.starts() == {1: 1, 2: 1, 3: 1}
    for log_id, job_id in ((1, 1), (2, 2), (3, 2)):
        assert "duplicate" in process.caller.run(log_id, executorHandler="record", jobId=job_id)["msg"]
    assert MSG_RESTARTED in process.caller.log(2)["logContent"]
    assert process.starts() == {1: 1, 2: 1, 3: 1}


@pytest.mark.parametrize(
    "fields",
    [
        {"executorHandler": "recordInChild"},
        {"glueType": "GLUE_SHELL", "glueSource": "echo go; sleep 60"},
        {"glueType": "GLUE_SHELL", "glueSource": "set -m; sleep 60 & echo go; wait"},
    ],
)
def test_a_restart_kills_leftover_processes(
    process: ExecutorProcess, admin: StandInAdmin, fields: dict[str, str]
) -> None:
    caller = process.caller
    caller.accepted(1, **fields)
    eventually(lambda: process.starts()[1] or "go\n" in caller.log(1)["logContent"])
    children = [child for child in psutil.Process(process.pid).children(recursive=True) if child.is_running()]
    assert children
    process.kill()
    process.start()
    eventually(lambda: admin.codes() == {1: 500})
    eventually(
        lambda: not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children)
    )


def stored_processes(process: ExecutorProcess) -> list[str]:
    """Return the processes that the journal has of the only run."""
    (path,) = process.home.glob("*.sqlite3")
    with closing(sqlite3.connect(path)) as journal:
        return str(journal.execute("SELECT process FROM run").fetchone()[0]).splitlines()


@pytest.mark.parametrize("handler", ["runPrograms", "runPrograms.inChild"])
def test_a_restart_kills_all_programs_of_a_run(
    process: ExecutorProcess, admin: StandInAdmin, handler: str
) -> None:
    caller = process.caller
    caller.accepted(1, executorHandler=handler)
    eventually(lambda: caller.log(1)["logContent"].count(" go\n") == 2, message="the programs do not start")
    children = psutil.Process(process.pid).children(recursive=True)
    assert sum(child.name() == "sleep" for child in children) == 2
    in_child = handler == "runPrograms.inChild"
    eventually(lambda: len(stored_processes(process)) >= 2 + in_child, message="the processes are not stored")
    process.kill()
    process.start()
    eventually(lambda: admin.codes() == {1: 500})
    eventually(
        lambda: not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children)
    )


def test_sigterm_finishes_runs_keeps_queued_ones_and_deregisters(
    process: ExecutorProcess, admin: StandInAdmin
) -> None:
    caller = process.caller
    caller.accepted(1, executorHandler="record", executorParams="300")
    eventually(lambda: process.starts()[1])
    caller.accepted(2, executorHandler="record")
    assert process.terminate() == 0
    assert admin.codes() == {1: 200}
    assert process.ends() == {1: 1}
    assert admin.bodies("registryRemove")
    assert "Traceback" not in process.output.read_text()
    process.start()
    eventually(lambda: admin.codes() == {1: 200, 2: 200})


def test_a_second_sigterm_ends_it_at_once(process: ExecutorProcess) -> None:
    process.caller.accepted(1, executorHandler="record", executorParams="60000")
    eventually(lambda: process.starts()[1])
    psutil.Process(process.pid).terminate()
    eventually(lambda: "executor stopping" in process.output.read_text())
    assert process.terminate() == 128 + 15


def test_no_run_starts_twice_or_is_lost_under_repeated_kills(
    process: ExecutorProcess, admin: StandInAdmin
) -> None:
    """Send SIGKILL every 0.2 to 0.7 s while 200 runs are sent, each one until it is accepted."""
    seed = int(os.environ.get("XXL_TEST_SEED", random.randrange(10**6)))
    chance = random.Random(seed)
    sent = threading.Event()

    def send(log_id: int) -> None:
        fields = {"executorHandler": "record", "executorParams": str(log_id % 40), "jobId": log_id % JOBS}
        eventually(
            lambda: _accepted(process, log_id, fields), timeout_s=60, message=f"{log_id} is not accepted"
        )

    def kill_until_sent() -> int:
        kills = 0
        while not sent.is_set() or kills < 5:
            process.wait_until_up()
            sent.wait(chance.uniform(0.2, 0.7)) if not sent.is_set() else None
            process.kill()
            process.start()
            kills += 1
        return kills

    with ThreadPoolExecutor(5) as pool:
        killer = pool.submit(kill_until_sent)
        list(pool.map(send, range(1, 201)))
        sent.set()
        kills = killer.result(60)
    eventually(lambda: len(admin.codes()) == 200, timeout_s=30, message=f"results are missing, seed {seed}")
    starts, ends = process.starts(), process.ends()
    assert kills >= 5
    assert len(set(admin.results)) == 200, f"two results of one run, seed {seed}"
    assert max(starts.values()) == 1, f"started twice: {[i for i, n in starts.items() if n > 1]}, seed {seed}"
    for log_id, code in admin.codes().items():
        assert code == (200 if ends[log_id] else 500) or (
            ends[log_id] and admin.message(log_id) == MSG_RESTARTED
        ), (log_id, code, seed)
        if code == 500:
            assert admin.message(log_id) == MSG_RESTARTED


def _accepted(process: ExecutorProcess, log_id: int, fields: dict[str, object]) -> bool:
    try:
        return process.caller.run(log_id, **fields)["code"] == 200
    except requests.RequestException:
        return False


#: growth allowed in the second half: SQLite caches up to 2 MB of the journal in each of two connections
GROWTH_MAX_MB = 4.0
WARM_UP_RUNS = 300


@pytest.mark.timeout(600)
def test_many_runs_leak_no_resources(
    process: ExecutorProcess, admin: StandInAdmin, pytestconfig: pytest.Config
) -> None:
    """600 runs by default, 1,500 with ``--all``; XXL_TEST_RUNS=10000 for the full number."""
    count = int(os.environ.get("XXL_TEST_RUNS") or (1_500 if pytestconfig.getoption("all") else 600))
    watched = psutil.Process(process.pid)

    def send(ids: range) -> None:
        caller = process.caller
        for log_id in ids:
            caller.accepted(log_id, executorHandler="record", jobId=log_id % JOBS)
        caller.session.close()

    def run_until(last: int) -> tuple[int, int, float]:
        first = len(admin.codes()) + 1
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(send, [range(first + n, last + 1, 8) for n in range(8)]))
        eventually(lambda: len(admin.codes()) == last, timeout_s=60)
        eventually(lambda: len(watched.net_connections()) <= 3, message="connections stay")
        return watched.num_threads(), watched.num_fds(), watched.memory_info().rss / 1e6

    warm = run_until(WARM_UP_RUNS)
    half = run_until(WARM_UP_RUNS + count // 2)
    full = run_until(WARM_UP_RUNS + count)
    assert max(half[0], full[0]) <= warm[0], "threads"
    assert max(half[1], full[1]) <= warm[1] + 1, "files"
    assert full[2] <= half[2] + GROWTH_MAX_MB, "memory"
    assert process.starts() == dict.fromkeys(range(1, WARM_UP_RUNS + count + 1), 1)
