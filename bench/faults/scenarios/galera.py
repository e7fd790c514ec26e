"""Scenario ``galera``: two of our nodes on two database nodes, of which one is killed, then two hang."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.faults.checker import Findings, Watched, check
from bench.faults.galera_cluster import galera_cluster
from bench.faults.installation import clock_ms
from bench.faults.jobs import add_watched, stop_watched
from bench.faults.judging import first_starts, settled_history, verdict
from tests.acceptance.cluster import Cluster
from tests.acceptance.database_server import DatabaseServer
from tests.acceptance.programs import free_port

APPNAME = "galera"
EXECUTORS = ("client-1", "client-2")
JOBS = 20
#: without a fault, before, between and after them
STEADY_S = 15
#: how long the killed database node is away, and how long there is no quorum
AWAY_S = 20
FROZEN_S = 20
#: longest time without a start after the kill, of which five seconds are Galera's own suspicion, and after
#: two frozen nodes go on
GAP_MAX_S = 15.0
RESUMED_MAX_S = 10.0
SETTLE_S = 180
#: log lines of one program about the missing quorum
LINES = 6
TRACEBACK = "Traceback (most recent call last)"


def galera(db: str, folder: Path) -> dict[str, Any]:
    """Console and workers on two nodes of a Galera cluster of three (needs galera-4), 20 runs a second.

    The second database node is killed, and starts again 20 s later; then the second and third are frozen for
    20 s, so that the first has no quorum. Must hold: nothing is lost or doubled (misfires may be skipped),
    starts go on within 15 s of the kill and within 10 s of the end of the freeze, no program logs a
    traceback, and without a quorum each logs a few lines.
    """
    assert db == "mariadb"
    with galera_cluster() as (servers, urls):
        first = Cluster(folder, urls[0])
        try:
            jobs = start(first, second_of(first, urls[1]))
            return play(first, jobs, servers)
        finally:
            first.programs.stop_all()


def second_of(first: Cluster, url: str) -> Cluster:
    """Return a cluster on another node of the database; its programs are stopped with those of the first."""
    folder = first.folder / "second"
    folder.mkdir()
    second = replace(first, folder=folder, database_url=url, port=free_port())
    second.programs.started = first.programs.started
    return second


def start(first: Cluster, second: Cluster) -> list[Watched]:
    """Start a console and workers on both, executors that know both, and add the jobs."""
    first.await_console(first.start_console(wait=False))
    second.start_console("console-2")
    first.start_workers("workers-1")
    second.start_workers("workers-2")
    admins = f"{first.console.address},{second.console.address}"
    for name in EXECUTORS:
        first.journals[name] = first.folder / f"{name}.jsonl"
        where = ["--admin", admins, "--appname", APPNAME, "--port", str(free_port())]
        home = {
            "XXL_JOB_HOME": str(first.folder / f"home-{name}"),
            "FAULTS_JOURNAL": str(first.journals[name]),
        }
        first.start(name, "-m", "executor_client", "bench.faults.handlers", *where, **home)
    group_id = first.console.add_group(APPNAME)
    first.console.await_addresses(group_id, len(EXECUTORS))
    kinds = ("DO_NOTHING", "FIRE_ONCE_NOW")
    return [add_watched(first.console, group_id, misfireStrategy=kinds[job % 2]) for job in range(JOBS)]


def play(cluster: Cluster, jobs: list[Watched], servers: Sequence[DatabaseServer]) -> dict[str, Any]:
    time.sleep(STEADY_S)
    killed_ms = clock_ms()
    servers[1].kill()
    time.sleep(AWAY_S)
    servers[1].start_again()
    time.sleep(STEADY_S)
    marks = {name: len(text) for name, text in cluster.programs.outputs().items()}
    for server in servers[1:]:
        server.freeze()
    time.sleep(FROZEN_S)
    for server in servers[1:]:
        server.thaw()
    thawed_ms = clock_ms()
    time.sleep(STEADY_S)
    outputs = cluster.programs.outputs()
    history, settled_s = settled_history(cluster, stop_watched(cluster.console, jobs), SETTLE_S)
    found = check(history)
    starts = sorted(first_starts(history).values())
    times = {
        "gap_after_kill_s": longest_gap_s(starts, killed_ms, killed_ms + AWAY_S * 1000),
        "resumed_after_freeze_s": next((at - thawed_ms for at in starts if at > thawed_ms), 10**6) / 1000,
        "settled_s": settled_s,
    }
    judge_times(times, found)
    logs = judge_logs({name: text[marks[name] :] for name, text in outputs.items()}, found)
    return times | {"repeated": repetitions(cluster), "logs": logs} | verdict(cluster, history, found)


def longest_gap_s(starts: Sequence[int], from_ms: int, to_ms: int) -> float:
    """Return the longest time without a start."""
    inside = [from_ms, *(at for at in starts if from_ms < at < to_ms), to_ms]
    return max(later - earlier for earlier, later in zip(inside, inside[1:], strict=False)) / 1000


def judge_times(times: dict[str, float], found: Findings) -> None:
    for name, limit_s in (("gap_after_kill_s", GAP_MAX_S), ("resumed_after_freeze_s", RESUMED_MAX_S)):
        if times[name] > limit_s:
            found.violations.append(f"{name} {times[name]}, expected at most {limit_s}")


def judge_logs(without_quorum: dict[str, str], found: Findings) -> dict[str, dict[str, int]]:
    """Return what was logged about the missing quorum; tracebacks and many lines are violations."""
    figures = {}
    for name, text in without_quorum.items():
        if name in EXECUTORS:
            continue
        figures[name] = {"errors": text.count("database_error="), "tracebacks": text.count(TRACEBACK)}
        if figures[name]["tracebacks"] or figures[name]["errors"] > LINES:
            found.violations.append(f"{name} without a quorum: {figures[name]}")
    return figures


def repetitions(cluster: Cluster) -> dict[str, int]:
    """Return how often a transaction was repeated, by attempt, and how often the last one failed, too."""
    text = "\n".join(cluster.programs.outputs().values())
    counts = {f"attempt {number}": text.count(f"repeated attempt={number}") for number in range(1, 5)}
    return counts | {"given up": text.count("outcomes not written")}
