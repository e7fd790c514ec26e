"""Command ``seed-demo``: sample jobs and a demo executor group."""

import click

from app.clock import now_ms
from app.commands.context import one_line_errors, open_database
from app.database.engine import session_scope
from app.domain.access.permissions import system_actor
from app.services.installation import demo


@click.command("seed-demo", short_help="Create demo jobs in an installation without jobs.")
@one_line_errors
def seed_demo() -> None:
    """Create a demo executor group and jobs, unless there are jobs already."""
    open_database()
    with session_scope() as session:
        count = demo.seed(session, actor=system_actor("demo"), clock=now_ms)
    click.echo(f"demo jobs created: {count}" if count else "there are jobs already: nothing created")
