"""Executor in its own process, for tests that kill it."""

import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.acceptance.programs import free_port
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
        self.output = home / "output"
        self._argv = [
            sys.executable,
            "-m",
            "executor_client",
            "tests.executor_client.recording",
            "--admin",
            admin,
            "--appname",
            "test",
        ]
        self._argv += ["--port", str(self.port), "--home", str(home), *options]
        self._process: subprocess.Popen[bytes] | None = None

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
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                self._argv, cwd=self.home, env=environment, stdout=output, stderr=output
            )

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
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "executor_client", *arguments],
        cwd=home,
        env={**inherited, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
