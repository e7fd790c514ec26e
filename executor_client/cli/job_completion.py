"""Shell completion of job ids and handlers."""

import os
from contextlib import closing

import click
from click.shell_completion import CompletionItem

from executor_client.api.client import ApiClient
from executor_client.api.errors import ApiError
from executor_client.api.profiles import find_profile
from executor_client.cli.invocation import invocation_of

#: number of jobs to search
JOBS_MAX = 200


def complete_job(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the ids and handlers that begin with a text; none if no console answers."""
    try:
        profile = find_profile(invocation_of(context).profile, os.environ)
        if profile is None:
            return []
        with closing(ApiClient(profile.url, profile.token, patience_s=0)) as client:
            jobs = list(client.items("/jobs", limit=JOBS_MAX))
    except ApiError:
        return []
    member = "id" if incomplete.isdigit() else "handler"
    helps = {str(job[member]): job["description"] for job in jobs if str(job[member]).startswith(incomplete)}
    return [CompletionItem(word, help=text) for word, text in sorted(helps.items()) if word]


job_argument = click.argument("job", shell_complete=complete_job)
jobs_argument = click.argument(
    "names", metavar="JOB...", nargs=-1, required=True, shell_complete=complete_job
)
