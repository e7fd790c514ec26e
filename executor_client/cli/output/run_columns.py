"""Columns of ``duetime runs`` tables."""

from executor_client.api.session import Item
from executor_client.cli.output.output import plain
from executor_client.cli.output.tables import Column
from executor_client.cli.output.times import duration_text, local_time


def _start(run: Item) -> str:
    """Return the start of a run, or its due time."""
    due_text = "" if run["started_at"] else local_time(run.get("due_at"))
    return f"due {due_text}" if due_text else local_time(run["started_at"])


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
