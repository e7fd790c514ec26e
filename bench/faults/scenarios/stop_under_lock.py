"""Scenario ``stop-under-lock``: stops and edits that wait while instants of their jobs fall due."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.faults.checker import Watched, check
from bench.faults.installation import clock_ms, installation
from bench.faults.jobs import add_watched, stop_watched
from bench.faults.judging import settled_history, verdict
from tests.acceptance.cluster import APPNAME, Cluster
from tests.acceptance.console import JOB, Console
from tests.support.databases import write_lock
from tests.support.eventually import eventually

ROUNDS = 2
#: the executor of the last round takes fewer runs at once than are due, and each takes this long
SLOTS, SLOW_S = 4, 0.5
STOPPED, EDITED = 12, 4
HELD_S = 3.5
#: schedule of an edited job before and after: another text, the same instants
EVERY_SECOND, EVERY_SECOND_TOO = "* * * * * ?", "0/1 * * * * ?"
SETTLE_S = 60


def stop_under_lock(db: str, folder: Path) -> dict[str, Any]:
    """The write lock is held three times for 3.5 s, while 12 stops and 4 edits of running jobs wait for it.

    The third time the executor is slow, so that some instants of a job are sent while earlier ones wait. Must
    hold: every instant up to the commit of a stop, and every one of an edited job, has exactly one row or one
    skip; a skip counts exactly what it spans. No stop commits before the lock is released.
    """
    with installation(db, folder, XXL_JOB_ADDRESS_INFLIGHT_MAX=str(SLOTS)) as cluster:
        cluster.start_recorder("slow", "--appname", "slow", "--slow-s", str(SLOW_S))
        group_id = cluster.start_all(appname=APPNAME)
        slow_id = cluster.console.add_group("slow")
        cluster.console.await_addresses(slow_id)
        consoles = [Console(cluster.console.address) for _ in range(STOPPED + EDITED)]
        for console in consoles:
            console.login()
        jobs: list[Watched] = []
        for of_group in [*[group_id] * ROUNDS, slow_id]:
            jobs += one_round(cluster, of_group, consoles)
        history, settled_s = settled_history(cluster, jobs, SETTLE_S)
        reasons = {skip.reason for skip in history.skips}
        skips = {
            reason: sum(skip.count for skip in history.skips if skip.reason == reason) for reason in reasons
        }
        return {"settled_s": settled_s, "skips": skips} | verdict(cluster, history, check(history))


def one_round(cluster: Cluster, group_id: int, consoles: list[Console]) -> list[Watched]:
    """Make the jobs, let them run, stop or edit them under the lock; finally stop the edited ones."""
    known = len(cluster.events("start"))
    jobs = [add_watched(cluster.console, group_id, scheduleConf=EVERY_SECOND) for _ in consoles]
    eventually(lambda: len(cluster.events("start")) >= known + 2 * len(jobs), message="the jobs have started")
    acts: list[Callable[[], int]] = []
    for number, (job, console) in enumerate(zip(jobs, consoles, strict=True)):
        acts.append(stopping(console, job) if number < STOPPED else editing(console, job, group_id))
    with ThreadPoolExecutor(len(acts)) as pool:
        with write_lock(cluster.database_url):
            answers: list[Future[int]] = [pool.submit(act) for act in acts]
            time.sleep(HELD_S)
            free_ms = clock_ms()
        answered = [answer.result() for answer in answers]
    stopped = [
        replace(job, stop=(free_ms, at_ms))
        for job, at_ms in zip(jobs[:STOPPED], answered[:STOPPED], strict=True)
    ]
    return stopped + stop_watched(cluster.console, jobs[STOPPED:])


def stopping(console: Console, job: Watched) -> Callable[[], int]:
    """Return a function that stops a job and returns the clock at the answer."""

    def act() -> int:
        console.stop(job.job_id)
        return clock_ms()

    return act


def editing(console: Console, job: Watched, group_id: int) -> Callable[[], int]:
    """Return a function that edits the schedule text of a job and returns the clock at the answer."""
    columns = {"scheduleType": "CRON", "scheduleConf": EVERY_SECOND_TOO, "executorRouteStrategy": "ROUND"}

    def act() -> int:
        console.post("/jobinfo/update", **JOB | {"id": job.job_id, "jobGroup": group_id} | columns)
        return clock_ms()

    return act
