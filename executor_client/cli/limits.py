"""Commands ``limits``: named limits of runs at once, which jobs share."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import click

from executor_client.api.session import Item
from executor_client.cli.groups import group_option
from executor_client.cli.invocation import Invocation, api_command
from executor_client.cli.lookup import explain_missing, find_group
from executor_client.cli.output.output import plain, show_done, show_list
from executor_client.cli.output.tables import Column


@click.group("limits", short_help="Limits of runs at once: list, set, delete.")
def limits() -> None:
    """List, set and delete named limits: how many runs of the jobs that share one run at once."""


@limits.command("list")
@click.option("-q", "--quiet", is_flag=True, help="Print names only.")
@api_command
def list_limits(invocation: Invocation, quiet: bool) -> None:
    """List the named limits, with the slots in use and the runs that wait."""
    client = invocation.client
    is_table = invocation.is_for_people and not quiet
    names = {item["id"]: item["app_name"] for item in client.groups()} if is_table else {}
    show_list(invocation, client.items("/limits"), _columns(names), only="name" if quiet else "")


@limits.command("set")
@click.argument("name")
@click.option("--slots", type=click.IntRange(1), required=True, help="How many runs at once.")
@group_option
@click.option("--for-all", is_flag=True, help="Jobs of all executor groups may use it; a new one is so.")
@api_command
def set_limit(invocation: Invocation, name: str, slots: int, group: str | None, for_all: bool) -> None:
    """Make the limit NAME, or change its slots.

    With --group only jobs of this executor group may use it; without, that stays as it is.
    """
    if for_all and group is not None:
        raise click.UsageError("--group and --for-all cannot be used together")
    client, body = invocation.client, dict[str, Any](slots=slots)
    if group is not None or for_all:
        body["group_id"] = find_group(client, group)["id"] if group is not None else None
    result = client.write("PUT", _path(name), body)
    show_done(invocation, f"limit {result['name']}: {_count(result['slots'], 'slot')}", result)


@limits.command("delete")
@click.argument("name")
@api_command
def delete_limit(invocation: Invocation, name: str) -> None:
    """Delete the limit NAME, which no job uses."""
    client = invocation.client
    with explain_missing("limit", name):
        result = client.get(_path(name))
        client.write("DELETE", _path(name))
    show_done(invocation, f"limit {result['name']}: deleted", result)


def _path(name: str) -> str:
    return f"/limits/{quote(name.strip(), safe='')}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _columns(names: dict[int, str]) -> tuple[Column, ...]:
    return (
        Column("NAME", lambda limit: plain(limit["name"]), cut=True),
        Column("SLOTS", lambda limit: plain(limit["slots"]), is_number=True),
        Column("IN USE", lambda limit: plain(limit["used"]), is_number=True),
        Column("WAITING", lambda limit: plain(limit["waiting"]), is_number=True),
        Column("JOBS", lambda limit: plain(limit["jobs"]), is_number=True),
        Column("EXECUTOR", _owner_in(names), cut=True),
    )


def _owner_in(names: dict[int, str]) -> Callable[[Item], str]:
    def owner(limit: Item) -> str:
        group_id = limit["group_id"]
        return "(all)" if group_id is None else plain(names.get(group_id, group_id))

    return owner
