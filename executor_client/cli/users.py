"""Commands ``users``: create, list, reset-password."""

import click

from executor_client.api.error_messages import EXIT_USAGE
from executor_client.api.session import Item
from executor_client.cli.invocation import Invocation, Stop, api_command
from executor_client.cli.lookup import find_group, find_user
from executor_client.cli.output.output import plain, show_done, show_list
from executor_client.cli.output.prompts import ask_password
from executor_client.cli.output.tables import Column

RIGHTS = ("view", "operate", "edit", "glue")
#: rights of a grant that names only a group
DEFAULT_RIGHTS = RIGHTS[:3]
COLUMNS = (
    Column("ID", lambda user: plain(user["id"]), is_number=True),
    Column("USERNAME", lambda user: plain(user["username"]), cut=True),
    Column("ROLE", lambda user: plain(user["role"])),
    Column("DISABLED", lambda user: plain(user["disabled"]), colours={"yes": "yellow"}),
)
password_option = click.option(
    "--password-stdin", is_flag=True, help="Read the password from standard input instead of prompting."
)
permanent_option = click.option(
    "--permanent", is_flag=True, help="The user need not change the password at the next login."
)


@click.group("users", short_help="Users: create, list, reset-password.")
def users() -> None:
    """Create and list users, and reset passwords; needs a token of an administrator, or --local."""


@users.command("list")
@api_command
def list_users(invocation: Invocation) -> None:
    """List the users."""
    show_list(invocation, invocation.client.users(), COLUMNS)


@users.command("create")
@click.argument("username")
@click.option("--admin", is_flag=True, help="Administrator: may do everything.")
@click.option(
    "--grant",
    "grants",
    metavar="GROUP[=RIGHT,...]",
    multiple=True,
    help="Rights on an executor group: view, operate, edit, glue; by default the first three. Repeatable.",
)
@password_option
@permanent_option
@api_command
def create_user(
    invocation: Invocation, username: str, admin: bool, grants: tuple[str, ...], **password: bool
) -> None:
    """Create a user."""
    client = invocation.client
    rights = [_grant(invocation, grant) for grant in grants]
    body = {"username": username, "role": "admin" if admin else "normal", "rights": rights}
    new_user = client.post("/users", {**body, **_password(**password)})
    show_done(invocation, f"user {username}: created", new_user)


@users.command("reset-password")
@click.argument("username")
@password_option
@permanent_option
@click.option("--enable", is_flag=True, help="Enable the user too, if disabled.")
@api_command
def reset_password(invocation: Invocation, username: str, enable: bool, **password: bool) -> None:
    """Set a new password: ends all sessions and the wait after failed logins."""
    client = invocation.client
    user = find_user(client, username)
    body = {**_password(**password), **({"disabled": False} if enable else {})}
    result = client.write("PATCH", f"/users/{user['id']}", body)
    show_done(invocation, f"user {username}: password reset", result)


def _grant(invocation: Invocation, text: str) -> Item:
    group, equals, names = text.partition("=")
    rights = [name.strip() for name in names.split(",")] if equals else [*DEFAULT_RIGHTS]
    unknown = sorted({*rights} - {*RIGHTS})
    if unknown:
        raise click.UsageError(f"--grant {text}: {unknown[0]!r} is not a right; expected {', '.join(RIGHTS)}")
    return {"group_id": find_group(invocation.client, group)["id"], "rights": rights}


def _password(*, password_stdin: bool, permanent: bool) -> Item:
    """Return the members of a password."""
    password = ask_password(from_stdin=password_stdin)
    if not password:
        raise Stop("standard input has no password", EXIT_USAGE)
    return {"password": password, "must_change_password": not permanent}
