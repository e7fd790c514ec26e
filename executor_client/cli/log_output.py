"""Logs of runs on standard output."""

import click

from executor_client.api.client import ApiClient


def print_log(client: ApiClient, run_id: str, *, from_line: int = 1) -> None:
    """Print the log that there is."""
    for line in client.log_lines(run_id, from_line=from_line):
        click.echo(line)


def follow(client: ApiClient, run_id: str, *, from_line: int = 1, timeout_s: float | None = None) -> None:
    """Print the log as it grows, until the run has ended or ``timeout_s`` have passed."""
    for line in client.follow_log(run_id, from_line=from_line, timeout_s=timeout_s):
        click.echo(line)
