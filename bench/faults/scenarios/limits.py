"""Scenario ``limits``: while consoles, schedulers and executors are killed, never a run too many or too late.

Two executors of our own client; jobs that share a named limit, and one that never runs twice at once. What
ran is read from the executors' own journals.
"""

import argparse
import contextlib
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from bench.faults.history import read_events
from bench.faults.installation import database
from bench.faults.jobs import add_watched, stop_watched
from bench.faults.scenarios.random_faults import has_recovered
from bench.faults.site import CLIENTS, OWN, Site
from bench.faults.storm import Storm
from tests.acceptance.cluster import Cluster
from tests.support.databases import migrate
from tests.support.eventually import eventually

#: slots of the named limit
SLOTS = 3
#: seconds that a run takes, weight in the named limit (0: a limit of one run of its own), period in seconds
JOBS = ((5, 1, 4), (8, 1, 7), (13, 2, 17), (30, 1, 25), (90, 1, 60), (6, 0, 4))
#: longest time with a free slot and a run that waits for it
IDLE_MAX_S = 2.0
#: a scheduler that has just started is not expected to be quick
WARM_S = 4.0
SAMPLE_S = 0.2
#: a node has more than these: its supervisor, the scheduler, the archiver and the monitor
PROCESSES = 3
NOT_RUNNING = {psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE}
#: pause between two faults: most runs outlive a few
GAP_S = (2.0, 8.0)
SETTLE_S = 240

OPEN = """
    SELECT f.job_id, f.state, f.deadline_ms FROM xxl_job_fire f
    WHERE f.state IN ('ROUTING', 'SENDING', 'ACCEPTED', 'UNKNOWN', 'HELD', 'WAITING')
    OR (f.state = 'PENDING' AND (f.admitted_ms > 0 OR f.attempt > 0)) ORDER BY f.deadline_ms, f.id
"""


