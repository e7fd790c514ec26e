"""Logs of runs on standard output."""

import click

from executor_client.api.client import ApiClient
from executor_client.cli.output import note


def print_log(client: ApiClient, run_id: str, *, from_line: int = 1) -> None:
    """Print the log that there is; why there is none goes to standard error."""
    for piece in client.log(run_id, from_line=from_line):
        for line in piece["lines"]:
            click.echo(line)
        if not piece["lines"] and piece["message"]:
            note(piece["message"])


def follow_log(client: ApiClient, run_id: str, *, from_line: int = 1, timeout_s: float | None = None) -> None:
    """Print the log as it grows, until the run has ended or ``timeout_s`` have passed."""
    problem = ""
    for event in client.follow_log(run_id, from_line=from_line, timeout_s=timeout_s):
        if "text" in event:
            click.echo(event["text"])
        if event.get("error", problem) != problem:
            problem = event["error"]
            note(problem, fg="yellow")
