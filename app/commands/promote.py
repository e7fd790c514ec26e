"""Command ``promote``: move from SQLite to a database server while firing goes on."""

import os
import sys
from pathlib import Path

import click

from app.commands.context import one_line_errors
from app.commands.invocation import Settings
from app.database.engine import bind_engine
from app.database.opening import check_database
from app.database.urls import without_password
from app.domain.text.texts import counted
from app.errors import NotConfigured
from app.services.installation.preconditions import check_schema
from app.services.promotion import promoting, server
from app.settings.config import Config
from app.settings.env_files import write_setting
from app.settings.sources import ENVIRONMENT, IN_FILE
from executor_client.config.terminal import is_terminal, read_line

URL_SETTING = "XXL_JOB_DATABASE_URL"
#: what each step means for the operator
STEPS = {
    "prepare": "create tables in the new database",
    "copy": "copy all rows",
    "follow": "copy what changed meanwhile",
    "switch": "pause claims and wait for sends in flight",
    "fence": "copy the last changes and compare",
}


@click.command("promote", short_help="Move from SQLite to a database server.")
@click.argument("url")
@click.option("--save", is_flag=True, help="Write the new URL into the file of settings afterwards.")
@click.pass_obj
@one_line_errors
def promote(settings: Settings, url: str, save: bool) -> None:
    """Move the SQLite database to the empty database at URL while the services run.

    URL is mysql+pymysql://USER:PASSWORD@HOST/DATABASE (MariaDB too) or postgresql+psycopg://…; "-" reads it
    from standard input, so that the password is not in the list of processes.
    """
    new_url = server.read_url(read_line() if url == "-" else url)
    config = settings.read()
    env_file = _require_writable(settings.env_file, config) if save else None
    if promoting.has_moved(config, new_url):
        click.echo("the database has moved there already")
    else:
        check_database(config)
        check_schema(bind_engine(config))
        promotion = promoting.promote(config, new_url, _show_progress, _show_step)
        rows = counted(promotion.rows, "row")
        click.echo(f"moved to {promotion.target}: {rows} in {promotion.took_ms / 1000:.1f} s")
        click.echo(f"claims paused {promotion.paused_ms} ms, nothing written {promotion.fence_ms} ms")
    if env_file is not None:
        write_setting(env_file, URL_SETTING, new_url)
        click.echo(f"{URL_SETTING} is set in {env_file}")
    else:
        click.echo(f"the services follow by themselves; set {URL_SETTING}={without_password(new_url)}")


def _require_writable(env_file: Path | None, config: Config) -> Path:
    """Return the file of settings.

    Raises NotConfigured, before anything moves, if it cannot be replaced or its URL would not count.
    """
    if env_file is None:
        raise NotConfigured(
            "--save: there is no file of settings: duetime --env-file FILE promote … names it"
        )
    source = config.sources.get(URL_SETTING, str(env_file))
    if source == ENVIRONMENT:
        raise NotConfigured(f"--save: {URL_SETTING} is set in the environment, which overrides {env_file}")
    if source != str(env_file):
        raise NotConfigured(
            f"--save: {URL_SETTING}{IN_FILE} is set; run this without --save, then write the URL to {source}"
        )
    folder = env_file.resolve().parent
    if not os.access(folder, os.W_OK | os.X_OK):
        raise NotConfigured(f"--save: {folder} is not writable; run this as root, or without --save")
    return env_file


def _show_step(name: str) -> None:
    if name in STEPS:
        click.echo(f"{STEPS[name]} …", err=True)


def _show_progress(table: str, count: int, total: int) -> None:
    """Show the rows copied of a table, on a terminal in one line that grows."""
    if is_terminal(sys.stderr):
        click.echo(f"\r  {table}: {count} of {total}\033[K", err=True, nl=count >= total)
    elif count >= total:
        click.echo(f"  {table}: {count}", err=True)
