"""The server installed beside this package, as processes of a test: a console and workers on SQLite.

Its first start makes a database and a token; later ones copy them, and take about a second.
"""

import ctypes
import os
import shutil
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
from executor_client.clock import monotonic_s
from executor_client.errors import ExecutorError
from executor_client.version import VERSION

#: folder with the packages of the server, if it is installed
BESIDE = Path(executor_client.__file__).resolve().parent.parent
#: what the server has there
MARKS = ("wsgi.py", "workers/supervisor.py", "migrations/versions", "app/program.py")
CONTEXT_PATH = "/xxl-job-admin"
#: seconds for a start on a slow machine, and for an end
START_S = 60.0
STOP_S = 5.0
TOKEN_FILE = "api_token"  # noqa: S105 - a name
FIRST_COMMANDS = (
    ("-m", "flask", "--app", "wsgi", "db", "upgrade"),
    ("-m", "app", "tokens", "create", "pytest", "--right", "admin", "--local"),
)


def missing_server(beside: Path = BESIDE) -> str:
    """Return why no console can be started, empty if it can."""
    if all((beside / mark).exists() for mark in MARKS):
        return ""
    return (
        f"the fixture console needs the server xxl-job-scheduler beside executor_client, in {beside}:"
        " install it into this environment, or run the tests in a checkout of the project"
    )


@contextmanager
def running_server(cache: Path) -> Iterator[tuple[str, Path]]:
    """Run console and workers inside the ``with`` block; the value is their address and home folder.

    ``cache`` keeps the new database for the next start. Raises ExecutorError if they do not start.
    """
    with tempfile.TemporaryDirectory(prefix="console-", ignore_cleanup_errors=True) as folder:
        home = Path(folder) / "home"
        shutil.copytree(_template(cache), home)
        port = _free_port()
        environ = _environ(home, XXL_JOB_PORT=str(port))
        started: list[subprocess.Popen[bytes]] = []
        try:
            for arguments in (("-c", "import wsgi; wsgi.main()"), ("-m", "workers")):
                started.append(_start(arguments, environ, Path(folder) / f"{len(started)}.log"))
            address = f"http://127.0.0.1:{port}{CONTEXT_PATH}"
            for page in ("health", "ready"):
                _wait(f"{address}/{page}", started, Path(folder))
            yield address, home
        finally:
            _stop(started)


def _template(cache: Path) -> Path:
    """Return a home folder with an empty database; it is made once for each version of the server."""
    migrations = sorted(path.stat().st_mtime_ns for path in (BESIDE / "migrations" / "versions").glob("*.py"))
    template = cache / f"{VERSION}-{len(migrations)}-{max(migrations, default=0)}"
    if template.is_dir():
        return template
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, ignore_cleanup_errors=True) as folder:
        made = Path(folder) / "home"
        made.mkdir(mode=0o700)
        for arguments in FIRST_COMMANDS:
            ended = subprocess.run(
                [sys.executable, *arguments],
                cwd=made,
                env=_environ(made),
                capture_output=True,
                text=True,
                timeout=START_S,
                check=False,
            )
            if ended.returncode != 0:
                raise ExecutorError(f"the server cannot be set up: {_last(ended.stderr or ended.stdout)}")
        (made / TOKEN_FILE).write_text(ended.stdout.strip(), encoding="utf-8")
        with suppress(OSError):  # another process of pytest-xdist was first
            made.rename(template)
    return template


def _environ(home: Path, **settings: str) -> Mapping[str, str]:
    """Return this environment without settings of the server, for a server of a test."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XXL_JOB_", "FLASK_"))}
    return {
        **kept,
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


def _wait(url: str, started: "list[subprocess.Popen[bytes]]", logs: Path) -> None:
    """Wait until a page answers; raise ExecutorError with the last line of a program that ended."""
    until_s = monotonic_s() + START_S
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while monotonic_s() < until_s:
        for number, process in enumerate(started):
            if process.poll() is not None:
                text = (logs / f"{number}.log").read_text(encoding="utf-8", errors="replace")
                raise ExecutorError(f"the server ended at its start: {_last(text)}")
        try:
            with opener.open(url, timeout=2):
                return
        except OSError:
            threading.Event().wait(0.03)
    raise ExecutorError(f"the server did not answer within {START_S:.0f} s: {url}")


def _stop(started: "list[subprocess.Popen[bytes]]") -> None:
    for process in started:
        process.terminate()
    for process in started:
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_S)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["no output"])[-1]
