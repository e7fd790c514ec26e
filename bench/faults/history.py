"""History of a harness run: rows and skips by plain SQL, events from the executors' journals."""

import json
from collections.abc import Iterable
from pathlib import Path

from sqlalchemy import Engine, text

from bench.faults.checker import Event, History, Row, Skip, Watched

ROWS = """
    SELECT id, job_id, fire_time, trigger_code, handle_code, executor_sharding_param,
        executor_fail_retry_count
    FROM xxl_job_log ORDER BY id
"""
SKIPS = "SELECT job_id, from_ms, to_ms, skipped, reason, recorded_ms FROM xxl_job_skip ORDER BY id"


def read_history(engine: Engine, jobs: Iterable[Watched], journals: Iterable[Path]) -> History:
    """Return all records to be checked."""
    with engine.connect() as connection:
        rows = [Row(*row) for row in connection.execute(text(ROWS))]
        skips = [Skip(*row) for row in connection.execute(text(SKIPS))]
        alarms = [row[0] for row in connection.execute(text("SELECT log_id FROM xxl_job_alarm"))]
    return History(tuple(jobs), rows, skips, read_events(journals), alarms)


def read_events(journals: Iterable[Path]) -> list[Event]:
    """Return the complete lines of journals: a killed writer may have left half a line."""
    events = []
    for path in journals:
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            named = (event["event"], event["log_id"], event["job_id"], event["wall_ms"])
            events.append(Event(*named, boot=event.get("boot", ""), code=event.get("code", 0)))
    return events
