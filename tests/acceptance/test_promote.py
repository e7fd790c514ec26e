"""Promotion of a running installation: from SQLite to a server at 50 fires a second, every instant once."""

import re
import signal
from pathlib import Path

import pytest
from sqlalchemy import text

from bench.faults.checker import check
from bench.faults.history import read_history
from tests.acceptance.cluster import Cluster
from tests.acceptance.programs import Program
from tests.support.databases import migrate
from tests.support.eventually import eventually
from tests.support.migrated_databases import databases_key
from tests.support.scheduler_kills import JOBS, SETTLE_S, add_jobs, fires_left, stop_jobs

PROMOTE_S = 60
#: rows that make the copy last long enough to be killed
HISTORY = 5_000
#: longest pause of firing; at more than 7 s instants would be skipped
PAUSE_MS = 7_000


@pytest.fixture
def on_sqlite(clusters: list[Cluster], request: pytest.FixtureRequest, tmp_path: Path) -> Cluster:
    """A cluster on SQLite that fires 50 times a second."""
    url = request.config.stash[databases_key].empty("sqlite")
    migrate(url)
    clusters.append(Cluster(tmp_path, url))
    return clusters[-1]


@pytest.fixture
def new_url(request: pytest.FixtureRequest, server_kind: str) -> str:
    """An empty database of a server."""
    return request.config.stash[databases_key].empty(server_kind)


def runs(cluster: Cluster) -> int:
    return len(cluster.events("start"))


def let_run(cluster: Cluster, count: int) -> None:
    """Wait until the executor has started more runs."""
    more = runs(cluster) + count
    eventually(lambda: runs(cluster) >= more, 60, "runs start")


def start_promotion(cluster: Cluster, url: str) -> Program:
    return cluster.start("promote", "-m", "app", "promote", url)


def restarted(cluster: Cluster) -> str:
    """Return what the console has written since its restart."""
    return cluster.programs["console"].output.partition("restarting on the new one")[2]


def longest_gap_ms(cluster: Cluster) -> int:
    """Return the longest time in which no run arrived at the executor."""
    times = sorted(event["wall_ms"] for event in cluster.events("recv"))
    return max(later - earlier for earlier, later in zip(times, times[1:], strict=False))


def add_history(cluster: Cluster) -> None:
    """Add rows that take a while to copy."""
    row = {"at_ms": 1, "action": "job.start", "changes": "x" * 200}
    with cluster.engine().begin() as connection:
        statement = "INSERT INTO xxl_job_audit (at_ms, action, changes) VALUES (:at_ms, :action, :changes)"
        connection.execute(text(statement), [row] * HISTORY)


def kill_during_copy(cluster: Cluster, url: str) -> None:
    """Start a promotion and kill it with SIGKILL while it copies."""
    recording = "SELECT 1 FROM sqlite_master WHERE name = 'xxl_job_promotion_change'"
    promotion = start_promotion(cluster, url)
    eventually(lambda: cluster.select(recording), PROMOTE_S, "changes are recorded")
    assert promotion.end(signal.SIGKILL) == -signal.SIGKILL


@pytest.mark.extensive
@pytest.mark.timeout(240)
def test_every_instant_has_one_row_while_the_database_moves(on_sqlite: Cluster, new_url: str) -> None:
    cluster = on_sqlite
    group_id = cluster.start_all()
    add_history(cluster)
    jobs = add_jobs(cluster, group_id)
    kill_during_copy(cluster, new_url)
    let_run(cluster, 2 * JOBS)  # the old one goes on
    promotion = start_promotion(cluster, new_url)
    assert promotion.process.wait(PROMOTE_S) == 0, promotion.output
    cluster.database_url = new_url
    eventually(lambda: "console started" in restarted(cluster), 60, "the console restarts")
    let_run(cluster, 2 * JOBS)
    cluster.console.login()
    jobs = stop_jobs(cluster, jobs)
    eventually(lambda: fires_left(cluster) == 0, SETTLE_S, "everything on its way has ended")
    print(promotion.output, f"longest gap: {longest_gap_ms(cluster)} ms")  # noqa: T201

    found = check(read_history(cluster.engine(), jobs, cluster.journals.values()))
    print(found.counts)  # noqa: T201
    assert found.problems == {}, found.report()
    assert found.counts["expected"] >= 4 * JOBS
    assert longest_gap_ms(cluster) < PAUSE_MS
    assert {skip["reason"] for skip in cluster.select("SELECT reason FROM xxl_job_skip")} <= {"stopped"}
    assert "Traceback" not in "".join(program.output for program in cluster.programs.started)
    assert re.search(r"moved to .*: \d+ rows", promotion.output)
