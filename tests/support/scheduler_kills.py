"""Helpers of the tests of scheduler kills, for all that need them."""

from dataclasses import replace

from app.clock import now_ms
from bench.faults.checker import Watched
from tests.acceptance.cluster import Cluster

JOBS = 50


#: time for everything in progress to end after the storm: leases, evidence, results
SETTLE_S = 120


def add_jobs(cluster: Cluster, group_id: int) -> list[Watched]:
    """Add jobs that fire once a second, with crons and fixed rates and both misfire strategies."""
    jobs = []
    for number in range(JOBS):
        kind, conf = ("FIX_RATE", "1") if number % 5 == 0 else ("CRON", "* * * * * ?")
        misfire = ("DO_NOTHING", "FIRE_ONCE_NOW")[number % 2]
        requested_ms = now_ms()
        job_id = cluster.console.add_job(
            group_id, scheduleType=kind, scheduleConf=conf, misfireStrategy=misfire, triggerStatus=1
        )
        jobs.append(Watched(job_id, kind, conf, start=(requested_ms, now_ms()), stop=(0, 0), misfire=misfire))
    return jobs


def stop_jobs(cluster: Cluster, jobs: list[Watched]) -> list[Watched]:
    stopped = []
    for job in jobs:
        requested_ms = now_ms()
        cluster.console.stop(job.job_id)
        stopped.append(replace(job, stop=(requested_ms, now_ms())))
    return stopped


def fires_left(cluster: Cluster) -> int:
    return int(cluster.select("SELECT count(*) AS fires FROM xxl_job_fire")[0]["fires"])
