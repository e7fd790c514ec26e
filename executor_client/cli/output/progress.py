"""Progress line of a run, rewritten in place on standard error; only on a terminal."""

import sys

import click

from executor_client.config.terminal import is_terminal
from executor_client.wire.clock import monotonic_s

CLEAR_LINE = "\r\x1b[2K"


class Progress:
    """Line with a state and the time waited so far; removed at the end."""

    def __init__(self) -> None:
        self._is_shown = is_terminal(sys.stderr)
        self._started_s = monotonic_s()

    def show(self, text: str) -> None:
        """Replace the line."""
        if self._is_shown:
            waited_s = monotonic_s() - self._started_s
            click.echo(f"{CLEAR_LINE}{text}, {waited_s:.0f} s", nl=False, err=True)

    def close(self) -> None:
        """Remove the line."""
        if self._is_shown:
            click.echo(CLEAR_LINE, nl=False, err=True)
