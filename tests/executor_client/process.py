"""Executor in its own process, for tests that kill it."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from tests.acceptance.forked import Forked
from tests.acceptance.programs import Programs, free_port
from tests.executor_client.stand_in_admin import TOKEN
from tests.support.eventually import eventually
from tests.support.executor_client import Caller

ROOT = Path(__file__).resolve().parents[2]


class ExecutorProcess:
    """``python -m executor_client tests.executor_client.recording …``; port and home stay the same."""

    def __init__(self, home: Path, admin: str, *options: str) -> None:
        self.home = home
        self.port = free_port()
        self.recording = home / "recording"
        self.output = home / "output.log"
        self._arguments = [
            "-m",
            "executor_client",
            "tests.executor_client.recording",
            "--admin",
            admin,
            "--appname",
            "test",
        ]
        self._arguments += ["--port", str(self.port), "--home", str(home), *options]
        self._process: Forked | subprocess.Popen[bytes] | None = None

    @property
    def caller(self) -> Caller:
        return Caller(f"http://127.0.0.1:{self.port}")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        settings = {
            "XXL_JOB_ACCESS_TOKEN": TOKEN,
            "XXL_JOB_EXECUTOR_LOG_RETENTION_DAYS": "0",
        }  # conftest.T0 is long ago
        environment = {**os.environ, **settings, "RECORDING": str(self.recording), "PYTHONPATH": str(ROOT)}
        programs = Programs(self.home)
        self._process = programs.fork(self.output.stem, self._arguments, environment).process

    def wait_until_up(self) -> None:
        eventually(self._is_up, message=f"the executor does not start: {self.output.read_text()}")

    def _is_up(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        """Send SIGKILL and wait."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None

    def terminate(self) -> int:
        """Send SIGTERM and return the exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(30)
        self._process = None
        return code

    def starts(self) -> Counter[int]:
        """Return the number of starts by log id."""
        return self._recorded("start")

    def ends(self) -> Counter[int]:
        """Return the number of regular ends by log id."""
        return self._recorded("end")

    def _recorded(self, event: str) -> Counter[int]:
        lines = self.recording.read_text().splitlines() if self.recording.exists() else []
        return Counter(int(line.split()[1]) for line in lines if line.startswith(event + " "))


def command(home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line and wait for its end."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("XXL_JOB")}
    arguments_of_python = [sys.executable, "-W", "error", "-m", "executor_client", *arguments]
    outputs = [home / ".stdout", home / ".stderr"]
    for file in outputs:
        file.write_bytes(b"")
    order = {
        "cwd": str(home),
        "environ": {**inherited, "PYTHONPATH": str(ROOT), **environment},
        "outputs": [str(file) for file in outputs],
        "arguments": arguments,
    }
    code = _forks().run(order)
    texts = [file.read_text() for file in outputs]
    for file in outputs:
        file.unlink()
    return subprocess.CompletedProcess(arguments_of_python, code, *texts)


class Forks:
    """Process that runs command lines in forks of itself; it ends with this one."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.executor_client.forking"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, order: dict[str, Any]) -> int:
        """Return the exit code of a command line; a test that waits for too long is ended by pytest."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(json.dumps(order), file=self._process.stdin, flush=True)
            return int(self._process.stdout.readline())
        except BaseException:  # such as a time-out: the next order needs another process
            self._process.kill()
            _forks.cache_clear()
            raise


@cache
def _forks() -> Forks:
    return Forks()
