"""Real processes of a test: each in its own session, with its output in a file, and none left behind.

Everything is stopped by process id or by a process group created here. If the test run itself is killed, the
kernel stops the programs (Linux).
"""

import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from app.runtime.program import end_with_parent
from tests.acceptance.forked import Forked, can_fork
from tests.support.eventually import eventually

ROOT = Path(__file__).resolve().parent.parent.parent
#: seconds to answer after a start and to end after a signal; a loaded machine is slow
START_S = 60
STOP_S = 30
#: the resource tracker of a program's children ends a moment after the program
LEFT_S = 5
#: below the ports the kernel gives to outgoing connections, so that none is taken during a restart
PORTS = range(21_000, 32_000)
#: parallel test processes (pytest -n) choose from separate ports
SHARES = 16
#: ports already handed out, whose programs may not listen yet
_handed_out: set[int] = set()


def free_port() -> int:
    """Return a free port that stays free while a program is restarted."""
    share = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % SHARES
    while True:
        port = random.choice(PORTS[share::SHARES])
        if port in _handed_out:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _handed_out.add(port)
        return port


@dataclass(frozen=True)
class Program:
    """A started program."""

    name: str
    process: subprocess.Popen[bytes] | Forked
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def output(self) -> str:
        """Its output so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def children(self) -> list[psutil.Process]:
        """Return its child processes and their descendants."""
        try:
            return psutil.Process(self.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def workers(self) -> list[psutil.Process]:
        """Return the children started by ``multiprocessing``, oldest first."""
        started = [process for process in self.children() if "tracker" not in _command(process)]
        return sorted(started, key=lambda process: (process.create_time(), process.pid))

    def end(self, number: int = signal.SIGTERM, timeout_s: float = STOP_S) -> int:
        """Send a signal to the program alone, wait for its end and return the exit code."""
        if not self.has_ended:
            self.process.send_signal(number)
        return self.process.wait(timeout_s)

    def kill(self) -> None:
        """Kill it and everything it started."""
        for process in group_members(self.pid):
            process.kill()
        if not self.has_ended:
            self.process.kill()
        self.process.wait(STOP_S)


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def group_members(group: int) -> list[psutil.Process]:
    """Return the live processes of a process group."""
    members = []
    for process in psutil.process_iter(["pid"]):
        try:
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                members.append(process)
        except (ProcessLookupError, psutil.Error):
            continue
    return members


@dataclass
class Programs:
    """All programs of one test by name; the last one of a name is the current one."""

    folder: Path
    started: list[Program] = field(default_factory=list)

    def start(
        self, name: str, arguments: Sequence[str], environ: Mapping[str, str], cwd: Path = ROOT
    ) -> Program:
        """Start a program; its output is appended to ``<name>.log``."""
        path = self.folder / f"{name}.log"
        with path.open("ab") as log:
            process = subprocess.Popen(
                arguments,
                cwd=cwd,
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the test to handle
                preexec_fn=end_with_parent,
            )
        return self._add(Program(name, process, path))

    def fork(self, name: str, arguments: Sequence[str], environ: Mapping[str, str]) -> Program:
        """Start a Python program of this checkout, from loaded modules where that is possible."""
        if not can_fork(environ):
            return self.start(name, [sys.executable, *arguments], environ)
        path = self.folder / f"{name}.log"
        path.touch()
        return self._add(Program(name, Forked(arguments, environ, path), path))

    def _add(self, program: Program) -> Program:
        self.started.append(program)
        return program

    def __getitem__(self, name: str) -> Program:
        return next(program for program in reversed(self.started) if program.name == name)

    def outputs(self) -> dict[str, str]:
        """Return the output of each program by name."""
        return {program.name: program.output for program in self.started}

    def stop_all(self) -> list[str]:
        """Stop everything, the last started first; return what had to be killed."""
        stubborn = []
        for program in reversed(self.started):
            if program.has_ended:
                continue
            program.process.send_signal(signal.SIGCONT)
            try:
                program.end()
            except subprocess.TimeoutExpired:
                stubborn.append(program.name)
        try:
            eventually(lambda: not self.left(), LEFT_S)
        except AssertionError:
            stubborn += self.left()
        for program in self.started:
            program.kill()
        return stubborn

    def left(self) -> list[str]:
        """Return what still runs, by the program that started it."""
        return [
            f"{program.name}: {process.pid} {_command(process)}"
            for program in self.started
            for process in group_members(program.pid)
        ]


def wait_for(program: Program, condition: object, awaited: str, timeout_s: float = START_S) -> None:
    """Wait until ``condition()`` is true; fail at once with the output if the program has ended."""

    def probe() -> bool:
        if program.has_ended:
            code, output = program.process.returncode, program.output[-3000:]
            raise AssertionError(f"{program.name} ended with {code} before {awaited}:\n{output}")
        return bool(condition())  # type: ignore[operator]

    eventually(probe, timeout_s, f"{program.name}: {awaited}")
