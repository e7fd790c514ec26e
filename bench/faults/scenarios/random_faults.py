"""Scenario ``storm``: kill -9, SIGSTOP, restarts and a bad network at random, from a seed.

Two executors of our own client and one that forgets like the Java original's, each behind a proxy; two
scheduler nodes on a database server. Nothing may be missing, doubled, early, unfinished or started twice.
"""

import argparse
import random
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from bench.faults.checker import Watched, check
from bench.faults.installation import database
from bench.faults.jobs import add_watched, stop_watched
from bench.faults.judging import settled_history, verdict
from bench.faults.site import CLIENTS, OWN, STOCK, Site
from bench.faults.storm import Storm
from tests.acceptance.cluster import Cluster
from tests.support.databases import migrate
from tests.support.eventually import eventually

#: by then everything has ended after the last fault: leases, evidence, timeouts, retries of callbacks
SETTLE_S = 240


def add_jobs(site: Site) -> list[Watched]:
    """Add the jobs: crons, fixed rates, children, failures with retries, both misfire strategies."""
    console = site.cluster.console
    groups = {name: console.add_group(name) for name in site.groups}
    for name, group_id in groups.items():
        console.await_addresses(group_id, len(CLIENTS) if name == OWN else 1)
    child_id = console.add_job(groups[OWN], executorHandler="ok", executorRouteStrategy="ROUND")
    kinds: list[dict[str, Any]] = [{"scheduleConf": "* * * * * ?", "executorHandler": "ok"} for _ in range(8)]
    kinds += [{"scheduleType": "FIX_RATE", "scheduleConf": "1", "executorHandler": "ok"} for _ in range(4)]
    kinds += [
        {"scheduleConf": "0/2 * * * * ?", "executorHandler": "ok", "childJobId": child_id} for _ in range(2)
    ]
    kinds += [
        {"scheduleConf": "0/5 * * * * ?", "executorHandler": "fail", "executorFailRetryCount": 2}
        for _ in range(2)
    ]
    kinds += [{"scheduleConf": "0/2 * * * * ?", "executorHandler": "ok", "executorRouteStrategy": "FAILOVER"}]
    if STOCK in site.groups:
        kinds += [{"scheduleConf": "* * * * * ?", "executorHandler": "ok", "group": STOCK} for _ in range(4)]
    jobs = []
    for number, kind in enumerate(kinds):
        misfire = ("DO_NOTHING", "FIRE_ONCE_NOW")[number % 2]
        jobs.append(add_watched(console, groups[kind.pop("group", OWN)], misfireStrategy=misfire, **kind))
    return jobs


def random_faults(db: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """kill -9, SIGSTOP, restarts and a bad network at random, on a site with three executors."""
    with database(db, folder) as (url, server):
        migrate(url)
        site = Site(Cluster(folder, url), options.seed, (OWN, STOCK) if options.stock else (OWN,))
        try:
            site.start(1 if server is None else 2)
            jobs = add_jobs(site)
            storm = Storm(
                site.cluster, random.Random(options.seed), site.starters, server if options.away else None
            )
            site.spoil(options.network)
            storm.rage(options.seconds)
            site.spoil(0.0)
            eventually(partial(has_recovered, site, storm), 60, "the console is back")
            return judge(site, stop_watched(site.cluster.console, jobs), options, storm)
        finally:
            site.stop()


def has_recovered(site: Site, storm: Storm) -> bool:
    """Start what is left to start; return whether the console answers."""
    storm.start_again()
    return site.cluster.console.answers()


def judge(site: Site, jobs: list[Watched], options: argparse.Namespace, storm: Storm) -> dict[str, Any]:
    history, settled_s = settled_history(site.cluster, jobs, SETTLE_S)
    network: Counter[str] = sum((proxy.counts for proxy in site.proxies.values()), Counter())
    result = {
        "seconds": options.seconds,
        "seed": options.seed,
        "faults": dict(storm.counts),
        "network": dict(network),
    }
    return result | {"settled_s": settled_s} | verdict(site.cluster, history, check(history))
