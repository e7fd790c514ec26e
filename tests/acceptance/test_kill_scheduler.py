"""SIGKILL of scheduler and console, repeatedly at 50 fires a second: no instant is lost or doubled."""

import os
import random
import signal
import time
from dataclasses import dataclass, field

import pytest

from bench.faults.checker import check
from bench.faults.history import read_history
from tests.acceptance.cluster import Cluster
from tests.support.eventually import eventually
from tests.support.scheduler_kills import JOBS, SETTLE_S, add_jobs, fires_left, stop_jobs

#: seconds of the storm; XXL_TEST_KILL_S for another number
SECONDS = 12
#: the supervisor waits longer after each death; after more deaths the pause would be a misfire
SCHEDULER_DEATHS = 5
#: longest pause without a skip: fires are read 5 s ahead and a misfire is 5 s late, less a margin
COVERED_S = 7.0


@dataclass
class Storm:
    """Kills, and the scheduler's pause after each of them."""

    cluster: Cluster
    dice: random.Random
    seconds: float
    pauses_s: list[float] = field(default_factory=list)
    consoles: int = 0

    def rage(self) -> None:
        """Kill until the time is up and the scheduler has died at least twice."""
        until = time.monotonic() + self.seconds
        gap_s = self.seconds / (2 * SCHEDULER_DEATHS)
        while time.monotonic() < until or len(self.pauses_s) < 2:
            quiet_until = time.monotonic() + self.dice.uniform(0.1, gap_s)
            eventually(lambda until=quiet_until: time.monotonic() > until, self.seconds)
            if len(self.pauses_s) < SCHEDULER_DEATHS and self.dice.random() < 0.6:
                self.kill_scheduler()
            else:
                self.kill_console()

    def kill_scheduler(self) -> None:
        """Kill the scheduler, occasionally also its successor during start-up."""
        began, starts = time.monotonic(), self.starts()
        self.cluster.kill_scheduler()
        if self.dice.random() < 0.2:
            self.pauses_s.append(0.0)
            self.cluster.kill_scheduler()
        eventually(lambda: self.starts() > starts, 60, "the supervisor has started a new scheduler")
        self.pauses_s.append(time.monotonic() - began)

    def starts(self) -> int:
        return self.cluster.programs["workers"].output.count("scheduler started")

    def kill_console(self) -> None:
        assert self.cluster.programs["console"].end(signal.SIGKILL) == -signal.SIGKILL
        self.cluster.start_console()
        self.consoles += 1


@pytest.mark.databases("sqlite")
@pytest.mark.timeout(420)
def test_every_instant_has_one_row_whatever_is_killed(cluster: Cluster) -> None:
    check_storm(cluster)


@pytest.mark.extensive
@pytest.mark.databases("postgresql")
@pytest.mark.timeout(420)
def test_every_instant_has_one_row_on_a_server_too(cluster: Cluster) -> None:
    """By default tests/acceptance/test_nodes.py kills a node on each kind of server."""
    check_storm(cluster)


def check_storm(cluster: Cluster) -> None:
    seed = int(os.environ.get("XXL_TEST_SEED") or random.SystemRandom().randrange(2**32))
    print(f"XXL_TEST_SEED={seed}")  # noqa: T201
    storm = Storm(cluster, random.Random(seed), float(os.environ.get("XXL_TEST_KILL_S") or SECONDS))
    group_id = cluster.start_all()
    jobs = add_jobs(cluster, group_id)
    storm.rage()
    jobs = stop_jobs(cluster, jobs)
    eventually(lambda: fires_left(cluster) == 0, SETTLE_S, "everything on its way has ended")

    found = check(read_history(cluster.engine(), jobs, cluster.journals.values()))
    summary = f"scheduler pauses: {storm.pauses_s}, console kills: {storm.consoles}, {found.counts}"
    print(summary)  # noqa: T201
    assert found.problems == {}, found.report()
    assert found.counts["expected"] >= JOBS * storm.seconds
    assert storm.pauses_s
    if max(storm.pauses_s) < COVERED_S:
        assert {skip["reason"] for skip in cluster.select("SELECT reason FROM xxl_job_skip")} <= {"stopped"}
