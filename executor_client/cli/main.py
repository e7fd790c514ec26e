"""Program ``duetime`` of the client; that of the server has these commands and more."""

import errno
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

import click

from executor_client.api.transport import Transport
from executor_client.cli.invocation import common_options, invocation_of
from executor_client.wire.version import VERSION

#: commands over the API: name -> module and name there, imported when the command is called
COMMANDS: Mapping[str, str] = {
    "login": "executor_client.cli.login:login",
    "logout": "executor_client.cli.login:logout",
    "whoami": "executor_client.cli.login:whoami",
    "jobs": "executor_client.cli.jobs:jobs",
    "runs": "executor_client.cli.runs:runs",
    "logs": "executor_client.cli.runs:logs",
    "incidents": "executor_client.cli.incidents:incidents",
    "limits": "executor_client.cli.limits:limits",
    "calendars": "executor_client.cli.calendars.calendars:calendars",
    "backfills": "executor_client.cli.backfills.backfills:backfills",
    "rounds": "executor_client.cli.rounds:rounds",
    "blackouts": "executor_client.cli.calendars.blackouts:blackouts",
    "groups": "executor_client.cli.groups:groups",
    "instances": "executor_client.cli.groups:instances",
    "nodes": "executor_client.cli.groups:nodes",
    "users": "executor_client.cli.users:users",
    "tokens": "executor_client.cli.tokens:tokens",
    "variables": "executor_client.cli.variables:variables",
    "verify": "executor_client.cli.verify:verify",
    "next-times": "executor_client.cli.jobs:next_times",
    "plan": "executor_client.cli.code:plan",
    "apply": "executor_client.cli.code:apply",
    "drift": "executor_client.cli.code:drift",
    "export": "executor_client.cli.code:export",
    "undo": "executor_client.cli.code:undo",
    "completion": "executor_client.cli.completion:completion",
}

#: error numbers of writes to a full disk
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Program(click.Group):
    """Group that imports a command when it is called, lists them in sections, and may serve ``--local``."""

    #: name of a command -> its module and name there
    places: Mapping[str, str] = COMMANDS
    #: title -> names of its commands; commands without a section come first
    sections: Mapping[str, Sequence[str]] = {}
    #: opens the API of this host without HTTP
    open_local: Callable[[], Transport] | None = None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted(self.places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; None if there is none of this name."""
        return load_command(self.places[cmd_name]) if cmd_name in self.places else None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options before the command."""
        invocation_of(ctx).open_local = self.open_local
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; a full disk under its output is an error of one line."""
        try:
            return super().invoke(ctx)
        except OSError as exc:
            if exc.errno not in FULL:
                raise
            raise click.ClickException(f"cannot write: {exc.strerror}") from exc

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with their short helps."""
        section_names = {name for names in self.sections.values() for name in names}
        general_names = [name for name in self.list_commands(ctx) if name not in section_names]
        for title, names in {"Over the API": general_names, **self.sections}.items():
            with formatter.section(title):
                commands = [(name, self.get_command(ctx, name)) for name in names]
                formatter.write_dl(
                    [(name, command.get_short_help_str(70)) for name, command in commands if command]
                )


def load_command(place: str) -> click.Command:
    """Import a command."""
    module, _, name = place.partition(":")
    command = getattr(import_module(module), name)
    assert isinstance(command, click.Command)
    return command


@click.group("duetime", cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@common_options
@click.version_option(VERSION, message="%(prog)s %(version)s")
def duetime() -> None:
    """Command line of Duetime: jobs and runs of a console."""
