"""Program ``duetime`` of the client; that of the server has these commands and more."""

import errno
from collections.abc import Callable, Mapping, Sequence

import click

from executor_client.api.transport import Transport
from executor_client.cli.code import apply, drift, export, plan, undo
from executor_client.cli.completion import completion
from executor_client.cli.groups import groups, instances, nodes
from executor_client.cli.invocation import common_options, invocation_of
from executor_client.cli.jobs import jobs, next_times
from executor_client.cli.login import login, logout, whoami
from executor_client.cli.runs import runs
from executor_client.cli.tokens import tokens
from executor_client.cli.users import users
from executor_client.wire.version import VERSION

#: commands over the API
COMMANDS: tuple[click.Command, ...] = (
    login,
    logout,
    whoami,
    jobs,
    runs,
    groups,
    instances,
    nodes,
    users,
    tokens,
    next_times,
    plan,
    apply,
    drift,
    export,
    undo,
    completion,
)

#: error numbers of writes to a full disk
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Program(click.Group):
    """Group that lists its commands in sections, and may serve ``--local``."""

    #: title -> names of its commands; commands without a section come first
    sections: Mapping[str, Sequence[str]] = {}
    #: opens the API of this host without HTTP
    open_local: Callable[[], Transport] | None = None

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
                formatter.write_dl([(name, each.get_short_help_str(70)) for name, each in commands if each])


@click.group("duetime", cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@common_options
@click.version_option(VERSION, message="%(prog)s %(version)s")
def duetime() -> None:
    """Command line of the XXL-JOB scheduler: jobs and runs of a console."""


for _command in COMMANDS:
    duetime.add_command(_command)
