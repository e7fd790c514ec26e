"""Development runner: ``python -m app.dev.run`` starts console, workers and a demo executor until Ctrl-C.

``python3 manage.py run`` calls it after the set-up. On a server the parts are services: docs/operations.md.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType

from app.errors import NotConfigured
from app.runtime.program import end_with_parent
from app.settings.config import Config
from app.settings.console_address import answers, console_address
from app.settings.home import SECRET_MODE, access_tokens, prepare_home

ROOT = Path(__file__).resolve().parents[2]
#: seconds a part may take to answer after its start, and to end after SIGTERM
START_S = 60
STOP_S = 25
#: lines shown of the log of a part that failed
LAST_LINES = 12
#: the demo executor's application name, known to `flask seed-demo` too
DEMO_APPNAME = "xxl-job-executor-sample"
#: in the executor's log once a console has accepted it
REGISTERED = " registered admin="
FLASK = (sys.executable, "-m", "flask", "--app", "wsgi")


class RunError(Exception):
    """The run cannot continue; the text is shown to the user."""


def main() -> int:
    argparse.ArgumentParser(
        prog="python -m app.dev.run",
        description="Start console, workers and a demo executor in the foreground until Ctrl-C.",
        epilog="Settings are the variables of docs/configuration.md, and XXL_JOB_EXECUTOR_PORT.",
    ).parse_args()
    try:
        run()
    except (RunError, NotConfigured) as exc:
        print(f"error: {exc}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130
    return 0


def run() -> None:
    """Start console, workers and demo executor, print how to log in, and stop all three in order."""
    config = Config.from_env()
    prepare_home(config.home)
    token = access_tokens(config)[0]
    executor_port = read_port("XXL_JOB_EXECUTOR_PORT", 9999)
    require_free("XXL_JOB_PORT", config.host, config.port)
    address = console_address(config)
    parts = Parts(config.home / "logs")
    try:
        parts.once("schema", [*FLASK, "db", "upgrade"])
        parts.start("console", [sys.executable, "wsgi.py"])
        parts.wait("console", lambda: answers(f"{address}/health"))
        # The executor starts before anything fires, because a run without it would fail.
        has_demo = start_demo(parts, demo_command(config, address, executor_port), executor_port, token)
        parts.start("workers", [sys.executable, "-m", "workers"])
        if has_demo:
            parts.once("demo job", [*FLASK, "seed-demo"])
        parts.wait("workers", lambda: answers(f"{address}/ready", error=False), "scan")
        if not parts.stops:
            welcome(address, config.home, password_given=bool(config.admin_password))
        parts.watch()
    finally:
        parts.stop()


def demo_command(config: Config, address: str, port: int) -> list[str]:
    """Return the command of the demo executor, which listens on loopback only.

    It allows GLUE in Python only to a console that is on loopback, too; a setting of the user comes first.
    """
    command = [sys.executable, "-m", "executor_client", "executor_client.demo"]
    command += ["--admin", address, "--appname", DEMO_APPNAME, "--host", "127.0.0.1", "--port", str(port)]
    is_set = bool(os.environ.get("XXL_JOB_EXECUTOR_ALLOW_GLUE"))
    return command + (["--allow-glue", "python"] if config.on_loopback and not is_set else [])


def start_demo(parts: "Parts", command: Sequence[str], port: int, token: str) -> bool:
    """Start the demo executor and wait until it is registered; otherwise print why there is none."""
    try:
        require_free("XXL_JOB_EXECUTOR_PORT", "127.0.0.1", port)
        parts.start("executor", command, XXL_JOB_ACCESS_TOKEN=token)
        log = parts.log_path("executor")
        parts.wait("executor", lambda: REGISTERED in log.read_text(errors="replace"), "register")
    except RunError as exc:
        parts.drop("executor")
        print(f"There is no demo executor, and no demo job is added: {exc}", flush=True)
        return False
    return True


def read_port(variable: str, default: int) -> int:
    """Return the port in an environment variable; raise Failed if it is invalid."""
    text = os.environ.get(variable) or str(default)
    if not text.isdigit() or not 0 < int(text) < 65536:
        raise RunError(f"{variable}={text!r}: a whole number from 1 to 65535 is needed")
    return int(text)


def require_free(variable: str, host: str, port: int) -> None:
    """Raise Failed if a port cannot be listened on; ``variable`` names the setting to change."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as exc:
            raise RunError(
                f"port {port} on {host} cannot be used ({exc.strerror}); choose another one: {variable}=..."
            ) from exc


def welcome(address: str, home: Path, *, password_given: bool) -> None:
    """Print the address, the first password if it is still valid, and what to do next."""
    password, where = "(was changed)", "only as a hash, in the database"
    if password_given:
        password = "the one in XXL_JOB_ADMIN_PASSWORD"
    elif (file := home / "admin_password").exists():
        password, where = file.read_text(encoding="utf-8").strip(), f"{shown(file)}, until you change it"
    print(
        f"""
ready           console and workers run, jobs are fired
open            {address}/
user            admin
admin password: {password}
stored in       {where}
then            log in, choose your own password, run a demo job from its menu, open its log
stop            Ctrl-C""",
        flush=True,
    )


def shown(path: Path) -> Path:
    """Return a path, relative if it is inside the repository."""
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


class Parts:
    """Started processes in order; each writes to its own log file."""

    def __init__(self, logs: Path) -> None:
        self.logs = logs
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
                cwd=ROOT,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **environ},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
        print(f"{name:<15} {shown(path)}", flush=True)

    def once(self, name: str, command: Sequence[str]) -> None:
        """Run a part to its end; raise Failed if it fails."""
        self.start(name, command)
        if self.stops:
            return
        code = self.processes[name].wait()
        del self.processes[name]
        if code != 0:
            raise RunError(self.describe(name, "failed"))

    def wait(self, name: str, ready: Callable[[], bool], what: str = "answer") -> None:
        """Wait until a part is ready; raise Failed after START_S, or if a part ends."""
        deadline = time.monotonic() + START_S
        while not self.stops and not ready():
            self.require_alive()
            if time.monotonic() > deadline:
                raise RunError(self.describe(name, f"did not {what} within {START_S} s"))
            time.sleep(0.1)

    def drop(self, name: str) -> None:
        """Kill a part that failed, if it was started; the others go on."""
        if process := self.processes.pop(name, None):
            kill_group(process)

    def watch(self) -> None:
        """Wait until a stop is requested; raise Failed if a part ends by itself."""
        while not self.stops:
            self.require_alive()
            time.sleep(0.2)

    def require_alive(self) -> None:
        """Raise Failed if a part has ended."""
        for name, process in self.processes.items():
            code = process.poll()
            if code is not None:
                how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
                raise RunError(self.describe(name, how))

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


if __name__ == "__main__":
    sys.exit(main())
