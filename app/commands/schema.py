"""Command ``db upgrade``: the tables of the database."""

from functools import partial

import click

from app.clock import now_ms
from app.commands.context import configuration, one_line_errors
from app.database.opening import check_database, create_database_file
from app.services.installation.upgrade import UpgradeReport
from app.services.installation.upgrade import upgrade as schema_upgrade
from app.settings.home import prepare_home


@click.group("db")
def database() -> None:
    """Create and upgrade the tables of the database."""


@database.command("upgrade")
@one_line_errors
def upgrade() -> None:
    """Create the tables, or bring them to the schema of this program."""
    config = configuration()
    prepare_home(config.home)
    create_database_file(config)
    check_database(config)
    report = UpgradeReport(config, now_ms=now_ms(), warn=partial(click.echo, err=True))
    schema_upgrade(config.database_url, look=report.look)
    click.echo(report.summary)
    if report.notice:
        click.echo(report.notice)
