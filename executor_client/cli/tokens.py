"""Commands ``tokens``: service tokens, for programs."""

import click

from executor_client.cli.groups import group_ids_option
from executor_client.cli.invocation import Invocation, Stop, api_command
from executor_client.cli.lookup import find_group
from executor_client.cli.output.output import plain, show_done, show_list
from executor_client.cli.output.tables import Column
from executor_client.cli.output.times import Instant, local_time

WORDS = ("view", "operate", "edit", "glue", "admin")
COLUMNS = (
    Column("ID", lambda token: plain(token["id"]), is_number=True),
    Column("NAME", lambda token: plain(token["name"]), cut=True),
    Column("TOKEN", lambda token: plain(token["hint"]) + "…"),
    Column("RIGHTS", lambda token: plain(token["rights"]), cut=True),
    Column("EXECUTORS", lambda token: plain(token["group_ids"]) or "all", cut=True),
    Column("EXPIRES", lambda token: local_time(token["expires_at"])),
    Column("LAST USED", lambda token: local_time(token["last_used_at"])),
)


@click.group("tokens", short_help="Service tokens: list, create, revoke.")
def tokens() -> None:
    """List, create and revoke service tokens, which belong to no user; for administrators, or with --local.

    Your own tokens are made in the console: your name, Account and settings, API tokens.
    """


@tokens.command("list")
@api_command
def list_tokens(invocation: Invocation) -> None:
    """List the service tokens."""
    show_list(invocation, invocation.client.items("/tokens"), COLUMNS)


@tokens.command("create")
@click.argument("name")
@click.option(
    "--right",
    "rights",
    type=click.Choice(WORDS),
    multiple=True,
    required=True,
    help="What it may do; repeatable. admin: everything.",
)
@group_ids_option
@click.option("--expires", "expires_at", type=Instant(), help="Time at which it expires; default: never.")
@api_command
def create_token(
    invocation: Invocation,
    name: str,
    rights: tuple[str, ...],
    groups: tuple[str, ...],
    expires_at: str | None,
) -> None:
    """Create a service token and print it; it cannot be shown again."""
    client = invocation.client
    group_ids = [find_group(client, group)["id"] for group in groups] or None
    body = {"name": name, "rights": [*rights], "group_ids": group_ids, "expires_at": expires_at}
    new_token = client.create_token(body)
    show_done(invocation, new_token["token"], new_token)


@tokens.command("revoke")
@click.argument("token")
@api_command
def revoke_token(invocation: Invocation, token: str) -> None:
    """Revoke a TOKEN, named by id or name."""
    client = invocation.client
    matches = [item for item in client.items("/tokens") if token in (str(item["id"]), item["name"])]
    if len(matches) != 1:
        raise Stop(
            f"there is no service token {token}"
            if not matches
            else f"several tokens have the name {token}; give the id of one"
        )
    client.write("DELETE", f"/tokens/{matches[0]['id']}")
    show_done(invocation, f"token {matches[0]['name']}: revoked", matches[0])
