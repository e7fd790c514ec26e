"""Scenario ``clock-sqlite``: the wall clock jumps ten minutes ahead and back, without a second clock."""

import sysconfig
import time
from pathlib import Path
from typing import Any

from bench.faults.checker import History, Watched, check
from bench.faults.installation import CannotRun, clock_ms, installation
from bench.faults.jobs import add_watched, stop_watched
from bench.faults.judging import first_starts, settled_history, verdict
from tests.acceptance.cluster import APPNAME, Cluster
from tests.support.eventually import eventually
from tests.support.fake_executor import Answer, FakeExecutor

AHEAD_S, AHEAD_FOR_S = 600, 20
#: time for jobs to continue after the clock is corrected
GOES_ON_S = 10
BEFORE_S, AFTER_S = 8, 25
SETTLE_S = 60
JOBS = 8
#: runs given by hand while the clock is wrong, to an executor that loses them
LOST = 3
LIBRARY = Path("/usr/lib") / sysconfig.get_config_var("MULTIARCH") / "faketime" / "libfaketimeMT.so.1"


class Clock:
    """Wall clock of the programs started with its settings; harness and executors keep the true time."""

    def __init__(self, folder: Path) -> None:
        if not LIBRARY.exists():
            raise CannotRun(f"{LIBRARY} is not there (Debian: apt install faketime)")
        self._file = folder / "clock"
        self.set(0)
        self.settings = {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def set(self, ahead_s: int) -> int:
        """Set it this far ahead of the true time; return the true time."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{ahead_s:+d}s\n")
        new.replace(self._file)
        return clock_ms()


def clock_sqlite(db: str, folder: Path) -> dict[str, Any]:
    """The wall clock of console and workers jumps 600 s ahead and 20 s later back; executors keep true time.

    Must hold: nothing starts before its instant by true time; every instant has one row or a skip, and never
    two rows; jobs continue within 10 s after the correction; every open run ends, including those accepted
    during the jump and lost. Span and count of skips of that time are not checked.
    """
    clock = Clock(folder)
    with installation(db, folder) as cluster, FakeExecutor() as forgetful:
        forgetful.respond("log", Answer.json(content={"logContent": "readLog fail, logFile not exists"}))
        recorder = cluster.start_recorder()
        assert not recorder.has_ended
        cluster.settings |= clock.settings
        console = cluster.start_console(wait=False)
        cluster.start_workers()
        cluster.await_console(console)
        jobs, losing = add_jobs(cluster, forgetful)
        eventually(lambda: len(cluster.events("start")) >= 2 * len(jobs), message="the jobs have started")
        time.sleep(BEFORE_S)
        wrong_ms = clock.set(AHEAD_S)
        time.sleep(AHEAD_FOR_S / 2)
        for _ in range(LOST):
            cluster.console.trigger(losing)
        time.sleep(AHEAD_FOR_S / 2)
        right_ms = clock.set(0)
        time.sleep(AFTER_S)
        jobs = stop_watched(cluster.console, jobs)
        history, settled_s = settled_history(cluster, jobs, SETTLE_S)
        return {"settled_s": settled_s} | judge(cluster, history, wrong_ms, right_ms)


def add_jobs(cluster: Cluster, forgetful: FakeExecutor) -> tuple[list[Watched], int]:
    """Add jobs that run every second, two with longer runs, and one for runs that get lost."""
    group_id = cluster.console.add_group(APPNAME)
    cluster.console.await_addresses(group_id)
    jobs = [add_watched(cluster.console, group_id) for _ in range(JOBS)]
    slow = {"scheduleConf": "0/10 * * * * ?", "executorHandler": "sleep", "executorParam": "6"}
    jobs += [add_watched(cluster.console, group_id, **slow) for _ in range(2)]
    lost_id = cluster.console.add_group("forgetful", addressType=1, addressList=forgetful.address)
    return jobs, cluster.console.add_job(lost_id, delivery="at_most_once")


def judge(cluster: Cluster, history: History, wrong_ms: int, right_ms: int) -> dict[str, Any]:
    """Apply the usual rules, except to skips between the jump and the time when jobs must continue."""
    limit_ms = GOES_ON_S * 1000
    wrong_from, wrong_to = wrong_ms - 1000, right_ms + limit_ms
    found = check(history)
    found.doubled = [
        item for item in found.doubled if item[-1] != "skip" or not wrong_from < item[1] <= wrong_to
    ]
    found.wrong_skips = [item for item in found.wrong_skips if item[2] <= wrong_from or item[1] > wrong_to]
    went_on = went_on_after(history, right_ms)
    every_second = {
        job.job_id: went_on.get(job.job_id) for job in history.jobs if job.schedule_conf == "* * * * * ?"
    }
    found.violations += [
        f"job {job_id} went on {'never' if after is None else f'{after} ms'} after the way back"
        for job_id, after in every_second.items()
        if after is None or after > limit_ms
    ]
    early = [-item[2] for item in found.early if item[1] == "start"]
    figures = {
        "early_starts": len(early),
        "earliest_ms": max(early, default=0),
        "went_on_ms": max((after for after in every_second.values() if after is not None), default=None),
    }
    return figures | verdict(cluster, history, found)


def went_on_after(history: History, right_ms: int) -> dict[int, int]:
    """Return for each job how long after the correction its first run of a later instant started."""
    starts = first_starts(history)
    after: dict[int, int] = {}
    for row in history.rows:
        if (
            row.instant is not None
            and row.log_id in starts
            and row.instant <= starts[row.log_id] + 1000
            and row.instant > right_ms
        ):
            waited = starts[row.log_id] - right_ms
            after[row.job_id] = min(waited, after.get(row.job_id, waited))
    return after
