"""Command ``settle``: reconciliation after a failover to a database that lacks the last commits."""

from datetime import datetime

import click

from app.clock import SECOND_MS, now_ms
from app.commands.context import one_line_errors, open_database
from app.database.engine import read_scope
from app.domain.access.permissions import system_actor
from app.domain.text.texts import counted
from app.errors import NotConfigured
from app.services.backups import commit_loss, lost_commits
from app.services.backups.reconcile import preview
from app.services.installation import nodes
from executor_client.cli.output.times import Instant


@click.command("settle", short_help="Settle a database that has lost its last commits.")
@click.option(
    "--since",
    type=Instant(),
    metavar="TIME",
    help="Commits are missing since this local time, '2026-12-24 18:00', or RFC 3339: more ids are left out.",
)
@click.option("--yes", is_flag=True, help="Settle a database also if nothing shows that it lost commits.")
@one_line_errors
def settle(since: str | None, yes: bool) -> None:
    """Settle a database that has lost its last commits, as after a failover to an asynchronous standby.

    Without --since and --yes only if a run that was sent from this host is missing. The services may run.
    Times up to now are skipped, runs without a result end as unresolved, and ids of runs leave a gap, so that
    nothing runs twice and no late result ends another run.
    """
    config = open_database()
    nodes.require_same_zone(config, now_ms=now_ms())
    since_ms = None if since is None else round(datetime.fromisoformat(since).timestamp() * SECOND_MS)
    if since_ms is not None and since_ms > now_ms():
        raise click.BadParameter("a time that has passed is expected", param_hint="--since")
    with read_scope() as session:
        highest_sent_id = commit_loss.known_as_sent(session, config)
        if since_ms is None and not yes and not commit_loss.is_behind(session, highest_sent_id):
            ending = preview(session, now_ms=now_ms())
            raise NotConfigured(
                "the database has all runs that were sent from here; if commits are missing all the same,"
                f" --since TIME or --yes ends {counted(ending.open_runs, 'run')}"
                f" and skips {ending.queued} queued ones"
                f" and the times up to now of {counted(ending.jobs, 'job')}"
            )
    result = lost_commits.settle_lost(
        actor=system_actor("command line"), clock=now_ms, up_to_id=highest_sent_id, since_ms=since_ms
    )
    assert result is not None  # whether the database is behind or not
    click.echo(f"next id of a run: {result.next_log_id}")
    click.echo(
        f"skipped: the times up to now of {counted(result.fires.jobs, 'job')},"
        f" and {counted(result.fires.queued, 'queued run')}"
    )
    click.echo(
        f"ended as unresolved: {counted(result.fires.open_runs, 'run')}; a late result still settles one"
    )
