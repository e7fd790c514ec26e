"""Command ``jobs export``: some jobs as a file of jobs as code."""

import click

from executor_client.api.transport import Query
from executor_client.cli.invocation import Invocation, api_command
from executor_client.cli.job_completion import jobs_argument
from executor_client.cli.lookup import find_job
from executor_client.cli.output.output import note, show_document
from executor_client.code.writing import write_text


@click.command("export", short_help="Print jobs as a file that xxl apply takes.")
@jobs_argument
@click.option("--whole", is_flag=True, help="Include members that have the default value of a new job.")
@api_command
def export_jobs(invocation: Invocation, names: tuple[str, ...], whole: bool) -> None:
    """Print jobs and their executor groups as a YAML file, which xxl plan and xxl apply take.

    Children of a job are named if they are among them or managed as code.
    """
    client = invocation.client
    job_ids = ",".join(str(find_job(client, name)["id"]) for name in names)
    query: Query = {"jobs": job_ids, "whole": whole}
    answer = client.get("/code/export", query)
    if invocation.output == "json":
        show_document(invocation, answer["document"])
    else:
        click.echo(write_text(answer["document"], answer["variables"]), nl=False)
    for text in answer.get("notes", ()):
        note(text, fg="yellow")
