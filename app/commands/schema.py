"""Command ``db upgrade``: the tables of the database."""

import click

from app.clock import now_ms
from app.commands.context import configuration, one_line_errors
from app.database.opening import check_database, create_database_file
from app.services.installation import upgrade as schema_upgrade
from app.settings.config import Config
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
    print_notice(config)
    schema_upgrade.upgrade(config.database_url)


def print_notice(config: Config) -> None:
    """Print what the workers will delete of a database that is adopted now."""
    if notice := schema_upgrade.retention_notice(config, now_ms=now_ms()):
        click.echo(notice, err=True)
