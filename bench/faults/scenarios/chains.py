"""Scenario ``chains``: while everything is killed, each chain of a trigger runs whole, once, and ends.

A script triggers a job with all that follows over the API, each request with an idempotency key and repeated
until it is answered. What runs after what is saved over the API, too.
"""

import argparse
import random
import threading
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import requests
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.domain.access.api_tokens import PREFIX, Grant, stored_rights, token_hash
from app.domain.access.permissions import Right
from app.domain.runs.trigger_keys import parse_id
from bench.faults.history import read_events
from bench.faults.installation import database
from bench.faults.scenarios.random_faults import has_recovered
from bench.faults.site import CLIENTS, OWN, Site
from bench.faults.storm import Storm
from tests.acceptance.cluster import Cluster
from tests.support.databases import migrate
from tests.support.eventually import eventually

#: pause between two triggers, between two requests of one, and between two faults
TRIGGER_S, AGAIN_S, GAP_S = 1.5, 0.3, (1.0, 5.0)
SETTLE_S = 240
OK, FLAKY = {"handler": "ok", "param": "0.2"}, {"handler": "flaky", "param": "0.2 0.3"}
#: job -> its members; the root and its child come first
JOBS: dict[str, dict[str, Any]] = {
    "outside": OK,
    "child": FLAKY | {"retry_count": 1},
    "root": OK,
    "shards": OK | {"route_strategy": "SHARDING_BROADCAST"},
    "retried": FLAKY | {"retry_count": 2},
    "join": OK,
    "ended": FLAKY,
    "last": OK,
}
#: follower -> predecessors and rule; ``outside`` is in no chain
AFTER: dict[str, tuple[tuple[str, ...], str]] = {
    "shards": (("root",), "all_succeeded"),
    "retried": (("root", "outside"), "all_succeeded"),
    "join": (("shards", "child"), "all_succeeded"),
    "ended": (("retried", "shards"), "all_ended"),
    "last": (("join", "ended"), "any_succeeded"),
}
OPEN = """
    SELECT (SELECT COUNT(*) FROM xxl_job_fire)
        + (SELECT COUNT(*) FROM xxl_job_round WHERE state = 'open' OR due_ms > 0) AS n
"""
ROUNDS = "SELECT id, job_id, chain, state, reason, log_id, decided_ms, cause_log_id FROM xxl_job_round"
RUNS = """
    SELECT id, job_id, chain, round_id, trigger_type, trigger_key, trigger_code, handle_code,
        executor_sharding_param AS shard FROM xxl_job_log ORDER BY id
"""
SKIPS = "SELECT round_id FROM xxl_job_skip WHERE round_id IS NOT NULL"


@dataclass(eq=False)
class Triggers(threading.Thread):
    """Script that triggers chains until it is stopped."""

    address: str
    headers: Mapping[str, str]
    job_id: int
    #: numbers of the chains that the API has answered with
    chains: list[int] = field(default_factory=list)
    requests: int = 0

    def __post_init__(self) -> None:
        super().__init__(daemon=True)
        self.stopped = threading.Event()

    def run(self) -> None:
        while not self.stopped.wait(TRIGGER_S):
            key = f"chain-{len(self.chains)}"
            while (chain := self._trigger(key)) is None:
                self.stopped.wait(AGAIN_S)  # An attempt goes on after the stop, until it is answered.
            self.chains.append(chain)

    def _trigger(self, key: str) -> int | None:
        self.requests += 1
        try:
            answer = requests.post(
                f"{self.address}/jobs/{self.job_id}/runs",
                json={"chain": True},
                headers={**self.headers, "Idempotency-Key": key},
                timeout=10,
            )
        except requests.RequestException:
            return None
        trigger = parse_id(answer.json()["id"]) if answer.status_code == 202 else None
        return trigger.number if trigger is not None else None


