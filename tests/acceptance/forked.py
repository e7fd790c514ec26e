"""Programs of this checkout as forks of a process that has loaded their modules: most of their start.

They have what a started program has: a session, ``__main__``, arguments, settings and output of their own.
"""

import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing import current_process, forkserver, get_context
from pathlib import Path

from app.runtime.program import end_with_parent

ROOT = Path(__file__).resolve().parent.parent.parent


class Forked:
    """A forked program, to be used like ``subprocess.Popen``."""

    def __init__(self, arguments: Sequence[str], environ: Mapping[str, str], log: Path) -> None:
        context = get_context("forkserver")
        context.set_forkserver_preload([f"{__package__}.preloaded"])
        self.args = [sys.executable, *arguments]
        self._process = context.Process(
            target=_become, args=(self.args, dict(environ), log), name="MainProcess", daemon=True
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Send a signal if it has not ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it ended just now
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code once it has ended; raise ``subprocess.TimeoutExpired`` after ``timeout`` s."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self._process.exitcode


def can_fork(environ: Mapping[str, str]) -> bool:
    """Return whether a program can be forked; one with a library of its own has to be loaded anew."""
    return sys.platform == "linux" and "LD_PRELOAD" not in environ


def _become(command: Sequence[str], environ: Mapping[str, str], log: Path) -> None:
    """Run a program in this process, a new fork."""
    current_process().daemon = False  # It may have children.
    # Otherwise the process that forks, and with it this one, would outlive a test run that is killed.
    os.close(forkserver._forkserver._forkserver_alive_fd)  # type: ignore[attr-defined]
    os.setsid()
    end_with_parent()
    with log.open("ab") as output, Path(os.devnull).open("rb") as nothing:
        for number, file in enumerate((nothing, output, output)):
            os.dup2(file.fileno(), number)
    sys.stdout.reconfigure(write_through=True)  # type: ignore[union-attr]
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
    os.chdir(ROOT)
    sys.orig_argv = [*command]
    _, *arguments = command
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")
