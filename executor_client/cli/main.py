"""The program ``xxl`` of the client alone; the server's program has the same commands and its own."""

import click

from executor_client.cli.invocation import common_options
from executor_client.cli.jobs import jobs
from executor_client.cli.login import login, logout, whoami
from executor_client.version import VERSION

#: commands over the API
COMMANDS: tuple[click.Command, ...] = (login, logout, whoami, jobs)


@click.group("xxl", context_settings={"help_option_names": ["-h", "--help"]})
@common_options
@click.version_option(VERSION, message="%(prog)s %(version)s")
def xxl() -> None:
    """Command line of the XXL-JOB scheduler: jobs and runs of a console."""


for _command in COMMANDS:
    xxl.add_command(_command)
