"""Command ``rotate-token``: another access token in the home folder."""

import click

from app.commands.context import configuration, one_line_errors
from app.settings.home import end_rotation
from app.settings.home import rotate_token as replace_token


@click.command("rotate-token", short_help="Replace the access token in the home folder.")
@click.option("--end", is_flag=True, help="Remove the former token, once all executors have the new one.")
@one_line_errors
def rotate_token(end: bool) -> None:
    """Put a new access token before the one in the home folder; both are valid until --end.

    Console and workers read the file when they start.
    """
    path = end_rotation(configuration()) if end else replace_token(configuration())
    click.echo(f"{path}: {'the former token is removed' if end else 'the new token comes first'}")
    click.echo("next: copy the file to all nodes, and restart console and workers, one node after the other")
    if not end:
        click.echo("then: give all executors the new token, and run: duetime rotate-token --end")
