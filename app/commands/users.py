"""Commands ``create-user`` and ``link-identity``: users without the console."""

import click

from app.clock import now_ms
from app.commands.context import configuration, one_line_errors, open_database
from app.database.engine import session_scope
from app.domain.access.permissions import system_actor
from app.errors import NotConfigured
from app.services.accounts import sign_on, users
from app.services.accounts.users import UserDraft
from app.settings.home import forget_first_password
from executor_client.cli.output.prompts import ask_password


@click.command("create-user", short_help="Create a user.")
@click.argument("username")
@click.option("--admin", is_flag=True, help="Administrator: may do everything.")
@click.option(
    "--group",
    "group_ids",
    type=click.IntRange(1, 2**31 - 1),
    metavar="ID",
    multiple=True,
    help="Id of an executor group that a normal user may access; repeatable.",
)
@click.option("--reset", is_flag=True, hidden=True)  # former spelling of: users reset-password --enable
@click.option(
    "--password-stdin", is_flag=True, help="Read the password from standard input instead of prompting."
)
@one_line_errors
def create_user(
    username: str, admin: bool, group_ids: tuple[int, ...], reset: bool, password_stdin: bool
) -> None:
    """Create a user. To reset a password: duetime users reset-password USERNAME --local."""
    if reset and (admin or group_ids):
        raise click.UsageError("--reset keeps role and groups; leave out --admin and --group")
    config = open_database()
    password = ask_password(from_stdin=password_stdin)
    actor = system_actor("command line")
    with session_scope() as session:
        draft = UserDraft(username=username, password=password, role=int(admin), group_ids=group_ids)
        if reset:
            users.set_password(session, draft, actor=actor, now_ms=now_ms())
        else:
            users.add_user(session, draft, actor=actor, now_ms=now_ms())
    forget_first_password(config, username)
    click.echo(f"user {username}: {'password reset' if reset else 'created'}")


@click.command("link-identity", short_help="Link a user to an identity of the OpenID provider.")
@click.argument("username")
@click.argument("subject", required=False)
@click.option("--remove", is_flag=True, help="Undo it; then: users reset-password USERNAME.")
@one_line_errors
def link_identity(username: str, subject: str | None, remove: bool) -> None:
    """Link a local user to the SUBJECT (claim "sub") of a user of the OpenID provider."""
    config = configuration().oidc
    if not config.issuer and not remove:
        raise NotConfigured("XXL_JOB_OIDC_ISSUER is not set")
    if bool(subject) is remove:
        raise click.UsageError("expected a SUBJECT, or --remove")
    open_database()
    actor = system_actor("command line")
    with session_scope() as session:
        sign_on.link(session, config, username, subject or "", actor=actor, now_ms=now_ms())
    click.echo(f"user {username}: {'unlinked' if remove else 'linked'}")
