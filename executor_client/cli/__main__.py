"""``python -m executor_client.cli COMMAND``: the program ``duetime-cli``, of the client alone."""

import sys
from importlib.metadata import entry_points

from executor_client.config.program_name import program_name

#: group of entry points in which the server names its program, which has these commands and more
SERVER = "duetime.program"


def main() -> None:
    """Run the command of the command line; by the server's program if it is installed here."""
    for program in entry_points(group=SERVER):
        program.load()()
        return
    try:
        import click  # noqa: F401
        import yaml  # noqa: F401
    except ModuleNotFoundError as exc:
        sys.exit(f"{program_name()}: {exc.name} is missing; run: pip install 'duetime-executor[cli]'")
    from executor_client.cli.main import duetime

    duetime(prog_name=program_name())


if __name__ == "__main__":
    main()
