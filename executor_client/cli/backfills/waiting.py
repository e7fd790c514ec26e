"""Waiting for the end of a backfill, whose progress is one line."""

from contextlib import closing

import click

from executor_client.api.client import GOING_ON
from executor_client.api.error_messages import EXIT_FAILED
from executor_client.api.session import Item
from executor_client.cli.invocation import EXIT_INTERRUPTED, EXIT_TIMED_OUT, Invocation, Stop
from executor_client.cli.output.output import note, plain, show_document
from executor_client.cli.output.progress import Progress
from executor_client.config.program_name import program_name

COLOURS = {
    "running": "cyan",
    "paused": "yellow",
    "stopping": "red",
    "cancelling": "yellow",
    "done": "green",
    "failed": "red",
    "cancelled": "yellow",
}


def finish(
    invocation: Invocation, backfill_id: int, *, timeout_s: int | None = None, quiet: bool = False
) -> None:
    """Wait for the end of a backfill, print it and leave with the exit code."""
    show_command = f"{program_name()} backfills show {backfill_id}"
    try:
        item = _wait(invocation, backfill_id, timeout_s)
    except KeyboardInterrupt:
        note(f"\nbackfill {backfill_id} continues; see it with: {show_command}")
        raise click.exceptions.Exit(EXIT_INTERRUPTED) from None
    if not invocation.is_for_people and not quiet:
        show_document(invocation, item)
    if item["state"] in GOING_ON:
        raise Stop(
            f"backfill {backfill_id}: not ended after {timeout_s} s; it continues;"
            f" see it with: {show_command}",
            EXIT_TIMED_OUT,
        )
    is_good = item["state"] == "done" and item["counts"].get("succeeded") == item["total"]
    if invocation.is_for_people or not is_good:
        is_note = quiet or not invocation.is_for_people
        click.secho(progress_line(item), fg=COLOURS[item["state"]] if is_good else "red", err=is_note)
    if item["counts"].get("failed") and not quiet:
        note(f"what failed: {show_command} --state failed")
    if not is_good:
        raise click.exceptions.Exit(EXIT_FAILED)


def _wait(invocation: Invocation, backfill_id: int, timeout_s: int | None) -> Item:
    """Return a backfill once it does not go on by itself, or as it is after the timeout."""
    item: Item = {}
    with closing(Progress()) as progress:
        for item in invocation.client.watch_backfill(backfill_id, timeout_s=timeout_s):
            progress.show(progress_line(item))
    return item


def progress_line(item: Item) -> str:
    """Return how far a backfill is: ``backfill 3: running: 12 of 273 ended, 1 failed``."""
    counts = ((state, item["counts"].get(state, 0)) for state in ("failed", "withdrawn", "running"))
    more = "".join(
        f", {count} {'in progress' if state == 'running' else state}" for state, count in counts if count
    )
    reason = f": {plain(item['reason'])}" if item["reason"] else ""
    return f"backfill {item['id']}: {item['state']}{reason}: {item['ended']} of {item['total']} ended{more}"
