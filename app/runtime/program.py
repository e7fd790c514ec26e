"""Programs of this installation: ``duetime`` in hints, command lines and limits of the services."""

import argparse
import ctypes
import resource
import shlex
import signal
import sys
from pathlib import Path

from executor_client.wire.version import VERSION


def command(arguments: str) -> str:
    """Return the command line that runs ``duetime`` from any folder, or in this checkout."""
    path = Path(sys.executable).with_name("duetime")
    program = [str(path)] if path.exists() else [sys.executable, "-m", "app"]
    return f"{shlex.join(program)} {arguments}"


def upgrade_command() -> str:
    """Return the command line that creates or upgrades the tables."""
    return command("db upgrade")


def read_arguments(name: str, description: str) -> Path | None:
    """Read the command line of a service; return the file of settings it names.

    Ends the program after ``--help`` and ``--version``, and with exit code 2 for an unknown argument.
    """
    parser = argparse.ArgumentParser(name, description=description, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    parser.add_argument(
        "--env-file", type=Path, help="file of settings, which the environment overrides; default: none"
    )
    env_file: Path | None = parser.parse_args().env_file
    return env_file


def end_with_parent() -> None:
    """Have the kernel end this child process when its parent dies (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def raise_file_limit(count: int) -> int:
    """Raise the soft limit of open files to ``count``, within the hard one; return how many may be open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        soft = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return count if soft == resource.RLIM_INFINITY else min(count, soft)
