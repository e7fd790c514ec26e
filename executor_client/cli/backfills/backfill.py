"""Command ``jobs backfill``: run a job for past instants."""

from typing import Any

import click

from executor_client.api.session import Item
from executor_client.cli.backfills.waiting import finish
from executor_client.cli.invocation import Invocation, api_command
from executor_client.cli.job_completion import job_argument
from executor_client.cli.lookup import find_job
from executor_client.cli.output.output import note, plain, show_document, show_done, show_list
from executor_client.cli.output.tables import Column
from executor_client.cli.output.times import Duration, Instant, local_time

COLUMNS = (
    Column("LOGICAL TIME", lambda item: local_time(item["time"])),
    Column("STANDING", lambda item: plain(item["standing"])),
    Column("TO RUN", lambda item: plain(item["run"]), colours={"yes": "green"}),
    Column("REASON", lambda item: plain(item["reason"]), cut=True),
)


@click.command("backfill", short_help="Run a job for past instants.")
@job_argument
@click.option(
    "--from",
    "from_",
    type=Instant(),
    help="First logical time: local time of this shell, '2026-12-24 18:00', or RFC 3339.",
)
@click.option("--to", type=Instant(), help="End of the logical times, exclusive; default: now.")
@click.option(
    "--time",
    "times",
    type=Instant(),
    multiple=True,
    help="A logical time to run whatever the schedule says, instead of --from; repeatable.",
)
@click.option(
    "--which",
    type=click.Choice(["all", "missing", "failed"]),
    default="all",
    show_default=True,
    help="Which instants: all, those without any run, or those of whose runs none has succeeded.",
)
@click.option(
    "--order",
    type=click.Choice(["oldest_first", "newest_first"]),
    default="oldest_first",
    show_default=True,
    help="Order in which they start.",
)
@click.option(
    "--max-running", type=click.IntRange(1), default=1, show_default=True, help="Most of its runs at once."
)
@click.option(
    "--children",
    type=click.Choice(["none", "as_configured", "chain"]),
    default="none",
    show_default=True,
    help="What follows the runs: nothing, children and rounds, or all that follows the job.",
)
@click.option(
    "--on-failure",
    type=click.Choice(["stop", "go_on"]),
    default="stop",
    show_default=True,
    help="When a run has failed, after its retries.",
)
@click.option("--dry-run", is_flag=True, help="Print the instants and what would be run; start nothing.")
@click.option("-w", "--wait", is_flag=True, help="Wait for the end of the backfill.")
@click.option("--timeout", "timeout_s", type=Duration(), help="Stop waiting after this time; implies --wait.")
@click.option("-q", "--quiet", is_flag=True, help="Print the id of the backfill only.")
@api_command
def backfill(
    invocation: Invocation,
    job: str,
    dry_run: bool,
    wait: bool,
    timeout_s: int | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Run JOB for past instants of its present schedule, behind all other runs.

    With --wait the exit code is 0 if each instant has succeeded, 1 if not or if the backfill is paused, and
    3 if it has not ended after --timeout. Ctrl-C ends the waiting, not the backfill.
    """
    if bool(options["times"]) == bool(options["from_"]):
        raise click.UsageError("give --from, or --time")
    if options["times"] and options["to"]:
        raise click.UsageError("--time and --to cannot be used together")
    body = {name.rstrip("_"): value for name, value in options.items() if value not in (None, ())}
    client = invocation.client
    answer = client.backfill(find_job(client, job)["id"], body, dry_run=dry_run)
    if dry_run:
        _show_list(invocation, answer)
        return
    if quiet:
        click.echo(answer["id"])
    if wait or timeout_s is not None:
        finish(invocation, answer["id"], timeout_s=timeout_s, quiet=quiet)
    elif not quiet:
        show_done(invocation, f"backfill {answer['id']}: {plain(answer['message'])}", answer)


def _show_list(invocation: Invocation, answer: Item) -> None:
    """Print the instants of a dry run, and at last what they come to."""
    if not invocation.is_for_people:
        show_document(invocation, answer)
        return
    show_list(invocation, answer["instants"], COLUMNS)
    click.echo(plain(answer["message"]))
    if answer["overlapping"]:
        note(f"refused while these run some of the instants: backfills {plain(answer['overlapping'])}")
