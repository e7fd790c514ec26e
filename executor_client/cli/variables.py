"""Commands ``variables``: stored variables and secrets, which the parameters of jobs name."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from executor_client.api import variables as calls
from executor_client.api.error_messages import EXIT_USAGE
from executor_client.api.session import Item
from executor_client.cli.invocation import Invocation, Stop, api_command
from executor_client.cli.lookup import find_group
from executor_client.cli.output.output import plain, show_done, show_list
from executor_client.cli.output.prompts import ask
from executor_client.cli.output.tables import Column
from executor_client.cli.output.times import local_time

#: what a table shows in place of the value of a secret
NO_VALUE = "(secret)"


@click.group("variables", short_help="Variables and secrets: list, set, delete.")
def variables() -> None:
    """List, set and delete variables and secrets of executor groups, or of the installation.

    Parameters of jobs name them as ${var.NAME} and ${secret.NAME}.
    """


@variables.command("list")
@click.option("--group", help="Only of this executor group: id, AppName or title.")
@api_command
def list_all(invocation: Invocation, group: str | None) -> None:
    """List variables and secrets; values of secrets are never shown."""
    client = invocation.client
    group_id = find_group(client, group)["id"] if group is not None else None
    names = {item["id"]: item["app_name"] for item in client.groups()} if invocation.is_for_people else {}
    show_list(invocation, calls.list_variables(client, group_id), _columns(names))


@variables.command("set")
@click.argument("name")
@click.option("--group", help="Executor group: id, AppName or title; default: the installation.")
@click.option("--value", help="Value of a variable.")
@click.option("--secret", "is_secret", is_flag=True, help="Set a secret, whose value is prompted for.")
@click.option("--secret-stdin", is_flag=True, help="Set a secret to what standard input has.")
@click.option(
    "--allow",
    "allowed_groups",
    metavar="GROUP",
    multiple=True,
    help="Executor group that may use a secret of the installation; repeatable, replaces those before.",
)
@api_command
def set_one(
    invocation: Invocation,
    name: str,
    group: str | None,
    value: str | None,
    is_secret: bool,
    secret_stdin: bool,
    allowed_groups: Sequence[str],
) -> None:
    """Set the variable or secret NAME; the former value is kept as a version."""
    if (value is not None) + is_secret + secret_stdin > 1:
        raise click.UsageError("--value, --secret and --secret-stdin exclude each other")
    if value is None and not (is_secret or secret_stdin or allowed_groups):
        raise click.UsageError("give --value, --secret or --secret-stdin")
    client = invocation.client
    group_id = find_group(client, group)["id"] if group is not None else calls.INSTALLATION
    allowed_ids = [find_group(client, group_name)["id"] for group_name in allowed_groups] or None
    secret = _secret(from_stdin=secret_stdin) if is_secret or secret_stdin else None
    result = calls.set_variable(client, name, group_id, value=value, secret=secret, allowed=allowed_ids)
    show_done(invocation, f"{result['kind']} {name}: set, version {result['version']}", result)


@variables.command("delete")
@click.argument("name")
@click.option("--group", help="Executor group: id, AppName or title; default: the installation.")
@api_command
def delete_one(invocation: Invocation, name: str, group: str | None) -> None:
    """Delete the variable or secret NAME; jobs that name it are not started any more."""
    client = invocation.client
    group_id = find_group(client, group)["id"] if group is not None else calls.INSTALLATION
    result = calls.delete_variable(client, name, group_id)
    show_done(invocation, f"{result['kind']} {name}: deleted", result)


def _columns(names: dict[int, str]) -> tuple[Column, ...]:
    return (
        Column("ID", lambda item: plain(item["id"]), is_number=True),
        Column("NAME", lambda item: plain(item["name"]), cut=True),
        Column("EXECUTOR", _owner_in(names), cut=True),
        Column("VALUE", lambda item: NO_VALUE if item["value"] is None else plain(item["value"]), cut=True),
        Column("VERSION", lambda item: plain(item["version"]), is_number=True),
        Column("CHANGED", lambda item: local_time(item["updated_at"])),
        Column("BY", lambda item: plain(item["username"]), cut=True),
    )


def _owner_in(names: dict[int, str]) -> Callable[[Item], str]:
    def owner(item: Item) -> str:
        group_id: Any = item["group_id"]
        return "(installation)" if group_id is None else plain(names.get(group_id, group_id))

    return owner


def _secret(*, from_stdin: bool) -> str:
    """Return a secret of standard input, without the line end behind it, or of a prompt."""
    try:
        if not from_stdin:
            options = {"hide_input": True, "confirmation_prompt": True, "err": True}
            return ask("Secret", instead="use --secret-stdin", **options)
        text = "" if sys.stdin is None else sys.stdin.read()
        text.encode()
    except UnicodeError as exc:
        raise Stop("the secret is not UTF-8", EXIT_USAGE) from exc
    text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        raise Stop("standard input has no secret", EXIT_USAGE)
    return text
