"""``make run`` from nothing: it says where to go, everything answers, Ctrl-C leaves nothing behind."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import requests

ROOT = Path(__file__).resolve().parent.parent.parent
#: seconds for an orderly end
STOP_S = 30

pytestmark = pytest.mark.acceptance


class Running:
    """One ``manage.py run`` in a home of its own, in a process group of its own as under a terminal."""

    def __init__(self, home: Path) -> None:
        self.port, self.executor_port = free_ports(2)
        environ = {name: value for name, value in os.environ.items() if not name.startswith("XXL_JOB_")}
        environ |= {"XXL_JOB_HOME": str(home), "XXL_JOB_PORT": str(self.port), "XXL_JOB_EXECUTOR_PORT": str(self.executor_port)}
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), "run"],
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self.output = ""
        for line in self.process.stdout:
            self.output += line
            if line.startswith("stop "):  # the last line of a good start
                break
        assert "\nstop " in self.output, self.output
        self.family = [psutil.Process(self.process.pid), *psutil.Process(self.process.pid).children(recursive=True)]

    def end(self) -> tuple[int, str]:
        """Wait for the end; return exit code and what was printed meanwhile."""
        rest, _ = self.process.communicate(timeout=STOP_S)
        return self.process.returncode, rest

    def left(self) -> list[psutil.Process]:
        """Return what still runs after the end."""
        _gone, alive = psutil.wait_procs(self.family, timeout=STOP_S)
        return alive

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/xxl-job-admin{path}"


def free_ports(count: int) -> list[int]:
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    made = Running(tmp_path / "home")
    yield made
    for process in made.family:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            pass
    made.process.communicate()


def test_one_command_starts_everything_and_one_ctrl_c_ends_it(running: Running, tmp_path: Path) -> None:
    assert f"open            http://127.0.0.1:{running.port}/xxl-job-admin/\n" in running.output
    password = re.search(r"^admin password: (\S+)$", running.output, re.MULTILINE)
    assert password is not None
    assert password.group(1) == (tmp_path / "home" / "admin_password").read_text().strip()
    logged_in = requests.post(running.url("/login"), data={"userName": "admin", "password": password.group(1)}, timeout=10)
    assert logged_in.json()["code"] == 200
    assert requests.get(running.url("/health"), timeout=10).json() == {"status": "UP"}
    assert len(running.family) >= 5, "starter, console, workers with two children, executor"

    os.killpg(running.process.pid, signal.SIGINT)
    code, rest = running.end()
    assert (code, rest) == (0, "\nStopping (Ctrl-C again kills) ...\nStopped.\n")
    assert running.left() == []


def test_a_part_that_is_killed_ends_the_others_and_is_named(running: Running) -> None:
    (workers,) = [process for process in running.family if process.cmdline()[1:] == ["-m", "workers"]]
    workers.kill()
    code, rest = running.end()
    assert code == 1
    assert rest.startswith("error: workers was ended by signal 9; the end of ")
    assert running.left() == []


def test_nothing_outlives_a_starter_that_is_killed(running: Running) -> None:
    running.process.kill()
    assert running.left() == []
