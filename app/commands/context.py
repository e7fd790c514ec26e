"""Context of the commands: settings, database, and errors in one line.

Exit codes: 0 done; 1 findings, or what was asked for is not possible; 2 what the operator has to correct
first: settings, database, schema, the command line.
"""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import click
from sqlalchemy.exc import DBAPIError

from app.commands.invocation import Settings
from app.database.engine import bind_engine
from app.database.faults import not_configured
from app.database.urls import without_password
from app.errors import NoDatabase, NotConfigured, XxlJobError
from app.settings.config import Config
from executor_client.config.terminal import printable

P = ParamSpec("P")
T = TypeVar("T")
EXIT_FAILED = 1
EXIT_NOT_CONFIGURED = 2


def configuration() -> Config:
    """Return the settings of this command: those of ``duetime``, or of ``flask --app wsgi``."""
    context = click.get_current_context()
    settings = context.find_object(Settings)
    if settings is not None:
        return settings.config
    from flask.cli import ScriptInfo  # imported here, because only this program needs it

    config = context.ensure_object(ScriptInfo).load_app().config["XXL_JOB"]
    assert isinstance(config, Config)
    return config


def open_database() -> Config:
    """Bind the engine to the database of this command and return the settings.

    Raises NoDatabase without a database or tables, NotConfigured for another schema; creates nothing.
    """
    # Imported here, because they take 0.15 s, and not all commands open the database.
    from app.database.opening import check_database
    from app.services.installation import preconditions

    config = configuration()
    check_database(config)
    preconditions.check_schema(bind_engine(config))
    return config


def _with_places(message: str) -> str:
    """Add to a message where this command looked for an installation."""
    settings = click.get_current_context().find_object(Settings)
    place = settings.place if settings is not None else "environment and .env"
    config = configuration()
    database = without_password(config.database_url)
    parts = [message] if database in message else [message, f"database: {database}"]
    parts.append(f"home: {config.home} ({config.sources.get('XXL_JOB_HOME', 'default')})")
    return "; ".join([*parts, f"settings: {place}"])


class CommandFailed(click.ClickException):
    """The command is not possible: one line, exit code 1."""

    exit_code = EXIT_FAILED


class NotReady(click.ClickException):
    """The operator has to correct something first: one line, exit code 2."""

    exit_code = EXIT_NOT_CONFIGURED


def one_line_errors(command: Callable[P, T]) -> Callable[P, T]:
    """Report an error as one line on standard error: exit code 2 if it is in settings or database, else 1.

    The line of NoDatabase ends with where the command looked: perhaps for the wrong installation.
    """

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except NoDatabase as exc:
            raise NotReady(_with_places(str(exc))) from exc
        except NotConfigured as exc:
            # A message may name what is in a file of another's making.
            raise NotReady(printable(str(exc), "\n")) from exc
        except DBAPIError as exc:
            raise NotReady(str(not_configured(exc))) from exc
        except BrokenPipeError:  # Click ends the program, as in `duetime ... | head`.
            raise
        except OSError as exc:  # A file cannot be read or written, or the disk is full.
            raise NotReady(f"{exc.filename or 'disk'}: {exc.strerror or exc}") from exc
        except XxlJobError as exc:
            raise CommandFailed(str(exc)) from exc

    return run
