"""Commands of a handler: programs whose output goes into the run's log, and which end with the run."""

import codecs
import os
import select
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from executor_client.logs.lines import LineBuffer
from executor_client.processes.sessions import identity_of, members_of, signal_session
from executor_client.processes.tree import DRAIN_S, LEFT_RUNNING, LINE_MAX_BYTES, RunProcesses
from executor_client.wire.clock import monotonic_s
from executor_client.wire.errors import RunFailed

#: characters of each output that are kept, the last ones
OUTPUT_MAX = 1_000_000
#: from SIGTERM to SIGKILL
GRACE_S = 2.0
#: characters of the last line in an error
_LAST_LINE_MAX = 200
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Result of a command; of a long output the last OUTPUT_MAX characters."""

    #: exit code, negative for a signal
    returncode: int
    stdout: str
    stderr: str


class CommandFailed(RunFailed):
    """A command of a handler failed, timed out, or was ended with its run."""

    def __init__(self, text: str, result: CommandResult) -> None:
        super().__init__(text)
        #: exit code and output
        self.result = result


@dataclass(frozen=True, slots=True)
class Command:
    """Arguments of a command."""

    argv: Sequence[str | Path]
    cwd: str | Path | None
    env: Mapping[str, str] | None
    input: str | bytes | None
    timeout_s: float | None

    def start(self) -> "subprocess.Popen[bytes]":
        """Start it in a session of its own; raise OSError or ValueError."""
        if isinstance(self.argv, str | bytes):
            raise ValueError('a list is required, for example ["sh", "-c", "sort names | uniq"]')
        # Let a Python program write its output at once.
        environment = {"PYTHONUNBUFFERED": "1", **os.environ} if self.env is None else self.env
        with tempfile.TemporaryFile() as stdin:
            stdin.write(self.input.encode() if isinstance(self.input, str) else self.input or b"")
            stdin.seek(0)
            return subprocess.Popen(
                [os.fspath(part) for part in self.argv],
                cwd=self.cwd,
                env=environment,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )

    def error(self, problem: str, result: CommandResult) -> CommandFailed:
        """Return the error of a command that failed, with the last line of its output."""
        lines = (result.stderr.rstrip() or result.stdout.rstrip()).splitlines()
        last = f": {lines[-1].strip()[:_LAST_LINE_MAX]}" if lines else ""
        return CommandFailed(f"{Path(self.argv[0]).name}: {problem}{last}", result)


class RunningCommands:
    """Running commands of an executor, or of a child process, which must not end before them. Thread-safe."""

    def __init__(self) -> None:
        #: set when they have to end
        self.ending = threading.Event()
        self._condition = threading.Condition()
        self._count = 0

    @contextmanager
    def register(self) -> Iterator[None]:
        """Count a command inside the ``with`` block; raise RunFailed after ``end``."""
        with self._condition:
            if self.ending.is_set():
                raise RunFailed("the run has ended")
            self._count += 1
        try:
            yield
        finally:
            with self._condition:
                self._count -= 1
                self._condition.notify_all()

    def end(self) -> None:
        """End the remaining commands and wait for them."""
        with self._condition:
            self.ending.set()
            self._condition.wait_for(lambda: not self._count, GRACE_S + DRAIN_S)


class CommandRun:
    """One command, followed by a thread of its own.

    An exception that ends the handler can arrive in the handler's thread at any moment, even between the
    start of a process and the next statement; in this thread it cannot, so that no process is left behind.
    """

    def __init__(
        self,
        command: Command,
        write: Callable[[str], object],
        cancel_event: threading.Event,
        processes: RunProcesses,
        running: RunningCommands,
    ) -> None:
        """``cancel_event`` is set when the run has to end; ``processes`` are those of the run."""
        self._command = command
        self._lines = LineBuffer(write)
        self._cancel_event = cancel_event
        self._processes = processes
        self._running = running
        #: set if the handler was ended by an exception and waits no longer, or its executor has ended
        self._abandon_event = threading.Event()
        self._end_event = threading.Event()
        self._problem = ""
        self._result: CommandResult | None = None
        self._error: Exception | None = None

    def wait(self, *, check: bool) -> CommandResult:
        """Run the command; raise CommandFailed, or RunFailed if it cannot be started."""
        name = f"{threading.current_thread().name}-command"
        threading.Thread(target=self._main, name=name, daemon=True).start()
        try:
            while not self._end_event.wait(_POLL_S):
                pass
        except BaseException:
            self._abandon_event.set()
            self._end_event.wait(GRACE_S + DRAIN_S)  # this process may end with the handler
            raise
        if self._result is None:
            raise RunFailed(f"cannot start {self._command.argv[0]}: {self._error}") from self._error
        if not self._problem and check and self._result.returncode != 0:
            self._problem = f"exit value({self._result.returncode})"
        if self._problem:
            raise self._command.error(self._problem, self._result)
        return self._result

    def _main(self) -> None:
        try:
            with self._running.register():
                process = self._command.start()
                identity = identity_of(process.pid)
                if not self._processes.add(identity):
                    self._abandon_event.set()
                self._result = self._follow(process)
                self._processes.remove(identity)
        except Exception as exc:
            self._error = exc
        finally:
            self._end_event.set()

    def _follow(self, process: "subprocess.Popen[bytes]") -> CommandResult:
        assert process.stdout is not None
        assert process.stderr is not None
        with process.stdout as stdout, process.stderr as stderr:
            outputs = [
                _Output(name, pipe, self._lines) for name, pipe in (("stdout", stdout), ("stderr", stderr))
            ]
            self._copy(process, outputs)
            open_outputs = [output for output in outputs if output.is_open]
            for output in open_outputs:
                self._processes.discard(output.descriptor)
        if self._problem:
            signal_session(process.pid, signal.SIGKILL)  # descendants that survived it
        self._lines.flush()
        if open_outputs and not self._problem:
            self._lines.write("log", f"{LEFT_RUNNING}\n")
        return CommandResult(process.wait(), outputs[0].text, outputs[1].text)

    def _copy(self, process: "subprocess.Popen[bytes]", outputs: "list[_Output]") -> None:
        """Copy the outputs until both are closed or, after the process has ended, until they pause."""
        started_s = monotonic_s()
        kill_at_s = drained_at_s = float("inf")
        while monotonic_s() < drained_at_s:
            if not self._problem and (problem := self._reason_to_end(monotonic_s() - started_s)):
                self._problem, kill_at_s = problem, monotonic_s() + GRACE_S
                signal_session(process.pid, signal.SIGTERM)
            if monotonic_s() >= kill_at_s:
                signal_session(process.pid, signal.SIGKILL)
            if is_over := self._is_over(process, kill_at_s):
                drained_at_s = min(drained_at_s, monotonic_s() + DRAIN_S)
            if not _read(outputs) and is_over:
                break

    def _is_over(self, process: "subprocess.Popen[bytes]", kill_at_s: float) -> bool:
        """Return whether the process has ended, and after SIGTERM also its descendants, if in time."""
        if process.poll() is None:
            return False
        return not self._problem or monotonic_s() >= kill_at_s or not members_of(process.pid)

    def _reason_to_end(self, elapsed_s: float) -> str:
        if self._command.timeout_s is not None and elapsed_s >= self._command.timeout_s:
            return f"timed out after {self._command.timeout_s:g} s"
        reasons = (self._cancel_event, self._abandon_event, self._running.ending)
        return "ended with the run" if any(reason.is_set() for reason in reasons) else ""


class _Output:
    """Output of a command: copies lines to the log, and keeps the last characters."""

    def __init__(self, name: str, pipe: Any, lines: LineBuffer) -> None:
        self.descriptor: int = pipe.fileno()
        self.is_open = True
        self.text = ""
        self._name = name
        self._lines = lines
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        os.set_blocking(self.descriptor, False)

    def read(self) -> None:
        """Copy the available output."""
        chunk = os.read(self.descriptor, LINE_MAX_BYTES)
        self.is_open = bool(chunk)
        text = self._decoder.decode(chunk, final=not chunk)
        self._lines.write(self._name, text)
        self.text = (self.text + text)[-OUTPUT_MAX:]


def _read(outputs: list[_Output]) -> bool:
    """Wait a moment for output and copy it; False if there is none."""
    poll = select.poll()
    output_by_descriptor = {output.descriptor: output for output in outputs if output.is_open}
    for descriptor in output_by_descriptor:
        poll.register(descriptor, select.POLLIN)
    ready = poll.poll(_POLL_S * 1000 if output_by_descriptor else 5)
    for descriptor, _ in ready:
        output_by_descriptor[descriptor].read()
    return bool(ready)
