"""A private database server that can be frozen, killed and restarted on the same port with the same data."""

import os
import pwd
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import psutil
from sqlalchemy.exc import SQLAlchemyError

from tests.acceptance.programs import START_S, STOP_S
from tests.support.databases import STARTERS, USERS, Server
from tests.support.eventually import eventually


class DatabaseServer:
    """A durable server: commits survive SIGKILL."""

    def __init__(self, kind: str, folder: Path, options: Sequence[str] = ()) -> None:
        self._folder = folder / kind
        self._user = USERS[kind] if os.geteuid() == 0 else None
        self.server: Server = STARTERS[kind](self._folder, durable=True, options=options)

    def processes(self) -> list[psutil.Process]:
        """Return the server and its children; PostgreSQL has one per connection."""
        assert self.server.process is not None
        root = psutil.Process(self.server.process.pid)
        return [root, *root.children(recursive=True)]

    def freeze(self) -> None:
        """Suspend it, as when a machine swaps: connections stay open, nothing answers."""
        for process in self.processes():
            process.suspend()

    def thaw(self) -> None:
        for process in reversed(self.processes()):
            process.resume()

    def kill(self) -> None:
        """SIGKILL for the server and all its children."""
        assert self.server.process is not None
        doomed = self.processes()
        for process in doomed:
            process.kill()
        self.server.process.wait(STOP_S)
        psutil.wait_procs(doomed[1:], STOP_S)

    def start_again(self) -> None:
        """Start it again with the same settings; returns when it answers."""
        assert self.server.process is not None
        group = pwd.getpwnam(self._user).pw_gid if self._user else None
        with (self._folder / "log").open("ab") as log:
            process = subprocess.Popen(
                self.server.process.args,
                cwd=self._folder,
                env={**os.environ, "LC_ALL": "C", "TZ": "UTC"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                user=self._user,
                group=group,
                extra_groups=[] if self._user else None,
            )
        self.server = replace(self.server, process=process)
        eventually(self._answers, START_S, "the database server answers again")

    def _answers(self) -> bool:
        try:
            self.server.check()
        except SQLAlchemyError:
            return False
        return True

    def stop(self) -> None:
        if self.server.process is not None and self.server.process.poll() is None:
            for process in self.processes():
                process.send_signal(signal.SIGCONT)
        self.server.stop()
