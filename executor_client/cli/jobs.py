"""Commands ``jobs``: list, show, trigger, start, stop."""

import click

from executor_client.cli.invocation import Invocation, api_command
from executor_client.cli.output import plain, show_list
from executor_client.cli.tables import Column

COLUMNS = (
    Column("ID", lambda job: plain(job["id"]), is_number=True),
    Column("DESCRIPTION", lambda job: plain(job["description"]), cut=True),
    Column("GROUP", lambda job: plain(job["group_id"]), is_number=True),
    Column("HANDLER", lambda job: plain(job["handler"]), cut=True),
    Column("SCHEDULE", lambda job: f"{job['schedule_type']} {job['schedule']}".strip(), cut=True),
    Column("ON", lambda job: plain(job["enabled"]), colours={"yes": "green"}),
    Column("OWNER", lambda job: plain(job["owner"]), cut=True),
)


@click.group("jobs", short_help="Jobs: list, show, trigger, start, stop.")
def jobs() -> None:
    """List, show, trigger, start and stop jobs. JOB is an id, or a description or handler that is unique."""


@jobs.command("list")
@click.option("-q", "--quiet", is_flag=True, help="Print ids only.")
@api_command
def list_jobs(invocation: Invocation, quiet: bool) -> None:
    """List the jobs."""
    found = invocation.client.jobs()
    if quiet:
        for job in found:
            click.echo(job["id"])
        return
    show_list(invocation, found, COLUMNS)
