"""Context of the commands: settings, database, and errors in one line.

Exit codes: 0 done; 1 findings, or what was asked for is not possible; 2 what the operator has to correct
first: settings, database, schema, the command line.
"""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import click
from flask.cli import ScriptInfo
from sqlalchemy.exc import DBAPIError

from app.database.engine import bind_engine
from app.database.faults import not_configured
from app.database.moved import follow
from app.database.opening import check_database
from app.database.urls import without_password
from app.errors import NoDatabase, NotConfigured, XxlJobError
from app.services.installation import preconditions
from app.settings.config import Config
from executor_client.config.terminal import printable

P = ParamSpec("P")
T = TypeVar("T")
EXIT_FAILED = 1
EXIT_NOT_CONFIGURED = 2
#: settings of the services of a host, read by the commands too; and their home unless it is set there
ENV_FILE = Path("/etc/xxl-job.env")
SERVICE_HOME = Path("/var/lib/xxl-job")


class Settings:
    """Settings of an invocation of ``xxl``, read when a command first asks for them."""

    def __init__(self, env_file: Path | None) -> None:
        default = ENV_FILE if os.access(ENV_FILE, os.R_OK) else None
        self.env_file = env_file or default

    def read(self) -> Config:
        """Return the configuration as it is written, even if the database has moved."""
        home = SERVICE_HOME if self.env_file == ENV_FILE else Path("instance")
        # The file names the installation, as a .env in the current folder may belong to another one.
        dotenv = None if self.env_file else Path(".env")
        return Config.from_env(env_file=self.env_file, default_home=home, dotenv=dotenv)

    @functools.cached_property
    def config(self) -> Config:
        """The configuration; raises NotConfigured."""
        return follow(self.read())

    @property
    def place(self) -> str:
        """The files the settings were looked for in."""
        if self.env_file is not None:
            return f"environment and {self.env_file}"
        if not ENV_FILE.exists():
            return f"environment; there is no {ENV_FILE}"
        return f"environment; you may not read {ENV_FILE}, run this as the user of the services"


def configuration() -> Config:
    """Return the settings of this command: those of ``xxl``, or of ``flask --app wsgi``."""
    context = click.get_current_context()
    settings = context.find_object(Settings)
    if settings is not None:
        return settings.config
    config = context.ensure_object(ScriptInfo).load_app().config["XXL_JOB"]
    assert isinstance(config, Config)
    return config


def open_database() -> Config:
    """Bind the engine to the database of this command and return the settings.

    Raises NoDatabase without a database or tables, NotConfigured for another schema; creates nothing.
    """
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
        except BrokenPipeError:  # Click ends the program, as in `xxl ... | head`.
            raise
        except OSError as exc:  # A file cannot be read or written, or the disk is full.
            raise NotReady(f"{exc.filename or 'disk'}: {exc.strerror or exc}") from exc
        except XxlJobError as exc:
            raise CommandFailed(str(exc)) from exc

    return run
