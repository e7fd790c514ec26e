"""Name of the program of commands, for its usage and for hints."""

import sys
from pathlib import Path

#: program of the server; that of the client alone; former name of both
NAMES = ("duetime", "duetime-cli", "xxl")


def program_name() -> str:
    """Return the name by which the program was started."""
    name = Path(sys.argv[0]).name
    return name if name in NAMES else NAMES[0]
