"""Backup beside 100 fires a second, and what fires after its restore: nothing lost, nothing doubled."""

import json
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import MetaData, Table, insert, select

from app.clock import now_ms
from tests.acceptance.cluster import Cluster
from tests.acceptance.programs import ROOT
from tests.support.eventually import eventually
from tests.support.plan import every_database

pytestmark = [every_database, pytest.mark.extensive]

#: jobs that fire every second
JOBS = 100
#: seconds for a command on a loaded machine
TIMEOUT_S = 60


def duetime(cluster: Cluster, *arguments: object) -> str:
    """Run a command of operators and return its output."""
    ended = subprocess.run(
        [sys.executable, "-m", "app", *map(str, arguments)],
        cwd=ROOT,
        env=cluster.environ,
        text=True,
        capture_output=True,
        timeout=TIMEOUT_S,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def add_jobs(cluster: Cluster, group_id: int) -> None:
    """Add jobs that fire every second, by copying one in the database."""
    job_id = cluster.console.add_job(group_id, scheduleType="CRON", scheduleConf="* * * * * ?")
    engine = cluster.engine()
    table = Table("xxl_job_info", MetaData(), autoload_with=engine)
    with engine.begin() as connection:
        row = dict(connection.execute(select(table).where(table.c.id == job_id)).mappings().one())
        row |= {"trigger_status": 1, "trigger_next_time": now_ms() // 1000 * 1000 + 2_000}
        del row["id"]
        connection.execute(insert(table), [row] * JOBS)


def runs(cluster: Cluster) -> dict[int, tuple[int, int]]:
    """Return log id -> job and instant of all scheduled runs."""
    rows = cluster.select("SELECT id, job_id, fire_time FROM xxl_job_log WHERE fire_time IS NOT NULL")
    return {row["id"]: (row["job_id"], row["fire_time"]) for row in rows}


def received(cluster: Cluster, more_than: int) -> list[dict[str, Any]]:
    """Wait until the executor has more runs than this; return its events."""
    return eventually(
        lambda: found if len(found := cluster.events("recv")) > more_than else None,
        TIMEOUT_S,
        "runs arrive",
    )


def stop(cluster: Cluster) -> None:
    for name in ("workers", "console"):
        assert cluster.programs[name].end() == 0


def test_a_backup_beside_100_fires_a_second_is_complete_and_nothing_fires_twice_after_its_restore(
    cluster: Cluster, tmp_path: Path
) -> None:
    add_jobs(cluster, cluster.start_all())
    received(cluster, 2 * JOBS)
    before = runs(cluster)
    path = tmp_path / "xxl-job.backup"
    interrupted = cluster.start("interrupted", "-m", "app", "backup", str(path))
    eventually(lambda: list(tmp_path.glob(".xxl-job.backup.*")), message="the backup has begun")
    interrupted.kill()
    assert not path.exists()
    assert "verified" in duetime(cluster, "backup", path)
    received(cluster, len(cluster.events("recv")) + JOBS)
    stop(cluster)

    with tarfile.open(path) as archive:
        content = archive.extractfile("manifest.json")
        assert content is not None
        manifest = json.load(content)
    lost = runs(cluster)
    assert "next: start the console" in duetime(cluster, "restore", "--replace", path)
    restored = runs(cluster)
    assert before.items() <= restored.items() <= lost.items()
    assert len(restored) == manifest["rows"]["xxl_job_log"] < len(lost)

    fired = len(cluster.events("recv"))
    console = cluster.start_console(wait=False)
    cluster.start_workers()
    cluster.await_console(console)
    received(cluster, fired + 2 * JOBS)
    stop(cluster)
    added = {log_id: run for log_id, run in runs(cluster).items() if log_id not in restored}
    assert not added.keys() & lost.keys(), "an id was given twice"
    assert not set(added.values()) & set(lost.values()), "an instant was fired again"
    instants = Counter(instant for _, instant in added.values())
    complete = sorted(instant for instant, count in instants.items() if count == JOBS)
    assert (
        complete == sorted(instants)[: len(complete)] == list(range(complete[0], complete[-1] + 1, 1_000))
    ), "every job fires at every instant again"
    starts = Counter(event["log_id"] for event in cluster.events("start"))
    assert max(starts.values()) == 1
