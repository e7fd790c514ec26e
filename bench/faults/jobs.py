"""Jobs of the harness: added and stopped by script, with the clock read before and after."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from bench.faults.checker import Watched
from bench.faults.installation import clock_ms
from tests.acceptance.console import Console


def add_watched(console: Console, group_id: int, **columns: Any) -> Watched:
    """Add a job and switch its schedule on."""
    columns = {
        "scheduleType": "CRON",
        "scheduleConf": "* * * * * ?",
        "executorRouteStrategy": "ROUND",
        **columns,
    }
    requested_ms = clock_ms()
    job_id = console.add_job(group_id, **columns, triggerStatus=1)
    children = (columns["childJobId"],) if "childJobId" in columns else ()
    misfire = columns.get("misfireStrategy", "DO_NOTHING")
    schedule = {"schedule_type": columns["scheduleType"], "schedule_conf": columns["scheduleConf"]}
    return Watched(
        job_id, **schedule, start=(requested_ms, clock_ms()), stop=(0, 0), misfire=misfire, child_ids=children
    )


def stop_watched(console: Console, jobs: Iterable[Watched]) -> list[Watched]:
    """Switch the schedules off."""
    stopped = []
    for job in jobs:
        requested_ms = clock_ms()
        console.stop(job.job_id)
        stopped.append(replace(job, stop=(requested_ms, clock_ms())))
    return stopped
