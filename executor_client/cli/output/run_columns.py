"""Columns of ``duetime runs`` tables."""

from typing import Any

from executor_client.api.session import Item
from executor_client.cli.output.output import plain
from executor_client.cli.output.tables import Column
from executor_client.cli.output.times import duration_text, local_time, moment

#: logical times that are at least this far from the start are shown, in seconds
SHOWN_FROM_S = 60


def _start(run: Item) -> str:
    """Return the start of a run, or its due time; and its logical time where that differs."""
    start = run["started_at"] or run.get("due_at")
    start_text = local_time(start) if run["started_at"] else f"due {local_time(start)}" if start else ""
    logical_time = run.get("logical_time")
    return f"{start_text} for {local_time(logical_time)}" if _differs(logical_time, start) else start_text


def _differs(logical_time: Any, start: Any) -> bool:
    if not logical_time or not start:
        return False
    apart_s = (moment(logical_time) - moment(start)).total_seconds()
    return abs(apart_s) >= SHOWN_FROM_S


COLOURS = {
    "succeeded": "green",
    "running": "cyan",
    "waiting": "cyan",
    "failed": "red",
    "timed_out": "red",
    "not_started": "red",
    "unresolved": "red",
    "killed": "yellow",
}
COLUMNS = (
    Column("ID", lambda run: plain(run["id"])),
    Column("JOB", lambda run: plain(run["job_id"]), is_number=True),
    Column("HANDLER", lambda run: plain(run["handler"]), cut=True),
    Column("STATE", lambda run: plain(run["state"]), colours=COLOURS),
    Column("STARTED", _start),
    Column("DURATION", lambda run: duration_text(run["duration_ms"]), is_number=True),
    Column("INSTANCE", lambda run: plain(run["address"]), cut=True),
    Column("REASON", lambda run: plain(run["reason"]), cut=True),
)


def run_line(run: Item) -> str:
    """Return one line on a run that has ended: ``run 7: failed after 2.1 s: disk full``.

    The line of a broadcast names its shards, whose ids lead to their logs.
    """
    took = duration_text(run.get("duration_ms"))
    reason = plain(run.get("reason"))
    after = f" after {took}" if took else ""
    shards = ", ".join(
        f"{shard['id']} {shard['state'].replace('_', ' ')}" for shard in run.get("shards") or ()
    )
    of_shards = f" (shards: {shards})" if shards else ""
    state = run["state"].replace("_", " ")
    return f"run {run['id']}: {state}{after}{of_shards}" + (f": {reason}" if reason else "")
