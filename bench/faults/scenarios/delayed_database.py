"""Scenario ``delayed-database``: a distant database."""

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import make_url

from bench.faults.checker import Findings, History, check
from bench.faults.installation import clock_ms, installation
from bench.faults.jobs import add_watched, stop_watched
from bench.faults.judging import first_starts, percentiles, settled_history, verdict
from bench.faults.proxy import DelayedLink
from tests.acceptance.cluster import APPNAME, Cluster
from tests.acceptance.programs import free_port
from tests.support.eventually import eventually

#: added round-trip times, their duration, and the number of jobs with one run per second
RTTS_MS = (50, 100, 200)
PHASE_S = 25
JOBS = 2
#: later starts are more than slow
LATE_MS = 10_000
SETTLE_S = 60
GIVEN_BACK = re.compile(r"runs given back count=(\d+)")


@dataclass(frozen=True)
class Phase:
    """A round-trip time, and the number of claimed runs given back unsent meanwhile."""

    rtt_ms: int
    from_ms: int
    to_ms: int
    given_back: int


def delayed_database(db: str, folder: Path) -> dict[str, Any]:
    """Round trips of 50, 100 and 200 ms to the database, 25 s each; two runs per second.

    Must hold: every instant is sent once, no later than 10 s after it.
    """
    with installation(db, folder) as cluster:
        url = make_url(cluster.database_url)
        assert url.port is not None
        link = DelayedLink(free_port(), url.port)
        link.start()
        cluster.settings["XXL_JOB_DATABASE_URL"] = url.set(port=link.port).render_as_string(
            hide_password=False
        )
        try:
            group_id = cluster.start_all(appname=APPNAME)
            jobs = [add_watched(cluster.console, group_id) for _ in range(JOBS)]
            eventually(lambda: len(cluster.events("start")) >= JOBS, message="the jobs have started")
            phases = [keep(cluster, link, rtt_ms) for rtt_ms in RTTS_MS]
            link.rtt_ms = 0
            time.sleep(LATE_MS / 1000)
            history, settled_s = settled_history(cluster, stop_watched(cluster.console, jobs), SETTLE_S)
            found = check(history)
            figures = [judge_phase(phase, history, found) for phase in phases]
            return {"settled_s": settled_s, "phases": figures} | verdict(cluster, history, found)
        finally:
            cluster.programs.stop_all()
            link.stop()


def keep(cluster: Cluster, link: DelayedLink, rtt_ms: int) -> Phase:
    """Keep a round-trip time for a while."""
    before, begin = given_back(cluster), clock_ms()
    link.rtt_ms = rtt_ms
    time.sleep(PHASE_S)
    return Phase(rtt_ms, begin, clock_ms(), given_back(cluster) - before)


def given_back(cluster: Cluster) -> int:
    return sum(int(count) for count in GIVEN_BACK.findall(cluster.programs["workers"].output))


def judge_phase(phase: Phase, history: History, found: Findings) -> dict[str, Any]:
    """Return the statistics of one phase by instant; a missing or late start is a violation."""
    starts = first_starts(history)
    rows = [
        row for row in history.rows if row.instant is not None and phase.from_ms < row.instant <= phase.to_ms
    ]
    lags = [starts[row.log_id] - (row.instant or 0) for row in rows if row.log_id in starts]
    late = sum(lag > LATE_MS for lag in lags)
    due = JOBS * PHASE_S
    within = sum(phase.from_ms < wall <= phase.to_ms for wall in starts.values())
    unsent = max(0, due - 1 - len(lags))  # a phase may start and end anywhere in a second
    for count, kind in ((unsent, "not sent"), (late, f"sent more than {LATE_MS} ms late")):
        if count:
            found.violations.append(f"round trip {phase.rtt_ms} ms: {count} of {due} {kind}")
    times = {
        "due": due,
        "starts_within": within,
        "started": len(lags),
        "late": late,
        "given_back": phase.given_back,
    }
    return {"rtt_ms": phase.rtt_ms, **times, "lag_ms": percentiles(lags)}
