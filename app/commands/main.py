"""``xxl``: the program of operators. In a checkout: ``.venv/bin/xxl``, or ``python -m app``.

Its commands work on this host; those of the client, which are in ``executor_client.cli``, over API v1.
"""

from pathlib import Path

import click

from app.commands.backups import backup, restore
from app.commands.context import ENV_FILE, Settings
from app.commands.demo import seed_demo
from app.commands.doctor import doctor
from app.commands.local import open_local
from app.commands.next_times import next_times_command
from app.commands.promote import promote
from app.commands.schema import database
from app.commands.settings import check_config
from app.commands.settle import settle
from app.commands.users import create_user, link_identity
from executor_client.cli import main as client
from executor_client.cli.invocation import common_options
from executor_client.wire.version import VERSION

#: also commands of ``flask --app wsgi``
COMMANDS: tuple[click.Command, ...] = (
    next_times_command,
    create_user,
    link_identity,
    check_config,
    seed_demo,
)


#: of this host only
OPERATING = (*COMMANDS, database, backup, restore, doctor, promote, settle)


@click.group("xxl", cls=client.Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--env-file",
    type=click.Path(path_type=Path),
    help=f"Settings of the services, which the environment overrides; default: {ENV_FILE}, if readable.",
)
@common_options
@click.version_option(VERSION, message="%(prog)s %(version)s")
@click.pass_context
def xxl(context: click.Context, env_file: Path | None) -> None:
    """Operate an XXL-JOB scheduler: jobs and runs over its API, and the installation on this host."""
    context.obj = Settings(env_file)


# a command of this host goes before one of the client that has its name
for _command in (*client.COMMANDS, *OPERATING):
    xxl.add_command(_command)
xxl.open_local = open_local
xxl.sections = {"On this host": [str(command.name) for command in OPERATING]}
