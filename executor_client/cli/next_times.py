"""Command ``next-times``: the times of a schedule."""

import click

from executor_client.cli.invocation import Invocation, api_command
from executor_client.cli.jobs import show_times


@click.command("next-times", short_help="Print the next times of a schedule.")
@click.argument("expression")
@click.option("--tz", "time_zone", default="", help="IANA time zone; default: the console's.")
@click.option("--count", type=click.IntRange(1, 100), default=5, show_default=True)
@api_command
def next_times(invocation: Invocation, expression: str, time_zone: str, count: int) -> None:
    """Print the next times of a cron EXPRESSION."""
    schedule = {"schedule_type": "CRON", "schedule": expression, "time_zone": time_zone, "count": count}
    show_times(invocation, invocation.client.post("/schedules/next-times", schedule))
