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

from sqlalchemy.exc import DBAPIError

from bench.faults.checker import Findings, Watched, check
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

OPEN = """
    SELECT (SELECT COUNT(*) FROM xxl_job_fire)
        + (SELECT COUNT(*) FROM xxl_job_round WHERE due_ms > 0 AND due_ms < :soon) AS n
"""


def rounds(db: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Consoles, schedulers, executors and the database are killed while jobs run after others."""
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
            return _verdict(site.cluster, followers, watched, storm)
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


def _verdict(
    cluster: Cluster, followers: Sequence[Follower], watched: Sequence[Watched], storm: Storm
) -> dict[str, Any]:
    history, _ = settled_history(cluster, watched, SETTLE_S)
    found: Findings = check(history)
    story = Story.read(cluster.engine(), followers, history.events)
    check_rounds(story)
    found.violations += story.problems
    states = Counter(f"{row['state']} {row['reason']}".strip() for row in story.rounds)
    types = Counter(run["trigger_type"] for run in story.runs)
    outcomes = Counter(each["outcome"] for each in story.arrivals)
    return {
        "faults": dict(storm.counts),
        "rounds": dict(states),
        "incomplete": sum(row["incomplete"] for row in story.rounds),
        "runs": dict(types),
        "arrivals": dict(outcomes),
    } | verdict(cluster, history, found)
