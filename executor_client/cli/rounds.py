"""Commands ``rounds``: rounds of jobs that run after others."""

from typing import Any

import click

from executor_client.api.session import Item
from executor_client.cli.invocation import Invocation, api_command
from executor_client.cli.job_completion import complete_job
from executor_client.cli.lookup import explain_missing, find_job
from executor_client.cli.output.chain import reason_of
from executor_client.cli.output.output import plain, show_done, show_item, show_list
from executor_client.cli.output.tables import Column
from executor_client.cli.output.times import local_time

DEFAULT_LIMIT = 50
COLOURS = {"open": "cyan", "started": "green", "not_run": "red"}


@click.group("rounds", short_help="Rounds of jobs that run after others: list, show, run-missing.")
def rounds() -> None:
    """List and show rounds: runs of the predecessors of a job, and the run that follows them."""


@rounds.command("list")
@click.option("--job", shell_complete=complete_job, help="Only rounds of this job: id, description, handler.")
@click.option("--state", type=click.Choice([*COLOURS]), help="Only rounds in this state.")
@click.option("--chain", help="Only rounds of this chain: as runs have it, or the id of its trigger.")
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=DEFAULT_LIMIT,
    show_default=True,
    help="Maximum number of rounds; 0: all.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print ids only.")
@api_command
def list_rounds(
    invocation: Invocation, job: str | None, state: str | None, chain: str | None, limit: int, quiet: bool
) -> None:
    """List the rounds, the newest first."""
    client = invocation.client
    query = {
        "job_id": find_job(client, job)["id"] if job is not None else None,
        "state": state,
        "chain": chain,
    }
    rows = client.items("/rounds", query, limit=limit or None)
    show_list(invocation, rows, COLUMNS, only="id" if quiet else "")


@rounds.command("show")
@click.argument("round_id", metavar="ROUND", type=click.IntRange(1))
@api_command
def show_round(invocation: Invocation, round_id: int) -> None:
    """Show a ROUND: what has arrived, and what is missing."""
    with explain_missing("round", str(round_id)):
        item = invocation.client.get(f"/rounds/{round_id}")
    if not invocation.is_for_people:
        show_item(invocation, item)
        return
    show_item(invocation, {name: value for name, value in item.items() if name != "predecessors"})
    click.echo()
    show_list(invocation, item["predecessors"], PREDECESSORS)


@rounds.command("run-missing")
@click.argument("round_id", metavar="ROUND", type=click.IntRange(1))
@click.option("-q", "--quiet", is_flag=True, help="Print the ids of the runs only.")
@api_command
def run_missing(invocation: Invocation, round_id: int, quiet: bool) -> None:
    """Run again what failed, so that the ROUND is not complete; the other runs stay as they are."""
    with explain_missing("round", str(round_id)):
        result = invocation.client.post(f"/rounds/{round_id}/run-missing")
    if quiet:
        for run in result["runs"]:
            click.echo(run["id"])
        return
    lines = [f"job {run['job_id']}: run {run['id']}: {run['state']}" for run in result["runs"]]
    show_done(invocation, "\n".join(lines), result)


def _missing(item: Item) -> str:
    """Return the predecessors that have not succeeded, each with what is known of it."""
    missing = (
        predecessor
        for predecessor in item["predecessors"]
        if predecessor["outcome"] not in ("succeeded", "excused")
    )
    return ", ".join(f"{_full_name(predecessor)}: {_state(predecessor)}" for predecessor in missing)


def _name(predecessor: Item) -> str:
    return str(predecessor["job_id"] or "a job of another group")


def _full_name(predecessor: Item) -> str:
    return f"{_name(predecessor)} {plain(predecessor['description'])}".rstrip()


def _state(predecessor: Item) -> str:
    if predecessor["running"]:
        return "running"
    return plain(predecessor["outcome"]).replace("_", " ") or "to come"


def _instant(value: Any) -> str:
    return local_time(value) if value else ""


COLUMNS = (
    Column("ID", lambda item: plain(item["id"]), is_number=True),
    Column("JOB", lambda item: plain(item["job_id"]), is_number=True),
    Column("DESCRIPTION", lambda item: plain(item["description"]), cut=True),
    Column("LOGICAL TIME", lambda item: _instant(item["logical_time"])),
    Column("STATE", lambda item: plain(item["state"]), colours=COLOURS),
    Column("REASON", lambda item: "incomplete" if item["incomplete"] else reason_of(item)),
    Column("RUN", lambda item: plain(item["run_id"])),
    Column("MISSING", _missing, cut=True),
)
PREDECESSORS = (
    Column("JOB", lambda item: _name(item)),
    Column("DESCRIPTION", lambda item: plain(item["description"]), cut=True),
    Column("OUTCOME", _state),
    Column("RUN", lambda item: plain(item["run_id"])),
    Column("ARRIVED", lambda item: _instant(item["arrived_at"])),
    Column("RETRY", lambda item: _instant(item["retry_at"])),
)
