"""Name of the program of commands, for its usage and for hints."""

import sys
from pathlib import Path

#: program of the server; that of the client alone; former name of both
NAMES = ("duetime", "duetime-cli", "xxl")


def program_name() -> str:
    """Return the name by which the program was started; for another program, that of its environment."""
    name = Path(sys.argv[0]).name
    if name in NAMES:
        return name
    server, client, _ = (Path(sys.executable).with_name(program) for program in NAMES)
    return client.name if client.exists() and not server.exists() else server.name
