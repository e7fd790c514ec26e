"""Progress of a wait, on standard error."""

import sys

import click

from executor_client.cli.output.output import note
from executor_client.config.program_name import program_name
from executor_client.config.terminal import is_terminal
from executor_client.wire.clock import monotonic_s

#: seconds after which a wait that no terminal shows is noted once
NOTE_S = 10
CLEAR_LINE = "\r\x1b[2K"


class Progress:
    """Line with a state and the time waited so far; removed at the end. Without a terminal, one note."""

    def __init__(self) -> None:
        self._is_shown = is_terminal(sys.stderr)
        self._is_noted = self._is_shown
        self._started_s = monotonic_s()

    def show(self, text: str) -> None:
        """Replace the line."""
        waited_s = monotonic_s() - self._started_s
        if self._is_shown:
            click.echo(f"{CLEAR_LINE}{text}, {waited_s:.0f} s", nl=False, err=True)
        elif waited_s >= NOTE_S and not self._is_noted:
            self._is_noted = True
            note(f"{text} after {waited_s:.0f} s; the nodes that are alive: {program_name()} nodes list")

    def close(self) -> None:
        """Remove the line."""
        if self._is_shown:
            click.echo(CLEAR_LINE, nl=False, err=True)
