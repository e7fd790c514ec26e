"""Process trees: child processes in their own session, with captured output, killed as a whole."""

import codecs
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from executor_client.processes.sessions import identity_of, kill_leftovers, members_of, signal_session
from executor_client.wire.clock import monotonic_s
from executor_client.wire.errors import RunFailed

#: a longer line is written in pieces
LINE_MAX_BYTES = 64 * 1024
#: line in the log of a run after the end of a program that has left processes in the background
LEFT_RUNNING = "background processes continue; what they print is no longer in this log"
#: after the process has ended, output of its descendants is read for this long
DRAIN_S = 1.0
_POLL_S = 0.1

#: prefixes of the names of Python programs
_PYTHON_NAMES = ("python", "pypy")

#: environment variables that scripts inherit: no token, no database address
ENVIRONMENT = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
)


def allowed_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a script inherits."""
    return {name: value for name, value in environ.items() if name in ENVIRONMENT or name.startswith("LC_")}


def python_program() -> str:
    """Return the path of the Python of this process; raise RunFailed if there is none.

    ``sys.executable`` is another program where Python is embedded, as in uWSGI.
    """
    if Path(sys.executable or "").name.lower().startswith(_PYTHON_NAMES):
        return sys.executable
    program = Path(sys.prefix, "bin", "python3")
    if not os.access(program, os.X_OK):
        embedding = sys.executable or "this program"
        raise RunFailed(f"{embedding} is not Python, and {program} is not an executable file")
    return str(program)


@dataclass(frozen=True, slots=True)
class Command:
    """Command line, folder and environment of a child process."""

    argv: Sequence[str]
    cwd: Path
    environment: Mapping[str, str]
    #: open file descriptors that the child inherits
    descriptors: tuple[int, ...] = field(default=())


class ProcessTree:
    """A running child and its descendants, in a session of their own."""

    def __init__(self, command: Command) -> None:
        """Start the command; raise ``OSError`` if that fails, ``ValueError`` for NUL in an argument."""
        #: whether descendants with the output continue in the background
        self.has_left_processes = False
        self._is_terminating = False
        self._kill_event = threading.Event()
        self._has_exited = False
        self._process = subprocess.Popen(
            list(command.argv),
            cwd=command.cwd,
            env=dict(command.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=command.descriptors,
        )

    @property
    def identity(self) -> str:
        """Identity of the process, unlike that of a later process with the same pid; "" if unknown."""
        return identity_of(self._process.pid)

    def follow(self, write: Callable[[str], object]) -> int:
        """Copy the output by lines until the process ends; return its exit code, negative for a signal."""
        assert self._process.stdout is not None
        with self._process.stdout as stream:
            if not _copy_lines(stream.fileno(), write, self._has_ended):
                discard_rest(stream.fileno())
                self.has_left_processes = not self._is_terminating
        code = self._process.wait()
        while not self._has_ended():
            self._kill_event.wait(_POLL_S)
        if self._is_terminating:
            self.kill()
        self._has_exited = True
        return code

    def terminate(self) -> None:
        """Send SIGTERM to the whole tree."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL to the whole tree."""
        self._signal(signal.SIGKILL)
        self._kill_event.set()

    def _has_ended(self) -> bool:
        """Return whether the process has ended, and after SIGTERM also its descendants, if in time."""
        if self._process.poll() is None:
            return False
        return not self._is_terminating or self._kill_event.is_set() or not members_of(self._process.pid)

    def _signal(self, number: signal.Signals) -> None:
        self._is_terminating = True
        if not self._has_exited:
            signal_session(self._process.pid, number)


class RunProcesses:
    """Processes of a run, stored so that a restart can kill those that are still running. Thread-safe."""

    def __init__(self, store: Callable[[str], object] = lambda identities: None) -> None:
        """``store`` gets the identities, one a line, and returns False if there is no executor to do so."""
        self._store = store
        #: reads the further output of background processes, see ``discard_rest``
        self.discard: Callable[[int], object] = discard_rest
        self._lock = threading.Lock()
        self._identities: dict[str, None] = {}
        self._child_identities = ""

    def add(self, identity: str) -> bool:
        """Store a process that has started; False if a restart would not find it."""
        with self._lock:
            self._identities[identity] = None
            return self._store_all()

    def remove(self, identity: str) -> None:
        """Drop a process that has ended; the next store writes it."""
        with self._lock:
            self._identities.pop(identity, None)

    def set_child(self, identities: str) -> None:
        """Store the processes that the handler's child process has started."""
        with self._lock:
            self._child_identities = identities
            self._store_all()

    def kill_programs_of_child(self) -> None:
        """Kill the programs that have outlived the child process that started them."""
        with self._lock:
            kill_leftovers(self._child_identities)

    def _store_all(self) -> bool:
        return self._store("\n".join([*self._identities, self._child_identities]).strip("\n")) is not False


def discard_rest(descriptor: int) -> None:
    """Read the rest of an output in a thread: without a reader, processes that print end by SIGPIPE."""
    arguments = (os.dup(descriptor),)
    threading.Thread(target=_read_to_end, args=arguments, name="background-output", daemon=True).start()


def _read_to_end(descriptor: int) -> None:
    os.set_blocking(descriptor, True)
    with os.fdopen(descriptor, "rb", buffering=0) as stream:
        while stream.read(LINE_MAX_BYTES):
            pass


def _copy_lines(descriptor: int, write: Callable[[str], object], has_ended: Callable[[], bool]) -> bool:
    """Copy lines until the end of the stream or, after the process has ended, until the output pauses.

    Return whether the end was reached.
    """
    os.set_blocking(descriptor, False)
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    pending, chunk, deadline_s = b"", None, float("inf")
    while chunk != b"" and monotonic_s() < deadline_s:
        if deadline_s == float("inf") and has_ended():
            deadline_s = monotonic_s() + DRAIN_S
        if poll.poll(_POLL_S * 1000):
            chunk = os.read(descriptor, LINE_MAX_BYTES)
            pending = _write_whole_lines(pending + chunk, write)
        elif deadline_s < float("inf"):
            break
    if pending:
        write(pending.decode("utf-8", "replace"))
    return chunk == b""


def _write_whole_lines(data: bytes, write: Callable[[str], object]) -> bytes:
    """Write whole lines and return the rest; an overlong rest is written up to its last whole character."""
    lines, mark, tail = data.rpartition(b"\n")
    if mark:
        write((lines + mark).decode("utf-8", "replace"))
    if len(tail) < LINE_MAX_BYTES:
        return tail
    text, length = codecs.utf_8_decode(tail, "replace", False)
    write(text)
    return tail[length:]
