"""Database outages: afterwards firing resumes, and no instant is lost or doubled."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from app.clock import now_ms
from bench.faults.checker import Watched, check
from bench.faults.history import read_history
from tests.acceptance.cluster import Cluster
from tests.acceptance.database_server import DatabaseServer
from tests.support.databases import migrate, temporary_directory
from tests.support.eventually import eventually

JOBS = 10
AWAY_MS = 5_000
#: fires between the outages, so that the second meets runs of every state
GOES_ON_MS = 1_000
#: firing resumes this long after the database is back, plus a margin for a busy machine
RESUMES_MS = 5_000
MARGIN_MS = 5_000
SETTLE_S = 120


@pytest.fixture
def server(server_kind: str) -> Iterator[DatabaseServer]:
    with temporary_directory() as folder:
        made = DatabaseServer(server_kind, folder)
        try:
            yield made
        finally:
            made.stop()


@pytest.fixture
def on_server(clusters: list[Cluster], server: DatabaseServer, tmp_path: object) -> Cluster:
    """A cluster whose database can be suspended and killed."""
    url = server.server.create_database("xxl_job")
    migrate(url)
    clusters.append(Cluster(tmp_path, url))  # type: ignore[arg-type]
    return clusters[-1]


def let_pass(duration_ms: int) -> None:
    until = now_ms() + duration_ms
    eventually(lambda: now_ms() >= until, duration_ms / 1000 + 60)


def await_a_run_after(cluster: Cluster, back_ms: int) -> int:
    """Wait until an executor receives a run; return the time since the database came back."""

    def later() -> list[int]:
        return [event["wall_ms"] for event in cluster.events("recv") if event["wall_ms"] > back_ms]

    return min(eventually(later, 60, "firing goes on")) - back_ms


@pytest.mark.once
@pytest.mark.timeout(240)
def test_firing_resumes_when_the_database_is_back(on_server: Cluster, server: DatabaseServer) -> None:
    cluster, console = on_server, on_server.console
    group_id = cluster.start_all()
    jobs = []
    for number in range(JOBS):
        misfire = ("DO_NOTHING", "FIRE_ONCE_NOW")[number % 2]
        requested_ms = now_ms()
        conf = {"scheduleType": "CRON", "scheduleConf": "* * * * * ?", "misfireStrategy": misfire}
        job_id = console.add_job(group_id, **conf, triggerStatus=1)
        jobs.append(
            Watched(
                job_id, "CRON", "* * * * * ?", start=(requested_ms, now_ms()), stop=(0, 0), misfire=misfire
            )
        )
    await_a_run_after(cluster, now_ms())

    server.freeze()
    let_pass(AWAY_MS)
    server.thaw()
    paused_ms = await_a_run_after(cluster, now_ms())
    let_pass(GOES_ON_MS)

    server.kill()
    let_pass(AWAY_MS)
    server.start_again()
    killed_ms = await_a_run_after(cluster, now_ms())
    let_pass(GOES_ON_MS)

    stopped = []
    for job in jobs:
        requested_ms = now_ms()
        console.stop(job.job_id)
        stopped.append(replace(job, stop=(requested_ms, now_ms())))
    left = "SELECT count(*) AS fires FROM xxl_job_fire"
    eventually(lambda: cluster.select(left)[0]["fires"] == 0, SETTLE_S, "everything on its way has ended")
    found = check(read_history(cluster.engine(), stopped, cluster.journals.values()))
    assert found.problems == {}, found.report()
    assert max(paused_ms, killed_ms) < RESUMES_MS + MARGIN_MS, (paused_ms, killed_ms)
    assert not cluster.programs["console"].has_ended
    assert "child died" not in cluster.programs["workers"].output
    for name in ("console", "workers"):
        assert cluster.programs[name].output.count("Traceback") == 0, name


@pytest.mark.extensive
@pytest.mark.once
@pytest.mark.timeout(120)
def test_a_start_does_not_wait_for_a_database(on_server: Cluster, server: DatabaseServer) -> None:
    """A program started during an outage reports it in one line and ends; its service starts it again."""
    server.kill()
    programs = [on_server.start("console", "wsgi.py"), on_server.start("workers", "-m", "workers")]
    for program in programs:
        assert program.process.wait(60) == 2
        assert "Traceback" not in program.output
        assert "cannot be opened" in program.output
    server.start_again()
    on_server.start_all()
