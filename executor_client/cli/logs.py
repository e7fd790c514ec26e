"""Commands ``logs``: search of archived logs."""

from collections.abc import Iterable, Iterator

import click

from executor_client.api.session import Item
from executor_client.cli.groups import group_option
from executor_client.cli.invocation import Invocation, api_command
from executor_client.cli.job_completion import complete_job
from executor_client.cli.lookup import find_group, find_job
from executor_client.cli.output.output import note, show_list
from executor_client.cli.output.run_columns import COLOURS
from executor_client.cli.output.times import Instant
from executor_client.config.terminal import printable_log_line

DEFAULT_LIMIT = 200


@click.group("logs", short_help="Archived logs of runs: grep.")
def logs() -> None:
    """Search the archived logs of all runs. The log of one run: runs tail."""


@logs.command("grep")
@click.argument("pattern")
@click.option("--job", shell_complete=complete_job, help="Only runs of this job: id, description or handler.")
@group_option
@click.option("--state", type=click.Choice([*COLOURS, "unsuccessful"]), help="Only runs in this state.")
@click.option("--from", "from_", type=Instant(), help="Only runs started at this time or later.")
@click.option("--to", type=Instant(), help="Only runs started at this time or earlier.")
@click.option("--regex", "-E", is_flag=True, help="PATTERN is a regular expression, as Python has them.")
@click.option("--ignore-case", "-i", is_flag=True, help="Upper and lower case are the same.")
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=DEFAULT_LIMIT,
    show_default=True,
    help="Maximum number of lines; 0: all.",
)
@api_command
def grep(
    invocation: Invocation,
    pattern: str,
    job: str | None,
    group: str | None,
    limit: int,
    **options: str | bool | None,
) -> None:
    """Print the archived lines that have PATTERN, as RUN:LINE:TEXT, those of the newest runs first."""
    client = invocation.client
    query = {
        "q": pattern,
        "job_id": find_job(client, job)["id"] if job is not None else None,
        "group_id": find_group(client, group)["id"] if group is not None else None,
        **{name.rstrip("_"): value for name, value in options.items()},
    }
    hits = client.items("/logs/search", query, limit=limit or None)
    if not invocation.is_for_people:
        show_list(invocation, hits, ())
        return
    count = 0
    for line in _lines(hits):
        click.echo(line)
        count += 1
    if not count:
        note("none")
    elif count == limit:
        note(f"the first {limit} lines; more with --limit")


def _lines(hits: Iterable[Item]) -> Iterator[str]:
    for hit in hits:
        place = f"{hit['run_id']}:{hit['line']}:"
        yield click.style(place, fg="cyan") + _marked(str(hit["text"]), hit["marks"])


def _marked(text: str, marks: Iterable[Item]) -> str:
    """Return a line with its matches in colour."""
    parts, position = list[str](), 0
    for mark in marks:
        parts.append(printable_log_line(text[position : mark["start"]]))
        parts.append(click.style(printable_log_line(text[mark["start"] : mark["end"]]), fg="red", bold=True))
        position = mark["end"]
    return "".join((*parts, printable_log_line(text[position:])))
