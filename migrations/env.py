"""Alembic environment: upgrade the configured database, or the one at a URL passed by the caller.

One process at a time, under the upgrade lock. What the operator has to mend is a NotConfigured of one line;
``flask db`` ends with it and exit code 2.
"""

import re
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from pkgutil import iter_modules

import click
from alembic import context
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from app import models
from app.clock import now_ms
from app.database.dialects.choice import plain_engine
from app.database.faults import reason_of
from app.database.moves import follow
from app.database.opening import check_database
from app.errors import NotConfigured
from app.models.base import Base
from app.services.installation.schema import Revisions
from app.services.installation.upgrade import Look, UpgradeReport
from app.settings.config import Config
from app.store.copies.schema import change_revision, find_revision
from app.store.copies.upgrade_lock import WAIT_S, allow_zero_dates, limit_table_waits, upgrade_lock

for module in iter_modules(models.__path__):
    import_module(f"app.models.{module.name}")  # the metadata contains only tables of imported models


class Refused(click.ClickException):
    """One line on standard error, and the exit code for what the operator has to mend."""

    exit_code = 2


def run_configured() -> None:
    """Upgrade the database that the settings name, from a command line."""
    try:
        config = follow(Config.from_env())
        check_database(config)
        command = click.get_current_context(silent=True)
        if command is not None and command.info_name == "downgrade":
            raise Refused("there is no downgrade: restore a backup instead")
        if command is None or command.info_name != "upgrade":  # others of ``flask db`` only read
            run(config.database_url)
            return
        report = UpgradeReport(config, now_ms=now_ms(), warn=partial(click.echo, err=True))
        run(config.database_url, report.look)
        click.echo(report.summary)
    except NotConfigured as exc:
        raise Refused(str(exc)) from exc


def run(url: str, look: Look | None = None) -> None:
    """Run the migrations, each in its own transaction where DDL is transactional. Raises NotConfigured.

    ``look`` is called before them, under the lock: tables that another upgrade changes cannot be read.
    """
    wait_s = context.config.attributes.get("wait_s", WAIT_S)
    engine = plain_engine(url)
    try:
        with engine.connect() as connection, ExitStack() as stack:
            if find_revision(connection) != context.script.get_current_head():  # a start waits for no backup
                connection.rollback()
                stack.enter_context(upgrade_lock(connection, wait_s=wait_s))
                limit_table_waits(connection)
                allow_zero_dates(connection)
                if look is not None:
                    look(connection)
                    connection.rollback()
            renumber(connection)
            context.configure(
                connection=connection,
                target_metadata=Base.metadata,
                transaction_per_migration=True,
                render_as_batch=engine.dialect.name == "sqlite",
            )
            with context.begin_transaction():
                context.run_migrations()
    except DBAPIError as exc:
        raise NotConfigured(
            f"XXL_JOB_DATABASE_URL: the schema cannot be upgraded: {table_of(exc)}{reason_of(exc)};"
            " once that is mended, run the upgrade again: it continues where it stopped"
        ) from exc


def table_of(error: DBAPIError) -> str:
    """Return the table that the failed statement changes, for the start of a message; "" if it has none."""
    found = re.search(r"\bxxl_job_\w+", error.statement or "")
    return f"{found[0]}: " if found else ""


def renumber(connection: Connection) -> None:
    """Stamp a database whose revision was replaced; raises NotConfigured for a newer program's schema."""
    found = find_revision(connection)
    revisions = Revisions()
    revisions.require_known(found)
    if found in revisions.replaced:
        change_revision(connection, revisions.replaced[found])
    connection.commit()


if "url" in context.config.attributes:
    run(context.config.attributes["url"], context.config.attributes.get("look"))
else:
    run_configured()
