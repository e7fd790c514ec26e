"""Code blocks of a page, and the script that runs its commands."""

import re
import shlex
from pathlib import Path

_BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks_of(page: Path, language: str) -> list[str]:
    """Return the blocks of a language in order."""
    found = _BLOCK.findall(page.read_text(encoding="utf-8"))
    return [text for name, text in found if name == language]


def commands_of(page: Path) -> list[str]:
    """Return the commands of all shell blocks, without comments; a quote may go over several lines."""
    commands: list[str] = []
    for line in (line for block in blocks_of(page, "sh") for line in block.splitlines()):
        if commands and _is_open(commands[-1]):
            commands[-1] += "\n" + line
        elif line and not line.startswith("#"):
            commands.append(line.partition(" #")[0].rstrip())
    return commands


def _is_open(command: str) -> bool:
    """Whether a quote of the command is not closed yet."""
    try:
        shlex.split(command)
    except ValueError:
        return True
    return False


def script_of(page: Path) -> str:
    """Return a script of all commands, which names each before it runs and ends with the first that fails.

    The doctor may have findings.
    """
    lines = ["set -eu"]
    for command in commands_of(page):
        lines.append(f"echo {shlex.quote('$ ' + command)}")
        lines.append(f"{command} || [ $? = 1 ]" if command.startswith("duetime doctor") else command)
    return "\n".join(lines) + "\n"
