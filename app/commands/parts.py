"""Processes of an installation that a person's terminal starts, watches and stops in order."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType

from app.errors import XxlJobError
from app.runtime.program import end_with_parent
from app.settings.home import SECRET_MODE

#: folder of the packages: that of the checkout, or where the wheel was installed
ROOT = Path(__file__).resolve().parents[2]
#: seconds a part may take to answer after its start, and to end after SIGTERM
START_S = 60
STOP_S = 25
#: lines shown of the log of a part that failed
LAST_LINES = 12


class PartFailed(XxlJobError):
    """A part did not start or has ended; the text is shown to the user."""


def shown(path: Path) -> Path:
    """Return a path, relative if it is inside the current folder."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


class Parts:
    """Started processes in order; each writes to its own log file."""

    def __init__(self, logs: Path, folder: Path) -> None:
        self.logs = logs
        #: current folder of the processes, which read the .env there
        self.folder = folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        #: stops requested so far; the second one kills
        self.stops = 0
        logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.request_stop)

    def request_stop(self, _number: int, _frame: FrameType | None) -> None:
        """Signal handler: count the request for the loops."""
        self.stops += 1

    def log_path(self, name: str) -> Path:
        """Return the log file of a part."""
        return self.logs / f"{name.replace(' ', '_')}.log"

    def start(self, name: str, command: Sequence[str], **environ: str) -> None:
        """Start a part in its own session, so that Ctrl-C reaches only this process."""
        if self.stops:
            return
        path = self.log_path(name)
        if path.exists():
            path.replace(f"{path}.1")
        # The umask stays the user's, because files that handlers of the executor write are theirs.
        with open(path, "wb", opener=partial(os.open, mode=SECRET_MODE)) as log:
            self.processes[name] = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT), **environ},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
        print(f"{name:<15} {shown(path)}", flush=True)

    def once(self, name: str, command: Sequence[str]) -> None:
        """Run a part to its end; raise PartFailed if it fails."""
        self.start(name, command)
        if self.stops:
            return
        code = self.processes[name].wait()
        del self.processes[name]
        if code != 0:
            raise PartFailed(self.describe(name, "failed"))

    def wait(self, name: str, ready: Callable[[], bool], what: str = "answer") -> None:
        """Wait until a part is ready; raise PartFailed after START_S, or if a part ends."""
        deadline = time.monotonic() + START_S
        while not self.stops and not ready():
            self.require_alive()
            if time.monotonic() > deadline:
                raise PartFailed(self.describe(name, f"did not {what} within {START_S} s"))
            time.sleep(0.1)

    def drop(self, name: str) -> None:
        """Kill a part that failed, if it was started; the others go on."""
        if process := self.processes.pop(name, None):
            kill_group(process)

    def watch(self) -> None:
        """Wait until a stop is requested; raise PartFailed if a part ends by itself."""
        while not self.stops:
            self.require_alive()
            time.sleep(0.2)

    def require_alive(self) -> None:
        """Raise PartFailed if a part has ended."""
        for name, process in self.processes.items():
            code = process.poll()
            if code is not None:
                how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
                raise PartFailed(self.describe(name, how))

    def describe(self, name: str, what: str) -> str:
        """Return a message about a part, with the last lines of its log."""
        path = self.log_path(name)
        text = path.read_text(encoding="utf-8", errors="replace").strip() or "(empty)"
        last = "\n".join(f"  {line}" for line in text.split("\n")[-LAST_LINES:])
        return f"{name} {what}; the end of {shown(path)}:\n{last}"

    def stop(self) -> None:
        """Stop the parts in reverse order, each within STOP_S; a second Ctrl-C kills."""
        requested_before = max(self.stops, 1)
        if self.processes and self.stops:
            print("\nStopping (Ctrl-C again kills) ...", flush=True)
        for name, process in reversed(self.processes.items()):
            if process.poll() is None:
                process.terminate()
            deadline = time.monotonic() + STOP_S
            while process.poll() is None and self.stops <= requested_before and time.monotonic() < deadline:
                time.sleep(0.05)
            if process.poll() is None:
                print(f"{name} did not end by itself and was killed", flush=True)
            kill_group(process)
        if self.stops:
            print("Stopped.", flush=True)


def kill_group(process: "subprocess.Popen[bytes]") -> None:
    """Kill the remaining processes of a part."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
