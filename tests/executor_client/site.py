"""Site in its own process group: an application with an executor, under a server with several workers."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import psutil
import requests

from tests.acceptance.programs import free_port
from tests.executor_client.process import ROOT
from tests.executor_client.stand_in_admin import TOKEN
from tests.support.eventually import eventually
from tests.support.executor_client import Caller


class Site:
    """A server of the environment, such as ``gunicorn wsgi:app --workers 3``; ``{port}`` is filled in."""

    def __init__(self, folder: Path, home: Path, admin: str, *server: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.output = home / "output"
        self._argv = [sys.executable, "-m", *(word.format(port=self.port) for word in server)]
        self._folder = folder
        inherited = {name: text for name, text in os.environ.items() if not name.startswith("XXL_JOB")}
        self._environment = {
            **inherited,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
            "HOME": str(home),  # gunicorn has a socket there
            "TMPDIR": "/tmp",
            "RECORDING": str(home / "recording"),
            "XXL_JOB_ADMIN_ADDRESSES": admin,
            "XXL_JOB_EXECUTOR_APPNAME": "test",
            "XXL_JOB_EXECUTOR_ADDRESS": f"{self.url}/xxl-job/",
            "XXL_JOB_EXECUTOR_LOG_RETENTION_DAYS": "0",
            "XXL_JOB_ACCESS_TOKEN": TOKEN,
            "XXL_JOB_HOME": str(home / "home"),
        }
        self._process: subprocess.Popen[bytes]

    @property
    def caller(self) -> Caller:
        """Client that calls the executor; a new connection for each request reaches all workers."""
        caller = Caller(f"{self.url}/xxl-job")
        caller.session.headers["Connection"] = "close"
        return caller

    def is_up(self) -> bool:
        """Return whether the site shows its page."""
        with suppress(requests.RequestException):
            answer = requests.get(self.url, timeout=10, headers={"Connection": "close"})
            return answer.status_code == 200 and "the site" in answer.text
        return False

    def holder(self) -> int | None:
        """Return the process that holds the executor."""
        for process in psutil.Process(self._process.pid).children(recursive=True):
            with suppress(psutil.Error):
                files = [Path(file.path).name for file in process.open_files()]
                if "executor-test-9999.sqlite3" in files:
                    return int(process.pid)
        return None

    def __enter__(self) -> "Site":
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                self._argv,
                cwd=self._folder,
                env=self._environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            eventually(self.is_up, message=lambda: self.output.read_text())
        except BaseException:
            self._end()
            raise
        return self

    def terminate(self) -> int:
        """Send SIGTERM to the server and return its exit code."""
        self._process.terminate()
        return self._process.wait(30)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(10)
