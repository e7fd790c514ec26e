"""Test server: a console and workers on SQLite, from the server that is installed beside this package.

Its first start makes a database and a token; later starts copy them.
"""

import ctypes
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import executor_client
from executor_client.wire.clock import monotonic_s
from executor_client.wire.errors import ExecutorError
from executor_client.wire.version import VERSION

#: folder with the packages of the server, if it is installed
BESIDE = Path(executor_client.__file__).resolve().parent.parent
#: files that only the server has
MARKS = ("wsgi.py", "workers/processes/supervisor.py", "migrations/versions", "app/dev/test_server.py")
#: a dependency of the server that the client does not have
SERVER_PACKAGE = "sqlalchemy"
CONTEXT_PATH = "/xxl-job-admin"
#: seconds for a start on a slow machine
START_S = 60.0
LOG_FILE = "server.log"


def missing_server(beside: Path = BESIDE) -> str:
    """Return why no console can be started, empty if it can."""
    if not all((beside / mark).exists() for mark in MARKS):
        return (
            f"the fixture console needs the server duetime beside executor_client, in {beside}:"
            f" install it into this environment, or use a checkout of the project: {_command('CHECKOUT')}"
        )
    if importlib.util.find_spec(SERVER_PACKAGE) is None:  # a checkout, with the client's packages only
        return (
            f"the fixture console needs the packages of the server in {beside}, such as {SERVER_PACKAGE}, and"
            " Python 3.11 or newer: run the tests in the environment that `make setup` made:"
            f" {_command(beside)}"
        )
    return ""


def _command(checkout: Path | str) -> str:
    """Return the command for tests in a checkout's environment, where no entry point names the plugin."""
    return f"PYTHONPATH={checkout} {checkout}/.venv/bin/python -m pytest -p executor_client.pytest_plugin"


@contextmanager
def running_server(cache: Path) -> Iterator[tuple[str, Path]]:
    """Run console and workers inside the ``with`` block; the value is their address and home folder.

    ``cache`` keeps the new database for the next start. Raises ExecutorError if they do not start.
    """
    with tempfile.TemporaryDirectory(prefix="console-", ignore_cleanup_errors=True) as folder:
        home, log = Path(folder) / "home", Path(folder) / LOG_FILE
        port = _free_port()
        arguments = ("-m", "app.dev.test_server", str(_template(cache)))
        process = _start(arguments, _environ(home, XXL_JOB_PORT=str(port)), log)
        try:
            address = f"http://127.0.0.1:{port}{CONTEXT_PATH}"
            _wait(f"{address}/ready", process, log)
            yield address, home
        finally:
            _stop(process)


def _template(cache: Path) -> Path:
    """Return the path of the cached home folder with a new database of this version of the server."""
    migrations = sorted(path.stat().st_mtime_ns for path in (BESIDE / "migrations" / "versions").glob("*.py"))
    cache.mkdir(parents=True, exist_ok=True)
    return cache.resolve() / f"{VERSION}-{len(migrations)}-{max(migrations, default=0)}"


def _environ(home: Path, **settings: str) -> Mapping[str, str]:
    """Return this environment without settings of the server, for a server of a test."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("XXL_JOB_", "FLASK_"))
    }
    return {
        **environment,
        "PYTHONPATH": str(BESIDE),
        "XXL_JOB_HOME": str(home),
        "XXL_JOB_HOST": "127.0.0.1",
        **settings,
    }


def _start(arguments: tuple[str, ...], environ: Mapping[str, str], log: Path) -> "subprocess.Popen[bytes]":
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=log.parent,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )


def _end_with_parent() -> None:
    """Let the kernel stop the process when pytest is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Wait until a page answers; raise ExecutorError with the last line of a program that ended."""
    until_s = monotonic_s() + START_S
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while monotonic_s() < until_s:
        if process.poll() is not None:
            text = log.read_text(encoding="utf-8", errors="replace")
            raise ExecutorError(f"the server ended at its start: {_last(text)}")
        try:
            with opener.open(url, timeout=2):
                return
        except OSError:
            threading.Event().wait(0.02)
    raise ExecutorError(f"the server did not answer within {START_S:.0f} s: {url}")


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """Kill all processes at once, because none of their data is kept."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["no output"])[-1]
