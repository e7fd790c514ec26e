"""Process 1 of the container image: starts the parts of a role, see docs/containers.md.

It starts the parts as children, hands signals on to them and reaps processes that lost their parent. A part
that ends by itself ends the container, which its restart policy starts again.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

PARTS: Mapping[str, Sequence[str]] = {"console": ("-m", "wsgi"), "workers": ("-m", "workers")}
ROLES: Mapping[str, Sequence[str]] = {"console": ["console"], "workers": ["workers"], "all": [*PARTS]}
HELP = """\
usage: python -m app.container ROLE

Starts the parts of a role and passes signals on to them, as process 1 of the container image.

roles:
  console  the console; upgrades the schema before it starts
  workers  scheduler, archiver and monitor
  all      both, for a single container

The settings are the variables XXL_JOB_…, see docs/configuration.md and docs/containers.md.
"""
UPGRADE = ("-m", "app", "db", "upgrade")
#: of the container if a part was killed, or ended without a signal
EXIT_ENDED = 1
EXIT_USAGE = 2


def main(arguments: Sequence[str]) -> int:
    """Run a role until a signal or the end of one of its parts; return the exit code."""
    role = " ".join(arguments)
    if role in ("-h", "--help"):
        sys.stdout.write(HELP)
        return 0
    if role not in ROLES:
        print(f"container: expected the role {', '.join(ROLES)}; found {role!r}", file=sys.stderr)
        return EXIT_USAGE
    return Container(ROLES[role]).run()


class Container:
    """The parts of one role and their processes."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._processes: dict[int, str] = {}
        self._stopping = False

    def run(self) -> int:
        """Run until a signal, or until a part ends; return the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda _number, _frame: self._stop())
        if "console" in self._names:
            # It has a session of its own, so that a stop waits for it: half an upgrade is worse.
            code = subprocess.run([sys.executable, *UPGRADE], start_new_session=True, check=False).returncode
            if code != 0 or self._stopping:
                return code
        for name in self._names:
            process = subprocess.Popen([sys.executable, *PARTS[name]])
            self._processes[process.pid] = name
            if self._stopping:  # A signal came while it was being started.
                process.terminate()
        return self._wait()

    def _wait(self) -> int:
        code = 0
        while self._processes:
            pid, status = os.wait()
            name = self._processes.pop(pid, None)
            if name is not None and not self._stopping:
                exit_code = os.waitstatus_to_exitcode(status)
                print(f"container: {name} ended with exit code {exit_code}", file=sys.stderr)
                code = exit_code if exit_code > 0 else EXIT_ENDED
                self._stop()
        return code

    def _stop(self) -> None:
        """Ask the parts to end, once: the workers take a second signal as impatience."""
        if not self._stopping:
            self._stopping = True
            for pid in self._processes:
                with suppress(ProcessLookupError):  # It may have been reaped a moment ago.
                    os.kill(pid, signal.SIGTERM)
