"""Cluster: a whole installation for one test; database, console, workers and executors are real processes."""

import json
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import psutil
from sqlalchemy import Engine, NullPool, create_engine, text

from tests.acceptance.console import ADMIN_PASSWORD, Console
from tests.acceptance.programs import Program, Programs, free_port, wait_for
from tests.support.eventually import eventually

TOKEN = "acceptance-token-0123456789"
#: nodes of one database share it, whatever their home folders
SECRET_KEY = "acceptance-key-0123456789-0123456789"
APPNAME = "recorder"


@dataclass
class Cluster:
    """Programs of one test on one database."""

    folder: Path
    database_url: str
    settings: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    #: whether programs are forked from loaded modules: quicker, but measures nothing of a start
    forks: bool = False

    def __post_init__(self) -> None:
        self.programs = Programs(self.folder)
        self.console = Console(f"http://127.0.0.1:{self.port}/xxl-job-admin")
        #: executor -> its journal
        self.journals: dict[str, Path] = {}
        self._others: dict[int, set[int]] = {}

    @property
    def environ(self) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("XXL_JOB_")}
        return clean | {
            "XXL_JOB_HOME": str(self.folder / "home"),
            "XXL_JOB_DATABASE_URL": self.database_url,
            "XXL_JOB_PORT": str(self.port),
            "XXL_JOB_ACCESS_TOKEN": TOKEN,
            "XXL_JOB_SECRET_KEY": SECRET_KEY,
            "XXL_JOB_ADMIN_PASSWORD": ADMIN_PASSWORD,
            "XXL_JOB_TIMEZONE": "UTC",
            "PYTHONUNBUFFERED": "1",
            **self.settings,
        }

    def beside(self, name: str) -> Self:
        """Return a cluster on the same database with another folder; stopped with this one."""
        folder = self.folder / re.sub(r"\W", "-", name)
        folder.mkdir()
        other = replace(self, folder=folder)
        other.programs.started = self.programs.started
        return other

    def start(self, name: str, *arguments: str, **settings: str) -> Program:
        """Start a Python program of this checkout."""
        if self.forks:
            return self.programs.fork(name, arguments, self.environ | settings)
        return self.programs.start(name, [sys.executable, *arguments], self.environ | settings)

    def start_console(self, name: str = "console", *, wait: bool = True) -> Program:
        """Start the console; returns when it answers."""
        program = self.start(name, "wsgi.py")
        if wait:
            wait_for(program, self.console.answers, "it answers")
        return program

    def start_workers(self, name: str = "workers") -> Program:
        """Start the workers; returns when all children have started."""
        program = self.start(name, "-m", "workers", XXL_JOB_NODE_NAME=name)
        started_before = program.output.count("scheduler started")
        wait_for(
            program,
            lambda: program.output.count("scheduler started") > started_before,
            "the scheduler has started",
        )
        wait_for(program, lambda: len(program.workers()) > 2, "all children have started")
        self._others[program.pid] = {child.pid for child in program.workers()[1:]}
        return program

    def scheduler(self, name: str = "workers") -> psutil.Process | None:
        """Return the scheduler child of a workers program, or None."""
        program = self.programs[name]
        others = [
            child
            for child in program.workers()
            if child.pid not in self._others[program.pid] and child.status() != psutil.STATUS_ZOMBIE
        ]
        return others[0] if others else None

    def start_recorder(self, name: str = "recorder", *options: str, port: int = 0) -> Program:
        """Start a recording executor; an existing journal is continued."""
        journal = self.folder / f"{name}.jsonl"
        self.journals[name] = journal
        where = [
            "--admin",
            self.console.address,
            "--token",
            TOKEN,
            "--journal",
            str(journal),
            "--port",
            str(port or free_port()),
        ]
        return self.start(name, "bench/faults/recording_executor.py", *where, *options)

    def start_client(
        self, *modules: str, appname: str, name: str = "client", port: int = 0, **settings: str
    ) -> Program:
        """Start our own executor client with the handlers of these modules."""
        where = ["--admin", self.console.address, "--appname", appname, "--port", str(port or free_port())]
        home = {"XXL_JOB_HOME": str(self.folder / f"home-{name}"), **settings}
        return self.start(name, "-m", "executor_client", *modules, *where, **home)

    def await_console(self, program: Program) -> None:
        """Wait until a started console answers, and log in."""
        wait_for(program, self.console.answers, "it answers")
        self.console.login()

    def start_all(self, start_executor: Callable[[], Program] | None = None, appname: str = APPNAME) -> int:
        """Start console, recording executor and workers, log in; return the executor's group id."""
        console = self.start_console(wait=False)
        (start_executor or self.start_recorder)()
        self.start_workers()
        self.await_console(console)
        group_id = self.console.add_group(appname)
        self.console.await_addresses(group_id)
        return group_id

    def kill_scheduler(self) -> None:
        """Kill the scheduler child with SIGKILL as soon as it exists."""
        victim = eventually(self.scheduler, message="there is a scheduler child")
        assert victim is not None
        victim.send_signal(signal.SIGKILL)

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        """Return the events recorded by the executors, of some kinds or of all."""
        journals = [path.read_text() for path in self.journals.values() if path.exists()]
        # the last line may be in the middle of being written
        lines = [line for journal in journals for line in journal.rpartition("\n")[0].splitlines()]
        found = [json.loads(line) for line in lines]
        return [event for event in found if not kinds or event["event"] in kinds]

    def engine(self) -> Engine:
        """Return an engine of the test's own, without the product's settings."""
        return create_engine(self.database_url, poolclass=NullPool)

    def select(self, sql: str, **parameters: Any) -> list[Mapping[str, Any]]:
        """Read rows directly from the database."""
        engine = self.engine()
        with engine.connect() as connection:
            return [dict(row) for row in connection.execute(text(sql), parameters).mappings()]
