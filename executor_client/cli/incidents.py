"""Commands ``incidents``: list broken promises, acknowledge them."""

from collections.abc import Sequence

import click

from executor_client.api.session import Item
from executor_client.cli.groups import group_option
from executor_client.cli.invocation import Invocation, api_command
from executor_client.cli.job_completion import complete_job
from executor_client.cli.lookup import explain_missing, find_group, find_job
from executor_client.cli.output.output import plain, show_list
from executor_client.cli.output.tables import Column
from executor_client.cli.output.times import local_time

STATES = {"open": "red", "acknowledged": "yellow", "kept_again": "green", "withdrawn": ""}
COLUMNS = (
    Column("ID", lambda incident: plain(incident["id"]), is_number=True),
    Column("JOB", lambda incident: plain(incident["job_id"]), is_number=True),
    Column("STATE", lambda incident: plain(incident["state"]), colours=STATES),
    Column(
        "PROMISES", lambda incident: plain([promise["kind"] for promise in incident["promises"]]), cut=True
    ),
    Column("OPENED", lambda incident: local_time(incident["opened_at"])),
    Column("ENDED", lambda incident: local_time(incident["ended_at"])),
    Column("RUN", lambda incident: plain(incident["run_id"]), is_number=True),
    Column("ACKNOWLEDGED BY", lambda incident: plain(incident["acknowledged_by"]), cut=True),
)
DEFAULT_LIMIT = 50


@click.group("incidents", short_help="Incidents, that is broken promises: list, acknowledge.")
def incidents() -> None:
    """List and acknowledge incidents: promises of jobs that were broken."""


@incidents.command("list")
@click.option("--state", type=click.Choice([*STATES]), help="Only incidents in this state.")
@click.option("--job", shell_complete=complete_job, help="Only of this job: id, description or handler.")
@group_option
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=DEFAULT_LIMIT,
    show_default=True,
    help="Maximum number of incidents; 0: all.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print ids only.")
@click.option("--json", "is_json", is_flag=True, help="The same as -o json.")
@api_command
def list_incidents(
    invocation: Invocation,
    state: str | None,
    job: str | None,
    group: str | None,
    limit: int,
    quiet: bool,
    is_json: bool,
) -> None:
    """List the incidents, the newest first."""
    client = invocation.client
    if is_json:
        invocation.output = "json"
    query = {
        "state": state,
        "job_id": find_job(client, job)["id"] if job is not None else None,
        "group_id": find_group(client, group)["id"] if group is not None else None,
    }
    rows = client.items("/incidents", query, limit=limit or None)
    show_list(invocation, rows, COLUMNS, only="id" if quiet else "")


@incidents.command("ack")
@click.argument("incident_ids", metavar="ID [ID]…", type=click.IntRange(1), nargs=-1, required=True)
@api_command
def acknowledge(invocation: Invocation, incident_ids: Sequence[int]) -> None:
    """Acknowledge incidents: they are not escalated. One that has ended stays as it is."""
    if not invocation.is_for_people:
        show_list(invocation, (_acknowledge(invocation, incident_id) for incident_id in incident_ids), ())
        return
    for incident_id in incident_ids:
        incident = _acknowledge(invocation, incident_id)
        click.echo(f"incident {incident_id}: {incident['state']}")


def _acknowledge(invocation: Invocation, incident_id: int) -> Item:
    with explain_missing("incident", str(incident_id)):
        return invocation.client.post(f"/incidents/{incident_id}/acknowledge")
