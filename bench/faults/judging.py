"""Verdict on a harness run: waits until everything has ended, compares, and returns the problems for JSON."""

import contextlib
import time
from collections.abc import Iterable
from typing import Any
from zoneinfo import ZoneInfo

from app.clock import DAY_MS
from app.database.engine import bind_engine, read_scope
from app.domain.completeness.expected_instants import Interval
from app.services.completeness.accounts import SETTLED_MS
from app.services.completeness.report import Scope, report
from app.settings.config import Config
from bench.faults.checker import UNRESOLVED, Findings, History, Watched
from bench.faults.history import read_history
from bench.faults.installation import clock_ms
from tests.acceptance.cluster import Cluster
from tests.support.eventually import eventually

#: log lines shown of the first problem
EXCERPT_LINES = 30
SHARES = {"p50": 0.5, "p99": 0.99, "max": 1.0}


def settled_history(cluster: Cluster, jobs: Iterable[Watched], limit_s: float) -> tuple[History, float]:
    """Return the history once nothing is in progress or the time is up, and the seconds this took."""
    began = time.monotonic()
    with contextlib.suppress(AssertionError):  # a run without an end is a finding
        eventually(lambda: fires_left(cluster) == 0, limit_s)
    return read_history(cluster.engine(), jobs, cluster.journals.values()), round(time.monotonic() - began, 1)


def verdict(cluster: Cluster, history: History, found: Findings) -> dict[str, Any]:
    """Return the findings with statistics common to all scenarios; a remaining fire is another finding."""
    left = fires_left(cluster)
    if left:
        found.violations.append(f"{left} fires never ended")
    numbers = completeness(cluster)
    if numbers["unexplained"] or numbers["unexpected"]:
        found.violations.append("the completeness report has unexplained or unexpected instants")
    scheduled = len({(row.job_id, row.instant) for row in history.rows if row.instant is not None})
    if (
        history.jobs
        and numbers["on_time"] + numbers["late"] + sum(numbers["not_started"].values()) != scheduled
    ):
        found.violations.append(f"the completeness report differs from {scheduled} instants with runs")
    result = {"lag_ms": lag_ms(history), "unresolved": unresolved(cluster), "completeness": numbers}
    result |= found.report()
    return result | ({"story": log_excerpts(cluster, found)} if found.problems else {})


def completeness(cluster: Cluster) -> dict[str, Any]:
    """Return the numbers of the completeness report of the last day; docs/completeness.md."""
    now_ms = clock_ms() + SETTLED_MS  # everything has ended: the last instants count, too
    interval = Interval(now_ms - DAY_MS, now_ms)
    names = {name: value for name, value in cluster.environ.items() if name.startswith("XXL_JOB_")}
    bind_engine(Config.from_env(names, dotenv=None))
    with read_scope() as session:
        return report(session, Scope(None, 0), interval, zone=ZoneInfo("UTC"), now_ms=now_ms).total.as_dict()


def first_starts(history: History) -> dict[int, int]:
    """Return log id -> first start, for scheduled runs."""
    scheduled = {row.log_id for row in history.rows if row.instant is not None}
    first: dict[int, int] = {}
    for event in history.events:
        if event.event == "start" and event.log_id in scheduled:
            first[event.log_id] = min(event.wall_ms, first.get(event.log_id, event.wall_ms))
    return first


def lag_ms(history: History) -> dict[str, int]:
    """Return percentiles of first start minus instant."""
    instants = {row.log_id: row.instant for row in history.rows if row.instant is not None}
    return percentiles([wall - instants[log_id] for log_id, wall in first_starts(history).items()])


def percentiles(values: Iterable[int]) -> dict[str, int]:
    ordered = sorted(values)
    return (
        {name: ordered[min(int(len(ordered) * share), len(ordered) - 1)] for name, share in SHARES.items()}
        if ordered
        else {}
    )


def unresolved(cluster: Cluster) -> dict[str, int]:
    """Return the number of unresolved runs by executor group."""
    sql = (
        "SELECT app_name, count(*) AS runs FROM xxl_job_log JOIN xxl_job_group ON xxl_job_group.id ="
        " job_group"
    )
    rows = cluster.select(f"{sql} WHERE trigger_code = {UNRESOLVED} AND handle_code = 0 GROUP BY app_name")
    return {row["app_name"]: row["runs"] for row in rows}


def fires_left(cluster: Cluster) -> int:
    return int(cluster.select("SELECT count(*) AS fires FROM xxl_job_fire")[0]["fires"])


def log_excerpts(cluster: Cluster, found: Findings) -> list[str]:
    """Return the lines of every program about the first problem with a log id."""
    offenders = [
        *found.unfinished,
        *(item[0] for item in found.started_twice),
        *(item[0] for item in found.wrong_results),
    ]
    if not offenders:
        return []
    needles = (f"log_id={offenders[0]} ", f'"log_id": {offenders[0]},')
    texts = cluster.programs.outputs() | {
        name: path.read_text() for name, path in cluster.journals.items() if path.exists()
    }
    lines = [
        f"{name}: {line}"
        for name, text in texts.items()
        for line in text.splitlines()
        if any(needle in f"{line} " for needle in needles)
    ]
    row = cluster.select("SELECT * FROM xxl_job_log WHERE id = :id", id=offenders[0])
    fire = cluster.select("SELECT * FROM xxl_job_fire WHERE log_id = :id", id=offenders[0])
    return [*lines[:EXCERPT_LINES], f"row: {row}", f"fire: {fire}"]
