"""Invocation of ``duetime``: common options, the console to call, output format and one-line errors.

Exit codes: 0 done; 1 refused or failed; 2 command line, settings or credentials; 3 timed out; 130 Ctrl-C.
"""

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import click

from executor_client.api.client import ApiClient
from executor_client.api.error_messages import EXIT_FAILED, explain
from executor_client.api.errors import ApiError, Forbidden, NotConfigured, Unauthorized
from executor_client.api.profiles import URL, find_profile
from executor_client.api.transport import Transport
from executor_client.config.program_name import program_name
from executor_client.config.terminal import printable

EXIT_TIMED_OUT = 3
EXIT_INTERRUPTED = 130
FORMATS = ("table", "json", "yaml")
_KEY = "executor_client.cli"


@dataclass
class Invocation:
    """Options of one call of the program, and the client they select."""

    profile: str = ""
    is_local: bool = False
    #: one of FORMATS
    output: str = FORMATS[0]
    #: opens the API of this host without HTTP; None: not a program of the server
    open_local: Callable[[], Transport] | None = None

    @functools.cached_property
    def client(self) -> ApiClient:
        """Client of the console; raises NotConfigured."""
        if self.is_local:
            if self.open_local is None:
                raise NotConfigured(
                    "--local: this duetime is not the server's; use that of the server's environment"
                )
            client = ApiClient(transport=self.open_local())
        else:
            profile = find_profile(self.profile, os.environ)
            if profile is None:
                raise NotConfigured(self._no_console())
            client = ApiClient(profile.url, profile.token)
        click.get_current_context().find_root().call_on_close(client.close)
        return client

    def _no_console(self) -> str:
        more = "" if self.open_local is None else ", or add --local"
        way = f"run: {program_name()} login URL{more}"
        return f"no console to call: there is no profile, and {URL} is not set; {way}"

    @property
    def is_for_people(self) -> bool:
        """Whether the output is a table, not a document for programs."""
        return self.output == FORMATS[0]


def invocation_of(context: click.Context) -> Invocation:
    """Return the invocation, which all click contexts of a call share."""
    invocation = context.meta.setdefault(_KEY, Invocation())
    assert isinstance(invocation, Invocation)
    return invocation


class Stop(click.ClickException):
    """End with one line on standard error and an exit code."""

    def __init__(self, message: str, exit_code: int = EXIT_FAILED) -> None:
        super().__init__(printable(message, "\n\t"))
        self.exit_code = exit_code  # type: ignore[misc]


class _LocalOption(click.Option):
    """Option ``--local``, listed only in the help of programs that support it."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the line of the help, or None."""
        return None if invocation_of(ctx).open_local is None else super().get_help_record(ctx)


def _store_as(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def store(context: click.Context, _parameter: click.Parameter, value: Any) -> None:
        if value:
            setattr(invocation_of(context), name, value)

    return store


def common_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of all commands over the API, which may precede or follow the command's name."""
    for option in (
        click.option(
            "--local",
            cls=_LocalOption,
            is_flag=True,
            expose_value=False,
            callback=_store_as("is_local"),
            help="Work on the database of this host, as an administrator; the console need not run.",
        ),
        click.option(
            "--profile",
            metavar="NAME",
            expose_value=False,
            callback=_store_as("profile"),
            help="Console to call; default: XXL_JOB_URL, XXL_JOB_PROFILE, then the last login.",
        ),
        click.option(
            "-o",
            "--output",
            type=click.Choice(FORMATS),
            expose_value=False,
            callback=_store_as("output"),
            help="A table for people, or a document for programs.",
        ),
    ):
        command = option(command)
    return command


def api_command(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a command over the API: common options, the invocation as first argument, errors of one line."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        invocation = invocation_of(click.get_current_context())
        if os.environ.get("NO_COLOR"):
            click.get_current_context().color = False
        try:
            return function(invocation, *args, **kwargs)
        except ApiError as exc:
            _fail(exc)
        except KeyboardInterrupt:
            click.echo(err=True)
            raise click.exceptions.Exit(EXIT_INTERRUPTED) from None

    return common_options(run)


def _fail(error: ApiError) -> NoReturn:
    line, exit_code = explain(error)
    hints: dict[type[ApiError], str] = {
        Unauthorized: f"; run: {program_name()} login",
        Forbidden: f"; see: {program_name()} whoami",
    }
    raise Stop(line + hints.get(type(error), ""), exit_code) from error