class RecordedStorm(Storm):
    """Storm that remembers when it killed which program."""

    def _kill(self, name: str) -> None:
        super()._kill(name)
        kills[name].append(time.time_ns() // 1_000_000)


kills: defaultdict[str, list[int]] = defaultdict(list)


@dataclass(eq=False)
class Watch(threading.Thread):
    """Looks for slots that stay free while a run waits for them."""

    cluster: Cluster
    nodes: Sequence[str]
    weights: Mapping[int, int]
    #: longest time without a run that waits getting the slot that is free for it, by limit
    idle_s: Counter[str] = field(default_factory=Counter)
    #: looks while a scheduler was up, and runs that waited in them
    looks: int = 0
    waited: int = 0
    highest: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        super().__init__(daemon=True)
        self.stopped = threading.Event()

    def run(self) -> None:
        since: dict[str, float] = {}
        with self.cluster.engine().connect() as connection:
            while not self.stopped.wait(SAMPLE_S):
                if not self._has_scheduler():
                    since.clear()
                    continue
                try:
                    rows = [tuple(row) for row in connection.execute(text(OPEN))]
                    connection.rollback()
                except DBAPIError:
                    since.clear()
                    continue
                self.looks += 1
                since = {name: since.get(name, time.monotonic()) for name in self._idle(rows)}
                for name, at_s in since.items():
                    idle = time.monotonic() - at_s
                    self.idle_s[name] = max(self.idle_s[name], idle)  # type: ignore[assignment]

    def _has_scheduler(self) -> bool:
        """Whether all processes of a node have been running for a while and none is suspended."""
        for name in self.nodes:
            with contextlib.suppress(psutil.NoSuchProcess):
                program = self.cluster.programs[name]
                processes = [psutil.Process(program.pid), *program.workers()]
                ages = [time.time() - process.create_time() for process in processes]
                states = {process.status() for process in processes}
                if len(processes) > PROCESSES and min(ages) > WARM_S and not states & NOT_RUNNING:
                    return True
        return False

    def _idle(self, rows: Sequence[tuple[Any, ...]]) -> list[str]:
        used = Counter[str]()
        first: dict[str, int] = {}
        for job_id, state, _place in rows:
            name, weight = self._limit(job_id)
            if state == "WAITING":
                self.waited += 1
                first.setdefault(name, weight)
            else:
                used[name] += weight
        for name, count in used.items():
            self.highest[name] = max(self.highest[name], count)
        return [name for name, weight in first.items() if used[name] + weight <= slots_of(name)]

    def _limit(self, job_id: int) -> tuple[str, int]:
        weight = self.weights[job_id]
        return ("database", weight) if weight else (f"job {job_id}", 1)


def slots_of(name: str) -> int:
    """Return the slots of a limit of the scenario."""
    return SLOTS if name == "database" else 1


def limits(db: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Consoles, schedulers and executors are killed and suspended while jobs compete for slots."""
    kills.clear()
    with database(db, folder) as (url, server):
        migrate(url)
        site = Site(Cluster(folder, url), options.seed, (OWN,))
        nodes = ("workers-1",) if server is None else ("workers-1", "workers-2")
        try:
            site.start(len(nodes))
            weights, jobs = _add_jobs(site.cluster)
            storm = RecordedStorm(site.cluster, random.Random(options.seed), site.starters, gap_s=GAP_S)
            watch = Watch(site.cluster, nodes, weights)
            watch.start()
            storm.rage(options.seconds)
            eventually(partial(has_recovered, site, storm), 60, "the console is back")
            stop_watched(site.cluster.console, jobs)
            watch.stopped.set()
            eventually(partial(_has_ended, site.cluster), SETTLE_S, "all runs have ended")
            return _verdict(site.cluster, weights, watch, storm)
        finally:
            site.stop()


def _add_jobs(cluster: Cluster) -> tuple[dict[int, int], list[Any]]:
    console = cluster.console
    group_id = console.add_group(OWN)
    console.await_addresses(group_id, len(CLIENTS))
    with cluster.engine().begin() as connection:
        row = {"kind": "named", "name": "database", "slots": SLOTS}
        connection.execute(
            text("INSERT INTO xxl_job_limit (kind, name, slots, epoch) VALUES (:kind, :name, :slots, 0)"), row
        )
        limit_id = connection.scalar(text("SELECT id FROM xxl_job_limit"))
    weights, jobs = {}, []
    for seconds, weight, period in JOBS:
        columns = {"scheduleType": "FIX_RATE", "scheduleConf": str(period), "executorParam": str(seconds)}
        job = add_watched(console, group_id, executorHandler="ok", **columns)
        weights[job.job_id] = weight
        _limit(cluster, job.job_id, limit_id, weight)
        jobs.append(job)
    return weights, jobs


def _limit(cluster: Cluster, job_id: int, limit_id: int, weight: int) -> None:
    """Give a job its share of the named limit, or a limit of its own; what waits is the newest, or all."""
    with cluster.engine().begin() as connection:
        if weight:
            share = {"job": job_id, "limit": limit_id, "weight": weight}
            connection.execute(
                text(
                    "INSERT INTO xxl_job_limit_use (job_id, limit_id, weight) VALUES (:job, :limit, :weight)"
                ),
                share,
            )
        connection.execute(
            text(
                "UPDATE xxl_job_info SET limits = :limits, max_running = :most, when_full = :when_full,"
                " max_wait_s = 120 WHERE id = :id"
            ),
            {
                "limits": f'[{{"limit":"database","weight":{weight}}}]' if weight else None,
                "most": 0 if weight else 1,
                "when_full": "wait" if weight else "newest",
                "id": job_id,
            },
        )


def _has_ended(cluster: Cluster) -> bool:
    open_fires = "SELECT id FROM xxl_job_fire WHERE state <> 'HELD' AND state <> 'PENDING'"
    try:
        return not cluster.select(open_fires)
    except DBAPIError:
        return False


def _verdict(cluster: Cluster, weights: Mapping[int, int], watch: Watch, storm: Storm) -> dict[str, Any]:
    highest, runs = _highest(cluster, weights)
    problems = [
        f"{count} of {slots_of(name)} slots of {name}"
        for source in (highest, watch.highest)
        for name, count in source.items()
        if count > slots_of(name)
    ]
    if not watch.waited:
        problems.append("no run was seen waiting")
    problems += [
        f"{name}: a slot was free for {idle:.1f} s"
        for name, idle in watch.idle_s.items()
        if idle > IDLE_MAX_S
    ]
    states = cluster.select("SELECT trigger_code, handle_code, COUNT(*) AS n FROM xxl_job_log GROUP BY 1, 2")
    skips = cluster.select("SELECT reason, SUM(skipped) AS n FROM xxl_job_skip GROUP BY reason")
    return {
        "faults": dict(storm.counts),
        "runs": runs,
        "results": {f"{row['trigger_code']}/{row['handle_code']}": row["n"] for row in states},
        "skips": {row["reason"]: int(row["n"]) for row in skips},
        "highest": dict(highest),
        "idle_s": {name: round(idle, 2) for name, idle in watch.idle_s.items()},
        "looks": watch.looks,
        "waiting": watch.waited,
        "problems": dict(Counter(problems)),
    }


def _highest(cluster: Cluster, weights: Mapping[int, int]) -> tuple[Counter[str], int]:
    """Return the most slots that were taken at once by limit, and the number of runs, from the journals."""
    steps: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    runs = 0
    for client, journal in cluster.journals.items():
        began: dict[int, tuple[int, int]] = {}
        for event in read_events([journal]):
            if event.event == "start":
                began[event.log_id] = (event.wall_ms, event.job_id)
                runs += 1
            elif event.log_id in began:
                _add(steps, weights, *began.pop(event.log_id), event.wall_ms)
        for begin_ms, job_id in began.values():
            # It ended with its process.
            end_ms = min((at_ms for at_ms in kills[client] if at_ms >= begin_ms), default=begin_ms)
            _add(steps, weights, begin_ms, job_id, end_ms)
    highest = Counter[str]()
    for name, changes in steps.items():
        taken = 0
        for _at_ms, change in sorted(changes):
            taken += change
            highest[name] = max(highest[name], taken)
    return highest, runs


def _add(
    steps: Mapping[str, list[tuple[int, int]]],
    weights: Mapping[int, int],
    begin_ms: int,
    job_id: int,
    end_ms: int,
) -> None:
    weight = weights[job_id]
    name = "database" if weight else f"job {job_id}"
    steps[name] += [(begin_ms, weight or 1), (end_ms, -(weight or 1))]
