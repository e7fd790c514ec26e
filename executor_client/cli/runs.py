"""Commands ``runs``: list, show, tail, kill, start, withdraw, release, retry; and ``logs grep``."""

from collections.abc import Iterable, Iterator

import click

from executor_client.api.session import Item
from executor_client.cli.groups import group_option
from executor_client.cli.invocation import Invocation, api_command
from executor_client.cli.job_completion import complete_job
from executor_client.cli.lookup import explain_missing, find_group, find_job
from executor_client.cli.output.log_lines import show_log
from executor_client.cli.output.output import note, show_done, show_item, show_list
from executor_client.cli.output.run_columns import COLOURS, COLUMNS
from executor_client.cli.output.times import Duration, Instant
from executor_client.cli.trigger import WaitOptions, finish
from executor_client.config.terminal import printable_log_line

RUN = click.argument("run")
DEFAULT_LIMIT = 50
#: lines of logs grep
GREP_LIMIT = 200


@click.group("runs", short_help="Runs: list, show, tail, kill, start, withdraw, release, retry.")
def runs() -> None:
    """List and show runs, read their logs, kill and retry them. RUN is the id of one."""


@runs.command("list")
@click.option("--job", shell_complete=complete_job, help="Only runs of this job: id, description or handler.")
@group_option
@click.option("--state", type=click.Choice([*COLOURS, "unsuccessful"]), help="Only runs in this state.")
@click.option("--from", "from_", type=Instant(), help="Only runs started at this time or later.")
@click.option("--to", type=Instant(), help="Only runs started at this time or earlier.")
@click.option("--logical-from", type=Instant(), help="Only runs whose logical time is then or later.")
@click.option("--logical-to", type=Instant(), help="Only runs whose logical time is then or earlier.")
@click.option("--chain", help="Only runs of this chain: as runs have it, or the id of its trigger.")
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=DEFAULT_LIMIT,
    show_default=True,
    help="Maximum number of runs; 0: all.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print ids only.")
@api_command
def list_runs(
    invocation: Invocation, job: str | None, group: str | None, limit: int, quiet: bool, **filters: str | None
) -> None:
    """List the runs, the newest first."""
    client = invocation.client
    query = {
        "job_id": find_job(client, job)["id"] if job is not None else None,
        "group_id": find_group(client, group)["id"] if group is not None else None,
        **{name.rstrip("_"): value for name, value in filters.items()},
    }
    rows = client.items("/runs", query, limit=limit or None)
    show_list(invocation, rows, COLUMNS, only="id" if quiet else "")


@runs.command("show")
@RUN
@api_command
def show_run(invocation: Invocation, run: str) -> None:
    """Show a RUN."""
    with explain_missing("run", run):
        show_item(invocation, invocation.client.run(run))


@runs.command("tail")
@RUN
@click.option("-f", "--follow", "follow", is_flag=True, help="Print what is added, until the run ends.")
@click.option("--from-line", type=click.IntRange(1), default=1, show_default=True, help="First line.")
@api_command
def tail(invocation: Invocation, run: str, follow: bool, from_line: int) -> None:
    """Print the log of a RUN."""
    with explain_missing("run", run):
        show_log(invocation, run, from_line=from_line, follow=follow)


@runs.command("kill")
@RUN
@api_command
def kill(invocation: Invocation, run: str) -> None:
    """Kill a RUN that is running."""
    with explain_missing("run", run):
        result = invocation.client.kill(run)
    show_done(invocation, f"run {result['id']}: {result['state']}", result)


@runs.command("start")
@RUN
@api_command
def start(invocation: Invocation, run: str) -> None:
    """Start a RUN now that waits for a limit, the end of a blackout, its predecessors or a missed run."""
    with explain_missing("run", run):
        result = invocation.client.start(run)
    show_done(invocation, f"run {result['id']}: starts now", result)


@runs.command("withdraw")
@RUN
@api_command
def withdraw(invocation: Invocation, run: str) -> None:
    """Withdraw a RUN that waits for a limit or the end of a blackout, or is triggered and not started."""
    with explain_missing("run", run):
        item = invocation.client.run(run)
        invocation.client.withdraw(run)
    show_done(invocation, f"run {run}: withdrawn", item)


@runs.command("release")
@RUN
@api_command
def release(invocation: Invocation, run: str) -> None:
    """Release the slots of a RUN that has ended as unresolved; it may still be running."""
    with explain_missing("run", run):
        result = invocation.client.release(run)
    show_done(invocation, f"run {result['id']}: its slots are free", result)


@runs.command("retry")
@RUN
@click.option("-w", "--wait", is_flag=True, help="Wait for the end of the new run, as jobs trigger does.")
@click.option("--timeout", "timeout_s", type=Duration(), help="Stop waiting after this time; implies --wait.")
@click.option("--force", is_flag=True, help="Run it even if a limit has no slot or a blackout is on.")
@click.option("-q", "--quiet", is_flag=True, help="Print the id of the new run only.")
@api_command
def retry(
    invocation: Invocation, run: str, wait: bool, timeout_s: int | None, force: bool, quiet: bool
) -> None:
    """Repeat a RUN that has ended, as a new run with the same parameter."""
    with explain_missing("run", run):
        new_run = invocation.client.retry(run, force=force)
    if quiet:
        click.echo(new_run["id"])
    if wait or timeout_s is not None:
        finish(invocation, new_run, WaitOptions(timeout_s, follow=False, quiet=quiet))
    elif not quiet:
        show_done(invocation, f"run {new_run['id']}: {new_run['state']}", new_run)


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
    default=GREP_LIMIT,
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
        yield click.style(place, fg="cyan") + _highlight(str(hit["text"]), hit["marks"])


def _highlight(text: str, marks: Iterable[Item]) -> str:
    """Return a line with its matches in colour."""
    parts, position = list[str](), 0
    for mark in marks:
        parts.append(printable_log_line(text[position : mark["start"]]))
        parts.append(click.style(printable_log_line(text[mark["start"] : mark["end"]]), fg="red", bold=True))
        position = mark["end"]
    return "".join((*parts, printable_log_line(text[position:])))
