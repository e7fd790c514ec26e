"""Scenario ``java-neighbour``: a Java admin on the same database receives the results of our runs."""

import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import text

from bench.faults.checker import History, Row, check
from bench.faults.installation import installation
from bench.faults.judging import fires_left, settled_history, verdict
from tests.acceptance.cluster import APPNAME, Cluster
from tests.support.eventually import eventually

SUCCEEDED, KILLED, DELETED = 8, 2, 2
RUNS = SUCCEEDED + KILLED + DELETED
#: limits: fires of runs with a result must be gone; further sends are watched for
GONE_S, WATCHED_S = 40, 60
SETTLE_S = 10
#: SQL of a Java admin: a callback's result, a kill whose alarm it has sent, the deletion of a log row
RESULT = (
    "UPDATE xxl_job_log SET handle_time = :now, handle_code = 200, handle_msg = '' WHERE id = :id AND"
    " handle_code = 0"
)
KILL = (
    "UPDATE xxl_job_log SET handle_time = :now, handle_code = 500, handle_msg = :message, alarm_status = 2"
    " WHERE id = :id"
)
KILLED_BY = "Operator: Kill operation succeeded, please check log"
DELETE = "DELETE FROM xxl_job_log WHERE id = :id"


def java_neighbour(db: str, folder: Path) -> dict[str, Any]:
    """Accepted runs get results by SQL as from a Java admin: 8 succeed, 2 are killed, 2 rows are deleted.

    The executor has forgotten them, and their log files are gone. Must hold: the executor gets each run
    exactly once, the fires are gone within 40 s, the workers report no lost result, and the rows stay
    unchanged.
    """
    with installation(db, folder, XXL_JOB_SHARED_WITH_JAVA="true") as cluster:
        group_id = cluster.start_all(appname=APPNAME)
        jobs = [
            cluster.console.add_job(group_id, executorHandler="never", executorParam="0.1")
            for _ in range(RUNS)
        ]
        for job_id in jobs:
            cluster.console.trigger(job_id)
        accepted = (
            "SELECT id, job_id FROM xxl_job_log WHERE trigger_code = 200 AND trigger_msg <> '' ORDER BY id"
        )
        rows = eventually(lambda: _all(cluster, accepted), 60, "all runs are accepted")
        eventually(lambda: len(cluster.events("finish")) >= RUNS, message="all runs have ended")
        ids = [int(row["id"]) for row in rows or []]
        settle_as_java(cluster, ids)
        began = time.monotonic()
        gone_s = None
        while time.monotonic() < began + WATCHED_S:
            time.sleep(0.2)
            if gone_s is None and fires_left(cluster) == 0:
                gone_s = round(time.monotonic() - began, 1)
        return judge(cluster, ids, {int(row["id"]): int(row["job_id"]) for row in rows or []}, gone_s)


def _all(cluster: Cluster, sql: str) -> list[Any] | None:
    rows = cluster.select(sql)
    return rows if len(rows) == RUNS else None


def settle_as_java(cluster: Cluster, ids: list[int]) -> None:
    """Write the results in SQL, delete two rows, and remove the executor's log files."""
    now = datetime.now(UTC).replace(microsecond=0, tzinfo=None)
    with cluster.engine().begin() as connection:
        for number, log_id in enumerate(ids):
            sql = RESULT if number < SUCCEEDED else KILL if number < SUCCEEDED + KILLED else DELETE
            values = (
                {"id": log_id}
                | ({"now": now} if sql != DELETE else {})
                | ({"message": KILLED_BY} if sql == KILL else {})
            )
            connection.execute(text(sql), values)
    for path in (cluster.folder / "recorder.jsonl.logs").iterdir():
        path.unlink()


def judge(cluster: Cluster, ids: list[int], job_of: dict[int, int], gone_s: float | None) -> dict[str, Any]:
    history, _ = settled_history(cluster, (), SETTLE_S)
    found = check(as_java_knows(history, ids, job_of))
    received = Counter(event.log_id for event in history.events if event.event == "recv")
    again = {log_id: count for log_id, count in received.items() if count != 1}
    found.violations += [f"run {log_id} was received {count} times" for log_id, count in again.items()]
    lost = cluster.programs["workers"].output.count("result lost")
    left = fires_left(cluster)
    ended = {row.log_id: row.handle_code for row in history.rows}
    expected = {
        log_id: 200 if number < SUCCEEDED else 500 for number, log_id in enumerate(ids[: SUCCEEDED + KILLED])
    }
    if ended != expected:
        found.violations.append(f"results are {ended}, the neighbour has written {expected}")
    if gone_s is None or gone_s > GONE_S:
        found.violations.append(f"fires gone after {gone_s} s, {left} left")
    if lost:
        found.violations.append(f"the workers report {lost} lost results")
    figures = {
        "runs": len(ids),
        "received": sum(received.values()),
        "fires_gone_s": gone_s,
        "fires_left": left,
        "lost_lines": lost,
    }
    return figures | verdict(cluster, history, found)


def as_java_knows(history: History, ids: list[int], job_of: dict[int, int]) -> History:
    """Return the history with the rows the Java admin deleted and the alarms it sent."""
    deleted = [Row(log_id, job_of[log_id], None, 200, 200) for log_id in ids[SUCCEEDED + KILLED :]]
    return replace(
        history,
        rows=[*history.rows, *deleted],
        alarms=[*history.alarms, *ids[SUCCEEDED : SUCCEEDED + KILLED]],
    )
