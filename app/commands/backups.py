"""Commands ``backup`` and ``restore``: the database and the secrets in one file."""

from functools import partial
from pathlib import Path

import click

from app.clock import now_ms
from app.commands.context import configuration, one_line_errors
from app.domain.text.texts import counted
from app.services.backups.archived_logs import SUFFIX, logs_of, require_folder, restore_logs, save_logs
from app.services.backups.backup import Backup, back_up, back_up_to
from app.services.backups.last_backup import LastBackup, note_last
from app.services.backups.manifest import SecretFrom
from app.services.backups.restore import restore as restore_backup
from app.services.backups.restore_options import Options, RestoreResult

#: setting of each secret that may come from one
SETTINGS = {"secret_key": "XXL_JOB_SECRET_KEY", "access_token": "XXL_JOB_ACCESS_TOKEN"}
FILE = click.argument("file", type=click.Path(path_type=Path))


@click.command("backup", short_help="Write database and secrets to one file.")
@FILE
@click.option(
    "--keep",
    type=click.IntRange(1),
    metavar="N",
    help="FILE is a folder: write a file named by the time there, and keep the newest N of these.",
)
@click.option("--with-logs", is_flag=True, help=f"Write the archived logs beside it, to FILE{SUFFIX}.")
@one_line_errors
def backup(file: Path, keep: int | None, with_logs: bool) -> None:
    """Write database and secrets to the new FILE, while the services go on."""
    config, old_files = configuration(), list[Path]()
    if with_logs:
        require_folder(config)
    if keep is None:
        result = back_up(config, file, now_ms=now_ms())
    else:
        result, old_files = back_up_to(config, file, keep=keep, now_ms=now_ms())
    note_last(config, LastBackup(result.manifest.made_ms, result.path))
    _print_backup(result)
    if with_logs:
        path, count = save_logs(config, result.path)
        click.echo(f"{path}: {counted(count, 'file')} of archived logs")
    for path in old_files:
        click.echo(f"removed: {path}")
        logs_of(path).unlink(missing_ok=True)


def _print_backup(result: Backup) -> None:
    manifest = result.manifest
    megabytes = result.path.stat().st_size / 1_000_000
    click.echo(
        f"{result.path}: {manifest.database}, schema {manifest.schema},"
        f" {counted(sum(manifest.rows.values()), 'row')},"
        f" {manifest.rows.get('xxl_job_log', 0)} of them runs, {megabytes:.1f} MB"
    )
    for name, source in manifest.secrets.items():
        if source is SecretFrom.SETTING:
            click.echo(f"not in the file: {SETTINGS[name]}, which is a setting; keep it separately", err=True)
    if result.unverified:
        click.echo(f"not verified: {result.unverified}", err=True)
    else:
        click.echo("verified: restored into a scratch database, every row is there")


@click.command("restore", short_help="Restore database and secrets from a backup.")
@FILE
@click.option("--replace", "replace_all", is_flag=True, help="Replace existing tables and secrets.")
@click.option("--accept-unproven", is_flag=True, help="Replace them also if its origin cannot be proven.")
@one_line_errors
def restore(file: Path, replace_all: bool, accept_unproven: bool) -> None:
    """Put database and secrets of the backup FILE in place; stop every console and all workers first.

    Archived logs beside it are put in place, too.
    """
    options, config = Options(replace_all, accept_unproven, partial(click.echo, err=True)), configuration()
    result = restore_backup(config, file, options, clock=now_ms)
    try:
        if count := restore_logs(config, file):
            click.echo(f"restored: {counted(count, 'file')} of archived logs")
    finally:  # The database is in place, also if there is no room for the logs.
        for line in _report(result):
            click.echo(line)


def _report(result: RestoreResult) -> list[str]:
    settlement = result.settlement
    return [
        f"restored: {counted(sum(result.manifest.rows.values()), 'row')};"
        f" next id of a run: {settlement.next_log_id}",
        f"skipped: the times up to now of {counted(settlement.fires.jobs, 'job')},"
        f" and {counted(settlement.fires.queued, 'queued run')}",
        f"ended as unresolved: {counted(settlement.fires.open_runs, 'run')};"
        f" cancelled: {counted(settlement.tasks, 'background task')};"
        f" paused: {counted(settlement.fires.backfills, 'backfill')};"
        f" logged out: {settlement.logins} sessions",
        *(f"kept: {path}" for path in result.old_files),
        *(f"kept: table {name}, which this version does not know" for name in result.unknown),
        "next: start the console, then the workers"
        + (
            "; look at the unresolved runs, and run again what is missing"
            if settlement.fires.open_runs
            else ""
        ),
    ]
