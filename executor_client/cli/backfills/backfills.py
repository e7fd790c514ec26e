"""Commands ``backfills``: list, show, pause, resume and cancel runs of jobs for past instants."""

import click

from executor_client.api.session import Item
from executor_client.cli.backfills.waiting import COLOURS, finish, progress_line
from executor_client.cli.invocation import Invocation, api_command
from executor_client.cli.job_completion import complete_job
from executor_client.cli.lookup import explain_missing, find_job
from executor_client.cli.output.output import plain, show_done, show_item, show_list
from executor_client.cli.output.tables import Column
from executor_client.cli.output.times import local_time

DEFAULT_LIMIT = 50
INSTANT_COLOURS = {
    "waiting": "",
    "running": "cyan",
    "succeeded": "green",
    "failed": "red",
    "withdrawn": "yellow",
}
BACKFILL = click.argument("backfill_id", metavar="BACKFILL", type=click.IntRange(1))


@click.group("backfills", short_help="Backfills: list, show, pause, resume, cancel.")
def backfills() -> None:
    """List, show and change backfills: runs of a job for past instants. jobs backfill starts one."""


@backfills.command("list")
@click.option("--job", shell_complete=complete_job, help="Only of this job: id, description, handler.")
@click.option("--state", type=click.Choice([*COLOURS]), help="Only backfills in this state.")
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=DEFAULT_LIMIT,
    show_default=True,
    help="Maximum number of backfills; 0: all.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print ids only.")
@api_command
def list_backfills(
    invocation: Invocation, job: str | None, state: str | None, limit: int, quiet: bool
) -> None:
    """List the backfills, the newest first."""
    client = invocation.client
    query = {"job_id": find_job(client, job)["id"] if job is not None else None, "state": state}
    rows = client.items("/backfills", query, limit=limit or None)
    show_list(invocation, rows, COLUMNS, only="id" if quiet else "")


@backfills.command("show")
@BACKFILL
@click.option("--state", type=click.Choice([*INSTANT_COLOURS]), help="Only instants in this state.")
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=DEFAULT_LIMIT,
    show_default=True,
    help="Maximum number of instants; 0: all.",
)
@api_command
def show_backfill(invocation: Invocation, backfill_id: int, state: str | None, limit: int) -> None:
    """Show a BACKFILL, and what became of its instants."""
    client = invocation.client
    with explain_missing("backfill", str(backfill_id)):
        item = client.get(f"/backfills/{backfill_id}")
    instants = client.items(f"/backfills/{backfill_id}/instants", {"state": state}, limit=limit or None)
    if not invocation.is_for_people:
        show_item(invocation, {**item, "instants": list(instants)})
        return
    show_item(invocation, item)
    click.echo()
    show_list(invocation, instants, INSTANTS)


@backfills.command("pause")
@BACKFILL
@api_command
def pause_backfill(invocation: Invocation, backfill_id: int) -> None:
    """Start no further run of a BACKFILL; those in progress end."""
    _change(invocation, backfill_id, "pause")


@backfills.command("resume")
@BACKFILL
@click.option("-w", "--wait", is_flag=True, help="Wait for its end, as jobs backfill does.")
@api_command
def resume_backfill(invocation: Invocation, backfill_id: int, wait: bool) -> None:
    """Go on with a BACKFILL that is paused or has stopped at a failure: what failed is run once more."""
    result = _post_change(invocation, backfill_id, "resume")
    if wait:
        finish(invocation, backfill_id)
    else:
        show_done(invocation, progress_line(result), result)


@backfills.command("cancel")
@BACKFILL
@click.option("--kill", is_flag=True, help="Kill its runs in progress, which go on otherwise.")
@api_command
def cancel_backfill(invocation: Invocation, backfill_id: int, kill: bool) -> None:
    """Withdraw what no executor has yet of a BACKFILL; it is cancelled when its last run has ended."""
    _change(invocation, backfill_id, "cancel", {"kill": True} if kill else None)


def _change(invocation: Invocation, backfill_id: int, action: str, body: Item | None = None) -> None:
    result = _post_change(invocation, backfill_id, action, body)
    show_done(invocation, progress_line(result), result)


def _post_change(invocation: Invocation, backfill_id: int, action: str, body: Item | None = None) -> Item:
    with explain_missing("backfill", str(backfill_id)):
        return invocation.client.post(f"/backfills/{backfill_id}/{action}", body)


COLUMNS = (
    Column("ID", lambda item: plain(item["id"]), is_number=True),
    Column("JOB", lambda item: plain(item["job_id"]), is_number=True),
    Column("DESCRIPTION", lambda item: plain(item["description"]), cut=True),
    Column("STATE", lambda item: plain(item["state"]), colours=COLOURS),
    Column("ENDED", lambda item: f"{item['ended']}/{item['total']}", is_number=True),
    Column("FAILED", lambda item: plain(item["counts"].get("failed", 0)), is_number=True),
    Column("FROM", lambda item: local_time(item["from"])),
    Column("TO", lambda item: local_time(item["to"])),
    Column("BY", lambda item: plain(item["author"]), cut=True),
)
INSTANTS = (
    Column("LOGICAL TIME", lambda item: local_time(item["time"])),
    Column("STATE", lambda item: plain(item["state"]), colours=INSTANT_COLOURS),
    Column("RUN", lambda item: plain(item["run_id"])),
    Column("BEGUN", lambda item: local_time(item["begun_at"])),
    Column("ENDED", lambda item: local_time(item["ended_at"])),
)
