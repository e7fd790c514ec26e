"""Scenario ``rounds``: while everything is killed, each round of jobs that run after others is decided once.

Two executors of our own client; five jobs with a cron, some of whose runs fail, and jobs that run after them
by each rule and kind of round. What ran is read from the executors' own journals.
"""

import argparse
import random
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import insert, text
from sqlalchemy.exc import DBAPIError

from app.models.fire import Fire
from bench.faults.checker import Findings, Watched, check
from bench.faults.history import read_events
from bench.faults.installation import clock_ms, database
from bench.faults.jobs import stop_watched
from bench.faults.judging import settled_history, verdict
from bench.faults.rounds_checker import Follower, Story, check_rounds
from bench.faults.scenarios.random_faults import has_recovered
from bench.faults.site import CLIENTS, OWN, Site
from bench.faults.storm import Storm
from tests.acceptance.cluster import Cluster
from tests.support.databases import migrate
from tests.support.eventually import eventually
from tests.support.rounds import run_after

#: instants of all schedules
CRON = "0/4 * * * * ?"
#: pause between two faults: most rounds are decided between a few
GAP_S = (1.0, 5.0)
SETTLE_S = 240
#: rounds that are due by then belong to what is still going on
SOON_MS = 30_000
#: seconds that a round with a deadline of its own waits
DEADLINE_S = 4
SOURCES: dict[str, dict[str, Any]] = {
    "steady": {"executorHandler": "ok", "executorParam": "0.3"},
    "retried": {"executorHandler": "flaky", "executorParam": "0.2 0.4", "executorFailRetryCount": 2},
    "shards": {
        "executorHandler": "ok",
        "executorParam": "0.1",
        "executorRouteStrategy": "SHARDING_BROADCAST",
    },
    "failing": {"executorHandler": "flaky", "executorParam": "0.1 0.3"},
    "slow": {"executorHandler": "flaky", "executorParam": "2.5 0.1"},
}
#: job -> predecessors, and what else its `runs_after` has; a gate has the schedule, too
FOLLOWERS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "join": (("steady", "retried", "shards"), {}),
    "ended": (("steady", "retried", "failing"), {"rule": "all_ended"}),
    "any": (("retried", "failing"), {"rule": "any_succeeded"}),
    "two": (("steady", "retried", "failing", "slow"), {"rule": "k_of_n", "k": 2}),
    "joins": (("join", "ended"), {}),
    "gate": (("steady", "failing"), {}),
    "after gate": (("gate", "any"), {}),
    "daily": (("steady", "retried"), {"round": "day"}),
    "since": (("steady", "failing"), {"round": "since_last"}),
    "late": (("steady", "slow"), {"deadline_s": DEADLINE_S, "at_deadline": "run"}),
    "strict": (("retried", "slow"), {"deadline_s": DEADLINE_S}),
}
GATES = ("gate",)

#: how long faults are made while what has failed is run again
REPEATS_S = 20

FAILED = """
    SELECT job_id, COALESCE(logical_ms, fire_time) AS logical_ms, MAX(id) AS id FROM xxl_job_log
    WHERE executor_handler = 'flaky' GROUP BY job_id, COALESCE(logical_ms, fire_time)
    HAVING SUM(CASE WHEN handle_code = 200 THEN 1 ELSE 0 END) = 0
"""
OPEN = """
    SELECT (SELECT COUNT(*) FROM xxl_job_fire)
        + (SELECT COUNT(*) FROM xxl_job_round WHERE due_ms > 0 AND due_ms < :soon) AS n
"""


