"""The program ``xxl`` of this installation, as hints name it."""

import sys
from pathlib import Path


def command(arguments: str) -> str:
    """Return the command line that runs ``xxl`` with these arguments from any folder, or in this checkout."""
    path = Path(sys.executable).with_name("xxl")
    return f"{path if path.exists() else f'{sys.executable} -m app'} {arguments}"


def upgrade_command() -> str:
    """Return the command line that creates or upgrades the tables."""
    return command("db upgrade")
