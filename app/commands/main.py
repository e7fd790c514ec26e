"""``duetime``: the program of operators. In a checkout: ``.venv/bin/duetime``, or ``python -m app``.

Its commands work on this host; those of the client, which are in ``executor_client.cli``, over API v1.
"""

from importlib import import_module
from pathlib import Path

import click

from app.commands.invocation import ENV_FILE, Settings
from executor_client.api.transport import Transport
from executor_client.cli import main as client
from executor_client.cli.invocation import common_options
from executor_client.wire.version import VERSION

#: commands of this host: name -> module of this package and name there, imported when the command is called
OPERATING = {
    "up": "up.up",
    "init": "init.init",
    "next-times": "next_times.next_times_command",
    "create-user": "users.create_user",
    "link-identity": "users.link_identity",
    "check-config": "settings.check_config",
    "seed-demo": "demo.seed_demo",
    "db": "schema.database",
    "backup": "backups.backup",
    "restore": "backups.restore",
    "doctor": "doctor.doctor",
    "rotate-token": "tokens.rotate_token",
    "promote": "promote.promote",
    "settle": "settle.settle",
}
#: those that are also commands of ``flask --app wsgi``
COMMANDS = ("next-times", "create-user", "link-identity", "check-config", "seed-demo")


class Program(client.Program):
    """Program of the server; a command of this host goes before one of the client that has its name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted({*super().list_commands(ctx), *OPERATING})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; None if there is none of this name."""
        return load_command(cmd_name) if cmd_name in OPERATING else super().get_command(ctx, cmd_name)


def load_command(name: str) -> click.Command:
    """Import a command of this host."""
    module, _, attribute = OPERATING[name].partition(".")
    command = getattr(import_module(f"app.commands.{module}"), attribute)
    assert isinstance(command, click.Command)
    return command


def _open_local() -> Transport:
    """Import the API of this host and open it."""
    from app.commands.local import open_local

    return open_local()


@click.group("duetime", cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--env-file",
    type=click.Path(path_type=Path),
    help=f"Settings of the services, which the environment overrides; default: {ENV_FILE}, if readable.",
)
@common_options
@click.version_option(VERSION, message="%(prog)s %(version)s")
@click.pass_context
def duetime(context: click.Context, env_file: Path | None) -> None:
    """Operate an XXL-JOB scheduler: jobs and runs over its API, and the installation on this host."""
    context.obj = Settings(env_file)


for _command in client.COMMANDS:
    duetime.add_command(_command)
duetime.open_local = _open_local
duetime.sections = {"On this host": [*OPERATING]}
