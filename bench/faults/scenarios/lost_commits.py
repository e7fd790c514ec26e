"""Scenario ``lost-commits``: a database that lacks the last commits, as a standby that was behind."""

import sqlite3
import time
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

from bench.faults.checker import Findings
from bench.faults.history import read_history
from bench.faults.judging import settled_history, unresolved
from tests.acceptance.cluster import APPNAME, Cluster
from tests.support.databases import migrate
from tests.support.eventually import eventually

JOBS = 40
#: jobs start every fifth second, one in five of them in each
PERIOD_S = 5
#: each run takes so long, so that results of lost runs arrive after the restart
RUN_S = 4
BEFORE_S, LOST_S, AFTER_S = 3, 6, 12
SETTLE_S = 60
ACTION = "node.settled"


def lost_commits(db: str, folder: Path) -> dict[str, Any]:
    """kill -9 of everything but the executor, the -wal deleted, start: 6 s of commits are lost.

    Must hold: no id of a run is sent for two runs, no run is a success that its executor was not sent, the
    lost time is skipped and not fired again, and the settling is on record, once.
    """
    assert db == "sqlite"
    file = folder / "xxl_job.db"
    cluster = Cluster(folder, f"sqlite:///{file}")
    migrate(cluster.database_url)
    try:
        group_id = cluster.start_all(appname=APPNAME)
        console = cluster.console
        for number in range(JOBS):
            console.add_job(
                group_id,
                scheduleType="CRON",
                scheduleConf=f"{number % PERIOD_S}/{PERIOD_S} * * * * ?",
                executorHandler="sleep",
                executorParam=str(RUN_S),
                triggerStatus=1,
            )
        eventually(lambda: len(cluster.events("start")) >= JOBS, message="the jobs have started")
        time.sleep(BEFORE_S)
        write_back(file)
        time.sleep(LOST_S)
        lost = lose(cluster, file)
        restart(cluster)
        time.sleep(AFTER_S)
        for job in cluster.select("SELECT id FROM xxl_job_info WHERE trigger_status = 1"):
            console.stop(job["id"])
        return lost | judge(cluster, lost["newest_sent"])
    finally:
        cluster.programs.stop_all()


def write_back(file: Path) -> None:
    """Copy the -wal into the file, so that only what is committed later can be lost."""
    with closing(sqlite3.connect(file, timeout=10)) as connection:
        eventually(
            lambda: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0,
            message="the -wal is written back",
        )


def lose(cluster: Cluster, file: Path) -> dict[str, int]:
    """Kill console and workers, delete the -wal; return what was in it."""
    for program in cluster.programs.started:
        if program.name in ("console", "workers"):
            program.kill()
    sent = {event["log_id"] for event in cluster.events("recv")}
    wal = file.with_name(file.name + "-wal")
    size = wal.stat().st_size
    wal.unlink()
    file.with_name(file.name + "-shm").unlink(missing_ok=True)
    kept = {row["id"] for row in cluster.select("SELECT id FROM xxl_job_log")}
    return {
        "wal_bytes": size,
        "runs_sent": len(sent),
        "runs_lost": len(sent - kept),
        "newest_sent": max(sent),
    }


def restart(cluster: Cluster) -> None:
    console = cluster.start_console("console-again", wait=False)
    cluster.start("workers-again", "-m", "workers", XXL_JOB_NODE_NAME="workers")
    cluster.await_console(console)


def judge(cluster: Cluster, newest_sent: int) -> dict[str, Any]:
    """Return the figures; violations are runs with one id, false successes, and a loss without a record."""
    _, settled_s = settled_history(cluster, (), SETTLE_S)
    history = read_history(cluster.engine(), (), cluster.journals.values())
    found = Findings()
    instants = defaultdict(set)
    for event in cluster.events("recv"):
        instants[event["log_id"]].add(event["instant"])
    twice = [log_id for log_id, sent in instants.items() if len(sent) > 1]
    found.violations += [f"log id {log_id} was sent for {len(instants[log_id])} runs" for log_id in twice]
    times = cluster.select("SELECT id, handle_code, strftime('%s', trigger_time) AS at FROM xxl_job_log")
    successes = [row for row in times if row["handle_code"] == 200]
    false = [row["id"] for row in successes if int(row["at"]) * 1000 not in instants[row["id"]]]
    found.violations += [f"run {log_id} is a success, but was not sent" for log_id in false]
    entries = cluster.select("SELECT id FROM xxl_job_audit WHERE action = :action", action=ACTION)
    lines = sum(text.count("commits settled ") for text in cluster.programs.outputs().values())
    skipped = sum(skip.count for skip in history.skips if skip.reason == "lost")
    if (len(entries), lines) != (1, 1) or not skipped:
        found.violations.append(f"on record {len(entries)} times, logged {lines} times, {skipped} skipped")
    after = [row["id"] for row in times if row["id"] > newest_sent]
    if not after:
        found.violations.append("nothing was fired after the restart")
    return {
        "settled_s": settled_s,
        "instants_skipped": skipped,
        "runs_after": len(after),
        "first_id_after": min(after, default=0),
        "successes": len(successes),
        "unresolved": unresolved(cluster),
        **found.report(),
    }
