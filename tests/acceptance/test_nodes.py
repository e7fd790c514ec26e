"""Several scheduler nodes on one database server: kills and locks lose and double nothing."""

from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest
from sqlalchemy import text

from app.clock import now_ms
from tests.acceptance.cluster import Cluster
from tests.support.acceptance import JOBS, add_jobs, count_of, owners, run_for, settle, shared
from tests.support.eventually import eventually

#: the fires of a dead node start elsewhere within this time
HAND_OVER_MS = 3_000


def lags(cluster: Cluster, from_ms: int, until_ms: int) -> list[int]:
    """Return the delays of the runs of these instants at the executor."""
    rows = cluster.select(
        "SELECT id, fire_time FROM xxl_job_log WHERE fire_time >= :a AND fire_time < :b",
        a=from_ms,
        b=until_ms,
    )
    received_ms = {event["log_id"]: event["wall_ms"] for event in cluster.events("recv")}
    return [received_ms[row["id"]] - row["fire_time"] for row in rows]


@contextmanager
def holding_lock(cluster: Cluster) -> Iterator[None]:
    """Hold the schedule lock as a Java admin does."""
    engine = cluster.engine()
    with engine.connect() as connection, connection.begin():
        connection.execute(text("SELECT * FROM xxl_job_lock WHERE lock_name = 'schedule_lock' FOR UPDATE"))
        yield


@pytest.fixture(scope="module")
def pair(
    request: pytest.FixtureRequest, server_kind: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Cluster, int]]:
    """Two nodes on each kind of server and the executor's group id; the last test kills one node."""
    with shared(request.config, server_kind, tmp_path_factory.mktemp("nodes")) as made:
        group_id = made.start_all()
        made.start_workers("node-2")
        yield made, group_id


@pytest.mark.once
@pytest.mark.timeout(180)
def test_a_held_schedule_lock_blocks_all_nodes(pair: tuple[Cluster, int]) -> None:
    server, group_id = pair
    jobs = add_jobs(server, group_id, 10)
    run_for(server, 3)
    with holding_lock(server):
        planned = planned_until(server)
        run_for(server, 3)
        assert planned_until(server) == planned, "a scan did not wait"
    eventually(lambda: planned_until(server) > planned, message="scans continue")
    found = settle(server, jobs)
    assert found.problems == {}, found.report()


@pytest.mark.extensive
@pytest.mark.timeout(180)
def test_four_nodes_share_the_work_and_double_nothing(pair: tuple[Cluster, int]) -> None:
    cluster, group_id = pair
    for number in (3, 4):
        cluster.start_workers(f"node-{number}")
    jobs = add_jobs(cluster, group_id)
    run_for(cluster, 10)
    eventually(lambda: len(owners(cluster, jobs)) >= 2, 60, message="two nodes claim runs")
    found = settle(cluster, jobs)
    assert found.problems == {}, found.report()
    assert found.counts["expected"] >= JOBS * 8


@pytest.mark.once
@pytest.mark.timeout(180)
def test_the_fires_of_a_killed_node_are_taken_over_within_three_seconds(pair: tuple[Cluster, int]) -> None:
    """Until then both nodes share the work."""
    server, group_id = pair
    first, second = server.programs["workers"], server.programs["node-2"]
    jobs = add_jobs(server, group_id)
    run_for(server, 5)
    eventually(lambda: owners(server, jobs) >= {"workers", "node-2"}, 60, "both nodes claim runs")
    for process in [psutil.Process(first.pid), *first.children()]:
        process.kill()
    killed_ms = now_ms()
    run_for(server, 8)
    assert max(lags(server, killed_ms, killed_ms + 5_000)) < HAND_OVER_MS
    assert not second.has_ended
    found = settle(server, jobs)
    assert found.problems == {}, found.report()
    assert found.counts["expected"] >= JOBS * 11
    assert count_of(server, "xxl_job_skip", "reason = 'misfire'") == 0


def planned_until(cluster: Cluster) -> int:
    return int(cluster.select("SELECT max(trigger_next_time) AS latest FROM xxl_job_info")[0]["latest"])
