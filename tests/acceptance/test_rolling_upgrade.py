"""Rolling upgrade of two nodes under load: the program before the latest change of the schema, then this one.

The earlier program comes from the history of this repository. Its nodes go on while the schema is upgraded
under them, then they are replaced one after the other.
"""

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from sqlalchemy import NullPool, create_engine

from tests.acceptance.cluster import Cluster
from tests.acceptance.programs import ROOT, Program, wait_for
from tests.support.acceptance import add_jobs, owners, run_for, settle
from tests.support.eventually import eventually
from tests.support.migrations import migrate_to

#: the last commit before the migration 0010_reports, and its schema
EARLIER_COMMIT, EARLIER_SCHEMA = "44e184a", "0009_api"
#: seconds with each mixture of programs
MIXED_S = 6

pytestmark = [
    pytest.mark.databases("mariadb", "postgresql"),
    pytest.mark.extensive,
    pytest.mark.timeout(300),
]


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """The earlier program in a folder of its own."""
    packed, folder = tmp_path / "earlier.tar", tmp_path / "earlier"
    command = ["git", "-C", str(ROOT), "archive", "--output", str(packed), EARLIER_COMMIT]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode != 0:
        pytest.skip(f"the history of the repository is needed: {ended.stderr.strip()}")
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    for ignored in ("app/static/vendor", "app/data"):  # downloaded at set-up
        (folder / ignored).symlink_to(ROOT / ignored)
    return folder


@pytest.fixture
def cluster(clusters: list[Cluster], empty_database: str, tmp_path: Path) -> Cluster:
    """A cluster on a database of the earlier schema."""
    migrate_to(create_engine(empty_database, poolclass=NullPool), EARLIER_SCHEMA)
    clusters.append(Cluster(tmp_path, empty_database))
    return clusters[0]


def start_earlier(cluster: Cluster, folder: Path, name: str, *arguments: str) -> Program:
    """Start a part of the earlier program."""
    environ = cluster.environ | {"XXL_JOB_NODE_NAME": name, "PYTHONPATH": str(folder)}
    return cluster.programs.start(name, [sys.executable, *arguments], environ, cwd=folder)


def start_earlier_workers(cluster: Cluster, folder: Path, name: str) -> Program:
    program = start_earlier(cluster, folder, name, "-m", "workers")
    wait_for(program, lambda: "scheduler started" in program.output, "the scheduler has started")
    return program


def test_a_rolling_upgrade_loses_and_doubles_nothing(cluster: Cluster, earlier: Path) -> None:
    console = start_earlier(cluster, earlier, "console-1", "wsgi.py")
    cluster.start_recorder()
    first = start_earlier_workers(cluster, earlier, "node-1")
    second = start_earlier_workers(cluster, earlier, "node-2")
    cluster.await_console(console)
    group_id = cluster.console.add_group("recorder")
    cluster.console.await_addresses(group_id)
    jobs = add_jobs(cluster, group_id)
    run_for(cluster, MIXED_S)

    upgraded = cluster.start("upgrade", "-m", "app", "db", "upgrade")
    assert upgraded.process.wait(60) == 0, upgraded.output
    run_for(cluster, MIXED_S)  # both earlier nodes on the new schema
    late = start_earlier(cluster, earlier, "late", "-m", "workers")
    assert late.process.wait(60) == 2, "an earlier program does not start on the new schema"
    assert "start the newer program" in late.output.splitlines()[-1]

    assert first.end() == 0
    cluster.start_workers("node-1-new")
    run_for(cluster, MIXED_S)  # one node of each
    assert console.end() == 0
    cluster.start_console()
    assert second.end() == 0
    cluster.start_workers("node-2-new")
    run_for(cluster, MIXED_S)
    eventually(
        lambda: {"node-1", "node-2", "node-1-new", "node-2-new"} <= owners(cluster, jobs),
        60,
        "each node has fired",
    )
    found = settle(cluster, jobs)
    assert found.problems == {}, found.report()
    assert found.counts["expected"] >= len(jobs) * 4 * MIXED_S
