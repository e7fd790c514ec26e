"""What the commands share: their settings, the database, and errors of one line.

Exit codes: 0 done; 1 findings, or what was asked for is not possible; 2 what the operator has to mend first:
settings, database, schema, the command line.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from flask.cli import ScriptInfo
from sqlalchemy.exc import DBAPIError

from app.config import Config
from app.database_faults import not_configured
from app.db import bind_engine, check_database
from app.errors import NotConfigured, XxlJobError
from app.services import startup

EXIT_FAILED = 1
EXIT_NOT_CONFIGURED = 2
#: settings of the services, read by the commands too
ENV_FILE = Path("/etc/xxl-job.env")


class Settings:
    """Settings of an invocation of ``xxl``, read when a command first asks for them."""

    def __init__(self, env_file: Path | None) -> None:
        self._env_file = env_file

    @functools.cached_property
    def config(self) -> Config:
        """The configuration; raises NotConfigured."""
        return Config.from_env(env_file=self._env_file)


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
    """Bind the engine to the database of this command; raises NotConfigured without database or schema."""
    config = configuration()
    check_database(config)
    startup.check_schema(bind_engine(config))
    return config


class Refused(click.ClickException):
    """What was asked for is not possible: one line, exit code 1."""

    exit_code = EXIT_FAILED


class NotReady(click.ClickException):
    """The operator has to mend something first: one line, exit code 2."""

    exit_code = EXIT_NOT_CONFIGURED


def one_line_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Report an error as one line on standard error: exit code 2 if it is in settings or database, else 1."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except NotConfigured as exc:
            raise NotReady(str(exc)) from exc
        except DBAPIError as exc:
            raise NotReady(str(not_configured(exc))) from exc
        except XxlJobError as exc:
            raise Refused(str(exc)) from exc

    return run