def chains(db: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Consoles, schedulers, executors and the database are killed while a script triggers chains."""
    with database(db, folder) as (url, server):
        migrate(url)
        site = Site(Cluster(folder, url), options.seed, (OWN,))
        try:
            site.start(1 if server is None else 2)
            address, headers = f"{site.cluster.console.address}/api/v1", _token(site.cluster)
            ids = _add_jobs(site.cluster, address, headers)
            away = server if options.away else None
            storm = Storm(site.cluster, random.Random(options.seed), site.starters, away, gap_s=GAP_S)
            script = Triggers(address, headers, ids["root"])
            script.start()
            storm.rage(options.seconds)
            script.stopped.set()
            eventually(partial(has_recovered, site, storm), 60, "the console is back")
            script.join(60)
            eventually(partial(_has_ended, site.cluster), SETTLE_S, "all chains have ended")
            return {"faults": dict(storm.counts), **_verdict(site.cluster, ids, script)}
        finally:
            site.stop()


def _token(cluster: Cluster) -> dict[str, str]:
    token, rights = PREFIX + "c" * 43, stored_rights(Grant(frozenset(Right), False, None))
    sql = "INSERT INTO xxl_job_token (name, token_hash, rights) VALUES ('chains', :hash, :rights)"
    with cluster.engine().begin() as connection:
        connection.execute(text(sql), {"hash": token_hash(token), "rights": rights})
    return {"Authorization": f"Bearer {token}"}


def _add_jobs(cluster: Cluster, address: str, headers: Mapping[str, str]) -> dict[str, int]:
    group_id = cluster.console.add_group(OWN)
    cluster.console.await_addresses(group_id, len(CLIENTS))
    ids: dict[str, int] = {}
    for name, members in JOBS.items():
        body = {"group_id": group_id, "description": name, "owner": "chains", "schedule_type": "NONE"}
        if name == "root":
            body["children"] = [ids["child"]]
        if name in AFTER:
            predecessors, rule = AFTER[name]
            body["runs_after"] = {"jobs": [ids[each] for each in predecessors], "rule": rule}
        answer = requests.post(f"{address}/jobs", json=body | members, headers=headers, timeout=20)
        assert answer.status_code == 201, answer.text
        ids[name] = answer.json()["id"]
    return ids


def _has_ended(cluster: Cluster) -> bool:
    try:
        return not cluster.select(OPEN)[0]["n"]
    except DBAPIError:
        return False


def _verdict(cluster: Cluster, ids: Mapping[str, int], script: Triggers) -> dict[str, Any]:
    rounds, runs = ([dict(row) for row in cluster.select(sql)] for sql in (ROUNDS, RUNS))
    skipped = Counter(row["round_id"] for row in cluster.select(SKIPS))
    starts = Counter(
        event.log_id for event in read_events(cluster.journals.values()) if event.event == "start"
    )
    problems = [f"started {count} times: run {log_id}" for log_id, count in starts.items() if count > 1]
    by_chain = defaultdict[int, list[dict[str, Any]]](list)
    for row in rounds:
        by_chain[row["chain"]].append(row)
    triggered = Counter(run["trigger_key"] for run in runs if run["job_id"] == ids["root"])
    for chain in script.chains:
        if triggered[chain] != 1 or {row["job_id"] for row in by_chain[chain]} != {
            ids[name] for name in AFTER
        }:
            problems.append(f"chain {chain}: {triggered[chain]} first runs, rounds {by_chain[chain]}")
    if unknown := set(by_chain) - set(script.chains):
        problems.append(f"chains of no answer: {unknown}")
    runs_of = defaultdict[tuple[int, int], list[dict[str, Any]]](list)
    for run in runs:
        if run["chain"] is not None:
            runs_of[run["chain"], run["job_id"]].append(run)
    for row in rounds:
        problems += _check_round(row, runs_of, skipped[row["id"]], ids)
    states = Counter(f"{row['state']} {row['reason']}".strip() for row in rounds)
    counts = {"chains": len(script.chains), "requests": script.requests, "runs": len(runs)}
    return counts | {"rounds": dict(states), "problems": dict(Counter(problems))}


def _check_round(
    row: Mapping[str, Any],
    runs_of: Mapping[tuple[int, int], Sequence[Mapping[str, Any]]],
    skips: int,
    ids: Mapping[str, int],
) -> list[str]:
    """Return what is wrong: with its state by what its predecessors came to, and with its runs."""
    name = next(each for each, job_id in ids.items() if job_id == row["job_id"])
    predecessors, rule = AFTER[name]
    outcomes = [
        _has_succeeded(runs_of.get((row["chain"], ids[each]), ()))
        for each in predecessors
        if each != "outside"
    ]
    is_met = {"all_succeeded": all(outcomes), "any_succeeded": any(outcomes), "all_ended": True}[rule]
    first = {
        run["shard"]: run
        for run in runs_of.get((row["chain"], row["job_id"]), ())
        if run["round_id"] == row["id"] and run["trigger_type"] == "AFTER"
    }
    total = sum(
        run["round_id"] == row["id"] and run["trigger_type"] == "AFTER"
        for run in runs_of.get((row["chain"], row["job_id"]), ())
    )
    problems = []
    if row["state"] != ("started" if is_met else "not_run"):
        problems.append(f"{name} is {row['state']} after {outcomes}: {dict(row)}")
    if row["state"] == "started" and (total != len(first) or not first or row["log_id"] is None):
        problems.append(f"{name}: {total} first runs of {dict(row)}")
    if row["state"] == "not_run" and (total or skips != 1):
        problems.append(f"{name}: {total} runs and {skips} skips of {dict(row)}")
    return problems


def _has_succeeded(runs: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a job of a chain has: of a broadcast each of its shards."""
    succeeded = {run["shard"] for run in runs if run["handle_code"] == 200}
    return bool(succeeded) and succeeded == {run["shard"] for run in runs}
