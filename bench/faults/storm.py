"""Storm of faults and repairs from a seed: kill -9, SIGSTOP, restarts."""

import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import psutil

from tests.acceptance.cluster import Cluster
from tests.acceptance.database_server import DatabaseServer
from tests.acceptance.programs import Program

#: usual pause between two faults
GAP_S = (0.4, 1.6)
#: duration of a SIGSTOP
STOPPED_S = (0.3, 6.0)
#: downtime after a kill
AWAY_S = (0.0, 3.0)
#: how long a killed program is spared: one that never starts can do no harm
SPARED_S = {"workers": 8.0, "console": 5.0, "database": 8.0}
#: exit code of a program that could not open the database at its start
NO_DATABASE = 2


@dataclass
class Storm:
    """Faults on one cluster; ``starters`` start each program again."""

    cluster: Cluster
    dice: random.Random
    starters: dict[str, Callable[[], Program]]
    database: DatabaseServer | None = None
    #: shortest and longest pause between two faults
    gap_s: tuple[float, float] = GAP_S
    counts: Counter[str] = field(default_factory=Counter)
    #: pending repairs and their times
    later: list[tuple[float, Callable[[], object]]] = field(default_factory=list)
    away: set[str] = field(default_factory=set)
    #: killed programs, and until when they are spared
    spared: dict[str, float] = field(default_factory=dict)

    def rage(self, seconds: float) -> None:
        """Cause faults until the time is up, then repair everything."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._repair(time.monotonic())
            self._strike()
            self._wait(self.dice.uniform(*self.gap_s))
        while self.later:
            self._repair(time.monotonic())
            self._wait(0.1)

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(0.05)
            self._repair(time.monotonic())

    def start_again(self) -> None:
        """Start programs that have ended because the database was away, as a service manager does."""
        for name in self.starters:
            if name not in self.away and self.cluster.programs[name].process.poll() == NO_DATABASE:
                self.counts[f"start {name} again"] += 1
                self.away.add(name)
                self._start(name)

    def _repair(self, now_s: float) -> None:
        self.start_again()
        due = [act for at_s, act in self.later if at_s <= now_s]
        self.later = [(at_s, act) for at_s, act in self.later if at_s > now_s]
        for act in due:
            act()

    def _strike(self) -> None:
        name = self.dice.choice([*self.starters, *(["database"] if self.database else [])])
        if name in self.away or time.monotonic() < self.spared.get(name, 0.0):
            return
        kill = self.dice.random() < 0.65
        if kill:
            self.spared[name] = time.monotonic() + SPARED_S.get(name.partition("-")[0], 0.0)
        if name == "database":
            self._strike_database(kill=kill)
        elif kill:
            self._kill(name)
        else:
            self._stop(name)

    def _kill(self, name: str) -> None:
        program = self.cluster.programs[name]
        children = program.workers()
        if children and self.dice.random() < 0.5:
            self.counts[f"kill child of {name}"] += 1
            victim = self.dice.choice(children)
            _signal(victim, signal.SIGKILL)  # its supervisor starts it again
            return
        self.counts[f"kill {name}"] += 1
        self.away.add(name)
        program.kill()
        self._later(self.dice.uniform(*AWAY_S), lambda: self._start(name))

    def _start(self, name: str) -> None:
        if "database" in self.away and name.startswith(("console", "workers")):  # it would end at once
            self._later(1.0, lambda: self._start(name))
            return
        self.starters[name]()
        self.away.discard(name)

    def _stop(self, name: str) -> None:
        program = self.cluster.programs[name]
        victims = [
            process for process in [psutil.Process(program.pid), *program.children()] if process.is_running()
        ]
        victim = self.dice.choice(victims[-2:])
        self.counts[f"stop {name}"] += 1
        _signal(victim, signal.SIGSTOP)
        self._later(self.dice.uniform(*STOPPED_S), lambda: _signal(victim, signal.SIGCONT))

    def _strike_database(self, *, kill: bool) -> None:
        assert self.database is not None
        self.counts["kill database" if kill else "stop database"] += 1
        self.away.add("database")
        if kill:
            self.database.kill()
            self._later(self.dice.uniform(*AWAY_S), self._start_database)
        else:
            self.database.freeze()
            self._later(self.dice.uniform(*STOPPED_S), self._thaw_database)

    def _start_database(self) -> None:
        assert self.database is not None
        self.database.start_again()
        self.away.discard("database")

    def _thaw_database(self) -> None:
        assert self.database is not None
        self.database.thaw()
        self.away.discard("database")

    def _later(self, seconds: float, act: Callable[[], object]) -> None:
        self.later.append((time.monotonic() + seconds, act))


def _signal(process: psutil.Process, number: int) -> None:
    """Send a signal to a process that may have ended."""
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        pass
