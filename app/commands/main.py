"""``xxl``: the program of operators. In a checkout: ``.venv/bin/xxl``, or ``python -m app``."""

from pathlib import Path

import click

from app.commands.backups import backup, restore
from app.commands.context import ENV_FILE, Settings
from app.commands.demo import seed_demo
from app.commands.doctor import doctor
from app.commands.next_times import next_times_command
from app.commands.promote import promote
from app.commands.schema import database
from app.commands.settings import check_config
from app.commands.users import create_user, link_identity
from executor_client.version import VERSION

#: also commands of ``flask --app wsgi``
COMMANDS: tuple[click.Command, ...] = (
    next_times_command,
    create_user,
    link_identity,
    check_config,
    seed_demo,
)


@click.group("xxl", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--env-file",
    type=click.Path(path_type=Path),
    help=f"Settings of the services, which the environment overrides; default: {ENV_FILE}, if readable.",
)
@click.version_option(VERSION, message="%(prog)s %(version)s")
@click.pass_context
def xxl(context: click.Context, env_file: Path | None) -> None:
    """Administer an installation of the XXL-JOB scheduler on this host."""
    context.obj = Settings(env_file)


for _command in (*COMMANDS, database, backup, restore, doctor, promote):
    xxl.add_command(_command)
