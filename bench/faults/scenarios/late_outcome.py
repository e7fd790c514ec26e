"""Scenario ``late-outcome``: an answer that cannot be stored before its lease expires."""

import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.faults.checker import Findings, History, check
from bench.faults.installation import installation
from bench.faults.judging import settled_history, verdict
from tests.acceptance.cluster import Cluster
from tests.support.databases import write_lock
from tests.support.eventually import eventually
from tests.support.fake_executor import Answer, FakeExecutor

#: how long the write lock is held: longer than the lease; a failed writer pauses 1 s after each 5 s of
#: waiting
HOLDS_S = (9.0, 12.0, 13.0, 16.0)
JOBS = 10
ANSWER_AFTER_S = 1.5
#: from the creation of the jobs to their common instant
AHEAD_S = 4
SETTLE_S = 45
REFUSAL = Answer.json(code=500, msg="out of order")


def late_outcome(db: str, folder: Path) -> dict[str, Any]:
    """The write lock is held 9, 12, 13 and 16 s while ten executors refuse runs sent 1.5 s before.

    The executor has no logs, so the answer is the only evidence. Must hold: ten runs refused (500), ten
    retries, none unresolved, each sent once.
    """
    with installation(db, folder) as cluster, FakeExecutor() as executor:
        executor.respond("log", Answer(b""))
        console = cluster.start_console(wait=False)
        cluster.start_workers()
        cluster.await_console(console)
        group_id = cluster.console.add_group("refusing", addressType=1, addressList=executor.address)
        figures, found = [], Findings()
        for hold_s in HOLDS_S:
            jobs = refuse_under_lock(cluster, executor, group_id, hold_s)
            history, settled_s = settled_history(cluster, (), SETTLE_S)
            figures.append(
                {"held_s": hold_s, "settled_s": settled_s} | judge_hold(jobs, hold_s, history, found)
            )
        again = {
            log_id: count
            for log_id, count in Counter(run.json["logId"] for run in executor.requests_for("run")).items()
            if count > 1
        }
        found.violations += [f"run {log_id} was sent {count} times" for log_id, count in again.items()]
        findings = check(history)
        findings.violations = found.violations
        return {"holds": figures} | verdict(cluster, history, findings)


def refuse_under_lock(cluster: Cluster, executor: FakeExecutor, group_id: int, hold_s: float) -> list[int]:
    """Send ten runs at one instant and hold the lock while they are refused; return the ids of their jobs."""
    answer = threading.Event()
    executor.respond("run", *[REFUSAL.but(wait=answer)] * JOBS, REFUSAL)
    before = len(executor.requests_for("run"))
    instant = datetime.now(UTC) + timedelta(seconds=AHEAD_S)
    schedule = {"scheduleType": "CRON", "scheduleConf": f"{instant:%-S %-M %-H %-d %-m} ? {instant:%Y}"}
    jobs = [
        cluster.console.add_job(group_id, **schedule, executorFailRetryCount=1, triggerStatus=1)
        for _ in range(JOBS)
    ]
    eventually(lambda: len(executor.requests_for("run")) >= before + JOBS, message="ten runs have been sent")
    with write_lock(cluster.database_url):
        time.sleep(ANSWER_AFTER_S)
        answer.set()
        time.sleep(hold_s - ANSWER_AFTER_S)
    return jobs


def judge_hold(jobs: list[int], hold_s: float, history: History, found: Findings) -> dict[str, int]:
    """Return how the runs of one hold ended; anything but a refusal with its retry is a violation."""
    rows = [row for row in history.rows if row.job_id in jobs]
    first = [row for row in rows if row.retries_left == 1]
    retries = [row for row in rows if row.retries_left == 0]
    counts = {
        "refused": sum(row.trigger_code == 500 for row in first),
        "unresolved": sum(row.trigger_code == 504 for row in rows),
        "retries": sum(row.trigger_code == 500 for row in retries),
    }
    if counts != {"refused": JOBS, "unresolved": 0, "retries": JOBS}:
        found.violations.append(f"lock held {hold_s:.0f} s: {counts}")
    return counts