def rounds(db: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Consoles, schedulers, executors and the database are killed while jobs run after others.

    In the end, what has failed is run again, which decides rounds anew.
    """
    with database(db, folder) as (url, server):
        migrate(url)
        site = Site(Cluster(folder, url), options.seed, (OWN,))
        try:
            site.start(1 if server is None else 2)
            followers, watched = _add_jobs(site.cluster)
            away = server if options.away else None
            storm = Storm(site.cluster, random.Random(options.seed), site.starters, away, gap_s=GAP_S)
            storm.rage(options.seconds)
            eventually(partial(has_recovered, site, storm), 60, "the console is back")
            watched = stop_watched(site.cluster.console, watched)
            eventually(partial(_has_ended, site.cluster), SETTLE_S, "all rounds have ended")
            before = _read(site.cluster, followers)
            repeated = _repeat_failed(site.cluster, [job.job_id for job in watched])
            storm.rage(REPEATS_S)
            eventually(partial(has_recovered, site, storm), 60, "the console is back")
            eventually(partial(_has_ended, site.cluster), SETTLE_S, "all rounds have ended once more")
            after = _read(site.cluster, followers)
            result = {"faults": dict(storm.counts), "repeated": repeated, **_numbers(before, after)}
            return result | _verdict(site.cluster, watched, [*before.problems, *after.problems])
        finally:
            site.stop()


def _schedule(number: int) -> dict[str, Any]:
    misfire = ("DO_NOTHING", "FIRE_ONCE_NOW")[number % 2]
    return {"scheduleType": "CRON", "scheduleConf": CRON, "misfireStrategy": misfire}


def _add_jobs(cluster: Cluster) -> tuple[list[Follower], list[Watched]]:
    """Add the jobs; their schedules start once it is known what runs after what."""
    console = cluster.console
    group_id = console.add_group(OWN)
    console.await_addresses(group_id, len(CLIENTS))
    plain = {"executorRouteStrategy": "ROUND", "executorHandler": "ok"}
    scheduled = [*GATES, *SOURCES]
    ids = {
        name: console.add_job(group_id, **plain | SOURCES.get(name, {}) | _schedule(number))
        for number, name in enumerate(scheduled)
    }
    for name in FOLLOWERS:
        if name not in GATES:
            ids[name] = console.add_job(group_id, **plain)
    followers = [_follow(cluster, ids, name) for name in FOLLOWERS]
    return followers, [_watch(cluster, ids[name], name, number) for number, name in enumerate(scheduled)]


def _follow(cluster: Cluster, ids: dict[str, int], name: str) -> Follower:
    """Let a job run after others."""
    predecessors, changes = FOLLOWERS[name]
    after = tuple(ids[each] for each in predecessors)
    run_after(cluster.engine(), ids[name], after, **changes)
    at_deadline = changes.get("at_deadline", "drop") if "deadline_s" in changes else ""
    return Follower(
        ids[name],
        after,
        rule=changes.get("rule", "all_succeeded"),
        k=changes.get("k", 1),
        round=changes.get("round", "logical_time"),
        at_deadline=at_deadline,
        is_gate=name in GATES,
    )


def _watch(cluster: Cluster, job_id: int, name: str, number: int) -> Watched:
    """Switch the schedule of a job on."""
    requested_ms = clock_ms()
    cluster.console.start(job_id)
    return Watched(
        job_id,
        "CRON",
        CRON,
        start=(requested_ms, clock_ms()),
        stop=(0, 0),
        misfire=str(_schedule(number)["misfireStrategy"]),
        shards=len(CLIENTS) if name == "shards" else 1,
    )


def _has_ended(cluster: Cluster) -> bool:
    """Whether nothing is left that could change a round."""
    try:
        return not cluster.select(OPEN, soon=clock_ms() + SOON_MS)[0]["n"]
    except DBAPIError:
        return False


def _read(cluster: Cluster, followers: Sequence[Follower]) -> Story:
    story = Story.read(cluster.engine(), followers, read_events(cluster.journals.values()))
    check_rounds(story)
    return story


def _repeat_failed(cluster: Cluster, job_ids: Sequence[int]) -> int:
    """Run again what has failed, as a user does; it succeeds then. Return how many runs."""
    with cluster.engine().begin() as connection:
        connection.execute(
            text("UPDATE xxl_job_info SET executor_param = '0.2 0' WHERE executor_handler = 'flaky'")
        )
        failed = [row for row in connection.execute(text(FAILED)) if row.job_id in job_ids]
        now_ms = clock_ms()
        fires = [
            {
                "fire_key": f"manual:again:{row.id}",
                "job_id": row.job_id,
                "due_time": now_ms,
                "trigger_type": "MANUAL",
                "logical_ms": row.logical_ms,
                "repeats_log_id": row.id,
            }
            for row in failed
        ]
        if fires:
            connection.execute(insert(Fire), fires)
    return len(fires)


def _numbers(before: Story, after: Story) -> dict[str, Any]:
    """Return how many rounds there were by state, before the repeats and after them, and how many runs."""
    return {
        "rounds": _states(before),
        "rounds_repeated": _states(after),
        "incomplete": sum(row["incomplete"] for row in after.rounds),
        "runs": dict(Counter(run["trigger_type"] for run in after.runs)),
        "arrivals": dict(Counter(each["outcome"] for each in after.arrivals)),
    }


def _states(story: Story) -> dict[str, int]:
    return dict(Counter(f"{row['state']} {row['reason']}".strip() for row in story.rounds))


def _verdict(cluster: Cluster, watched: Sequence[Watched], problems: Sequence[str]) -> dict[str, Any]:
    history, _ = settled_history(cluster, watched, SETTLE_S)
    found: Findings = check(history)
    found.violations += problems
    return verdict(cluster, history, found)
