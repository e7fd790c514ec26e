"""Command ``jobs trigger``: start a run, and wait for its end."""

from contextlib import closing
from dataclasses import dataclass

import click

from executor_client.api.client import OPEN_STATES
from executor_client.api.error_messages import EXIT_FAILED
from executor_client.api.session import Item
from executor_client.cli.invocation import (
    EXIT_INTERRUPTED,
    EXIT_TIMED_OUT,
    Invocation,
    Stop,
    api_command,
)
from executor_client.cli.job_completion import job_argument
from executor_client.cli.lookup import find_job
from executor_client.cli.output.chain import ChainWait
from executor_client.cli.output.log_lines import grown_lines, line_text
from executor_client.cli.output.output import note, show_document, show_done
from executor_client.cli.output.progress import Progress
from executor_client.cli.output.run_columns import COLOURS, run_line
from executor_client.cli.output.times import Duration, Instant, local_time
from executor_client.config.program_name import program_name
from executor_client.wire.clock import monotonic_s

#: seconds of one wait, after which the progress line is updated
WAIT_S = 2
SUCCEEDED, TIMED_OUT = "succeeded", "timed_out"


@dataclass(frozen=True)
class WaitOptions:
    """Options of waiting for a run."""

    timeout_s: int | None
    follow: bool
    #: the id is on standard output already
    quiet: bool


@click.command("trigger", short_help="Run a job now, or once later.")
@job_argument
@click.option("--param", help="Parameter of this run, instead of the job's.")
@click.option("--address", "addresses", multiple=True, help="Instance to run on; repeatable.")
@click.option("--at", type=Instant(), help="Run once at this local time, '2026-12-24 18:00', or RFC 3339.")
@click.option("--in", "in_s", type=Duration(), help="Run once after this time: 90s, 10m, 1h30m.")
@click.option(
    "--logical-time", type=Instant(), help="What the run stands for, as --at: by default its start."
)
@click.option("--force", is_flag=True, help="Run it even if a limit has no slot or a blackout is on.")
@click.option("--chain", is_flag=True, help="With all that follows the job, transitively.")
@click.option("-w", "--wait", is_flag=True, help="Wait for the end of the run, or of the whole chain.")
@click.option("--timeout", "timeout_s", type=Duration(), help="Stop waiting after this time; implies --wait.")
@click.option("-f", "--follow", "follow", is_flag=True, help="Print its log meanwhile; implies --wait.")
@click.option("-q", "--quiet", is_flag=True, help="Print the id of the run only.")
@api_command
def trigger(
    invocation: Invocation,
    job: str,
    wait: bool,
    timeout_s: int | None,
    follow: bool,
    quiet: bool,
    **options: object,
) -> None:
    """Run JOB now, or once at a later time.

    With --wait the exit code is that of the run: 0 succeeded; 1 failed, was killed or not started; 3 exceeded
    the timeout of its job, or had not ended after --timeout. Of a chain the worst result counts, and a job
    that did not run as one that was not started. Ctrl-C ends the waiting, not the run.
    """
    if options["chain"] and follow:
        raise click.UsageError("--chain and --follow cannot be used together")
    if options["at"] and options["in_s"] is not None:
        raise click.UsageError("--at and --in cannot be used together")
    body = {name: value for name, value in options.items() if value not in (None, (), False)}
    client = invocation.client
    run = client.trigger(find_job(client, job)["id"], body)
    if quiet:
        click.echo(run["id"])
    if options["chain"] and (wait or timeout_s is not None):
        ChainWait(invocation, run["chain"], timeout_s=timeout_s, quiet=quiet).finish()
    elif wait or follow or timeout_s is not None:
        finish(invocation, run, WaitOptions(timeout_s, follow, quiet))
    elif not quiet:
        due_text = f", due at {local_time(run.get('due_at'))}" if body.keys() & {"at", "in_s"} else ""
        for_text = f", for {local_time(run.get('logical_time'))}" if "logical_time" in body else ""
        show_done(invocation, f"run {run['id']}: {run['state']}{due_text}{for_text}", run)


def finish(invocation: Invocation, run: Item, wait_options: WaitOptions) -> None:
    """Wait for a run, print its end and leave with its exit code."""
    try:
        await_run(invocation, run, wait_options)
    except KeyboardInterrupt:
        note(f"\nrun {run['id']} continues; follow it with: {program_name()} runs tail -f {run['id']}")
        raise click.exceptions.Exit(EXIT_INTERRUPTED) from None
    if not invocation.is_for_people and not wait_options.quiet:
        show_document(invocation, run)
    if run["state"] in OPEN_STATES:
        raise Stop(
            f"run {run['id']}: not ended after {wait_options.timeout_s} s; it continues;"
            f" follow it with: {program_name()} runs tail -f {run['id']}",
            EXIT_TIMED_OUT,
        )
    if invocation.is_for_people or run["state"] != SUCCEEDED:
        click.secho(
            run_line(run),
            fg=COLOURS.get(run["state"]),
            err=wait_options.quiet or not invocation.is_for_people,
        )
    if run["state"] != SUCCEEDED:
        raise click.exceptions.Exit(EXIT_TIMED_OUT if run["state"] == TIMED_OUT else EXIT_FAILED)


def await_run(invocation: Invocation, run: Item, wait_options: WaitOptions) -> None:
    """Wait for the end of ``run`` or the timeout, and update its members from each answer."""
    client, run_id = invocation.client, str(run["id"])
    until_s = None if wait_options.timeout_s is None else monotonic_s() + wait_options.timeout_s
    if wait_options.follow:
        # Standard output is reserved for the id, or for one document.
        is_note = wait_options.quiet or not invocation.is_for_people
        for line in grown_lines(client, run_id, timeout_s=wait_options.timeout_s):
            click.echo(line_text(line), err=is_note)
    with closing(Progress()) as progress:
        for update in client.watch(run_id, timeout_s=_left_s(until_s), wait_s=WAIT_S):
            run.update(update)
            progress.show(f"run {run['id']}: {run['state']}")


def _left_s(until_s: float | None) -> float | None:
    return None if until_s is None else max(0.0, until_s - monotonic_s())
