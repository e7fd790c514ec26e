"""Command ``init``: a home with a commented ``.env`` for production."""

import os
import shlex
from pathlib import Path

import click

from app.commands.context import CommandFailed, one_line_errors
from app.settings.env_files import write_setting
from app.settings.home import SECRET_MODE, prepare_home
from app.settings.system_zone import system_zone

#: settings that an installation should decide on; what is commented out has the default
TEMPLATE = """\
# Settings of this installation; every one: docs/configuration.md. Check them with: duetime check-config

# time zone of schedules without one of their own
XXL_JOB_TIMEZONE={zone}

# where the console listens; 0.0.0.0 behind a firewall, or leave it and put a proxy with TLS in front
#XXL_JOB_HOST=127.0.0.1
#XXL_JOB_PORT=8080

# the address people and messages use
#XXL_JOB_PUBLIC_URL=https://jobs.example.com

# a database server instead of SQLite: needed for more than one node
#XXL_JOB_DATABASE_URL=postgresql+psycopg://duetime:password@db.example.com/duetime
#XXL_JOB_DATABASE_URL=mysql+pymysql://duetime:password@db.example.com/duetime

# the token of executors; without it one is generated in the home. The same on all nodes
#XXL_JOB_ACCESS_TOKEN=

# networks that executors may be in
#XXL_JOB_EXECUTOR_NETWORKS=10.0.0.0/8

# days that runs are kept
#XXL_JOB_LOG_RETENTION_DAYS=30

# of which runs the logs are kept here, beyond the life of the executor: off, failed or all
#XXL_JOB_LOG_ARCHIVE=failed

# mail for alarms
#XXL_JOB_MAIL_HOST=smtp.example.com
#XXL_JOB_MAIL_FROM=jobs@example.com

# folder of the SQLite database, logs and generated secrets
"""


@click.command("init", short_help="Create a home with a .env of settings.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@one_line_errors
def init(folder: Path) -> None:
    """Create FOLDER with a commented .env for production; an existing .env is left as it is."""
    home = folder.absolute()
    prepare_home(home)
    path = home / ".env"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, SECRET_MODE)
    except FileExistsError as exc:
        raise CommandFailed(f"{path} exists; edit it, or remove it first") from exc
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(TEMPLATE.format(zone=system_zone()))
    write_setting(path, "XXL_JOB_HOME", str(home))
    click.echo(f"settings  {path}")
    click.echo(
        f"next      edit them, then: cd {shlex.quote(str(home))} && duetime check-config && duetime up"
    )
