"""Helpers of the tests of acceptance, for all that need them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from app.clock import now_ms
from bench.faults.checker import Findings, Watched, check
from bench.faults.history import read_history
from tests.acceptance.cluster import Cluster
from tests.support.databases import migrate
from tests.support.eventually import eventually
from tests.support.migrated_databases import databases_key

#: lines shown of each program of a failed test
LAST_LINES = 60


clusters_key = pytest.StashKey[list[Cluster]]()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Add the output of the programs to the report of a failed test."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if not report.failed:
        return
    for cluster in item.config.stash.get(clusters_key, []):
        for name, output in cluster.programs.outputs().items():
            last = "\n".join(output.splitlines()[-LAST_LINES:])
            report.sections.append((f"{name} wrote", last))


@contextmanager
def shared(config: pytest.Config, kind: str, folder: Path) -> Iterator[Cluster]:
    """A cluster on an empty, migrated database of a kind, for several tests; nothing runs yet."""
    url = config.stash[databases_key].empty(kind)
    migrate(url)
    made = Cluster(folder, url, forks=True)
    alive = config.stash.setdefault(clusters_key, [])
    alive.append(made)
    try:
        yield made
    finally:
        alive.remove(made)
        stubborn = made.programs.stop_all()
    assert stubborn == [], "programs did not end when requested"


JOBS = 30


#: time for everything in progress to end after the test: leases, evidence, results
SETTLE_S = 60


def add_jobs(cluster: Cluster, group_id: int, count: int = JOBS) -> list[Watched]:
    """Add jobs that fire every second."""
    jobs = []
    for number in range(count):
        kind, conf = ("FIX_RATE", "1") if number % 5 == 0 else ("CRON", "* * * * * ?")
        requested_ms = now_ms()
        job_id = cluster.console.add_job(
            group_id, scheduleType=kind, scheduleConf=conf, misfireStrategy="DO_NOTHING", triggerStatus=1
        )
        jobs.append(Watched(job_id, kind, conf, start=(requested_ms, now_ms()), stop=(0, 0)))
    return jobs


def settle(cluster: Cluster, jobs: list[Watched]) -> Findings:
    """Stop all jobs, wait until everything has ended, and check."""
    stopped = []
    for job in jobs:
        requested_ms = now_ms()
        cluster.console.stop(job.job_id)
        stopped.append(replace(job, stop=(requested_ms, now_ms())))
    eventually(lambda: count_of(cluster, "xxl_job_fire") == 0, SETTLE_S, "everything on its way has ended")
    return check(read_history(cluster.engine(), stopped, cluster.journals.values()))


def count_of(cluster: Cluster, table: str, condition: str = "1 = 1") -> int:
    return int(cluster.select(f"SELECT count(*) AS found FROM {table} WHERE {condition}")[0]["found"])


def run_for(cluster: Cluster, seconds: float) -> None:
    """Let runs arrive for this number of seconds."""
    until = time.monotonic() + seconds
    eventually(lambda: time.monotonic() > until and cluster.events("recv"), seconds + 30)


def owners(cluster: Cluster, jobs: list[Watched]) -> set[str]:
    """Return the nodes that claimed runs of these jobs, according to the traces."""
    since = min(job.job_id for job in jobs)
    traces = cluster.select(
        "SELECT trigger_msg FROM xxl_job_log WHERE job_id >= :since AND trigger_msg LIKE '%Claimed%'",
        since=since,
    )
    lines = [line for row in traces for line in row["trigger_msg"].splitlines() if line.startswith("Claimed")]
    return {line.rpartition("node ")[2] for line in lines}
