"""Commands ``db upgrade``: the tables of the database."""

import click
from alembic import command as alembic
from alembic.config import Config as AlembicConfig

from app.commands.context import configuration, one_line_errors
from app.db import check_database, create_database_file
from app.home import prepare_home
from app.services.startup import MIGRATIONS


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
    settings = AlembicConfig(MIGRATIONS / "alembic.ini")
    settings.attributes["url"] = config.database_url
    alembic.upgrade(settings, "head")
