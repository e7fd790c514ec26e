"""``duetime``: the program of operators. In a checkout: ``.venv/bin/duetime``, or ``python -m app``.

Its commands work on this host; those of the client, which are in ``executor_client.cli``, over API v1.
"""

from pathlib import Path

import click

from app.commands.invocation import ENV_FILE, Settings
from executor_client.api.transport import Transport
from executor_client.cli import main as client
from executor_client.cli.invocation import common_options
from executor_client.wire.version import VERSION

#: commands of this host: name -> module and name there, imported when the command is called
OPERATING = {
    "up": "app.commands.up:up",
    "init": "app.commands.init:init",
    "next-times": "app.commands.next_times:next_times_command",
    "create-user": "app.commands.users:create_user",
    "link-identity": "app.commands.users:link_identity",
    "check-config": "app.commands.settings:check_config",
    "seed-demo": "app.commands.demo:seed_demo",
    "db": "app.commands.schema:database",
    "backup": "app.commands.backups:backup",
    "restore": "app.commands.backups:restore",
    "doctor": "app.commands.doctor:doctor",
    "rotate-token": "app.commands.tokens:rotate_token",
    "promote": "app.commands.promote:promote",
    "settle": "app.commands.settle:settle",
}
#: those that are also commands of ``flask --app wsgi``
COMMANDS = ("next-times", "create-user", "link-identity", "check-config", "seed-demo")


def _open_local() -> Transport:
    """Import the API of this host and open it."""
    from app.commands.local import open_local

    return open_local()


@click.group("duetime", cls=client.Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--env-file",
    type=click.Path(path_type=Path),
    help=f"Settings of the services, which the environment overrides; default: {ENV_FILE}, if readable.",
)
@common_options
@click.version_option(VERSION, message="%(prog)s %(version)s")
@click.pass_context
def duetime(context: click.Context, env_file: Path | None) -> None:
    """Operate Duetime: jobs and runs over its API, and the installation on this host."""
    context.obj = Settings(env_file)


duetime.places = {**client.COMMANDS, **OPERATING}
duetime.open_local = _open_local
duetime.sections = {"On this host": [*OPERATING]}
