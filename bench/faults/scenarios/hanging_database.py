"""Scenario ``hanging-database``: a database server that hangs for longer than its answers are waited for."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import make_url

from bench.faults.checker import Watched, check
from bench.faults.installation import clock_ms, database
from bench.faults.jobs import add_watched, stop_watched
from bench.faults.judging import settled_history, verdict
from bench.faults.proxy import DelayedLink
from tests.acceptance.cluster import APPNAME, Cluster
from tests.acceptance.database_server import DatabaseServer
from tests.acceptance.programs import free_port
from tests.support.databases import migrate
from tests.support.eventually import eventually

ANSWER_S = 5
#: long enough for every thread to give up its connection, and to fail to open another
HANGS_S = 20.0
JOBS = 10
#: firing resumes this long after the server answers again
RESUMES_MS = 10_000
#: runs that were sent before the fault start by then
ON_THEIR_WAY_MS = 1_000
#: what goes on between the faults
GOES_ON_S = 5.0
SETTLE_S = 120
#: a wait that was given up, and what must not be logged
GIVEN_UP = re.compile(r"no answer within|timed out")
STUCK = ("loop stuck", "child hangs", "child died", "child killed", "Traceback")


@dataclass(frozen=True)
class Phase:
    """A fault: how it begins, how long it lasts, and how it ends."""

    server: str
    begin: Callable[[], None]
    hangs_s: float
    end: Callable[[], None]


def hanging_database(db: str, folder: Path) -> dict[str, Any]:
    """The server hangs for 20 s three times, with 5 s for its answers: it goes on, is restarted, is replaced.

    Suspended for the first two; for the third a link falls silent on all open connections, and new ones work
    at once. Must hold: waits are given up while it hangs, firing resumes within 10 s, nothing is lost or
    doubled, and no child of the workers hangs or dies.
    """
    with database(db, folder) as (url, server):
        assert server is not None
        migrate(url)
        link = DelayedLink(free_port(), make_url(url).port or 0)
        link.start()
        linked = make_url(url).set(port=link.port).render_as_string(hide_password=False)
        settings = {"XXL_JOB_DATABASE_URL": linked, "XXL_JOB_DATABASE_ANSWER_S": str(ANSWER_S)}
        cluster = Cluster(folder, url, settings)
        try:
            jobs = start_jobs(cluster)
            phases = [play(cluster, phase) for phase in phases_of(server, link)]
            history, settled_s = settled_history(cluster, stop_watched(cluster.console, jobs), SETTLE_S)
            found = check(history)
            found.violations += violations(cluster, phases)
            return {"settled_s": settled_s, "phases": phases} | verdict(cluster, history, found)
        finally:
            cluster.programs.stop_all()
            link.stop()


def phases_of(server: DatabaseServer, link: DelayedLink) -> list[Phase]:
    """Return the faults."""

    def restart() -> None:
        server.kill()
        server.start_again()

    return [
        Phase("goes on", server.freeze, HANGS_S, server.thaw),
        Phase("is restarted", server.freeze, HANGS_S, restart),
        Phase("is replaced", link.fall_silent, 0.0, lambda: None),
    ]


def start_jobs(cluster: Cluster) -> list[Watched]:
    """Start the programs and the jobs; return the jobs once runs have started."""
    group_id = cluster.start_all(appname=APPNAME)
    misfires = [("DO_NOTHING", "FIRE_ONCE_NOW")[number % 2] for number in range(JOBS)]
    jobs = [add_watched(cluster.console, group_id, misfireStrategy=misfire) for misfire in misfires]
    await_a_start(cluster, clock_ms())
    return jobs


def play(cluster: Cluster, phase: Phase) -> dict[str, Any]:
    """Let the server hang, then end that; return what was seen."""
    before = given_up(cluster)
    phase.begin()
    time.sleep(phase.hangs_s)
    phase.end()
    resumed_ms = await_a_start(cluster, clock_ms())
    time.sleep(GOES_ON_S)
    return {"server": phase.server, "given_up": given_up(cluster) - before, "resumed_ms": resumed_ms}


def given_up(cluster: Cluster) -> int:
    return len(GIVEN_UP.findall(cluster.programs["workers"].output))


def await_a_start(cluster: Cluster, since_ms: int) -> int:
    """Wait until runs start that were not on their way before; return the time since then."""
    later_ms = since_ms + ON_THEIR_WAY_MS

    def later() -> list[int]:
        return [event["wall_ms"] for event in cluster.events("start") if event["wall_ms"] > later_ms]

    return min(eventually(later, 120, "firing goes on")) - since_ms


def violations(cluster: Cluster, phases: list[dict[str, Any]]) -> list[str]:
    """Return what was against the scenario, besides what the checker finds."""
    late = [
        f"firing resumed {phase['resumed_ms']} ms late"
        for phase in phases
        if phase["resumed_ms"] > RESUMES_MS
    ]
    # the log has the same fault of the database once a minute, so not for each phase
    waits = [] if any(phase["given_up"] for phase in phases) else ["no wait was given up"]
    output = cluster.programs["workers"].output
    return late + waits + [f"the workers log {word!r}" for word in STUCK if word in output]
