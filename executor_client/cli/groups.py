"""Commands ``groups``, ``instances`` and ``nodes``."""

import click

from executor_client.cli.invocation import Invocation, Stop, api_command
from executor_client.cli.lookup import find_group
from executor_client.cli.output.output import plain, show_done, show_item, show_list
from executor_client.cli.output.tables import Column
from executor_client.cli.output.times import local_time

GROUP_COLUMNS = (
    Column("ID", lambda group: plain(group["id"]), is_number=True),
    Column("APPNAME", lambda group: plain(group["app_name"]), cut=True),
    Column("TITLE", lambda group: plain(group["title"]), cut=True),
    Column("JOBS", lambda group: plain(group["jobs"]), is_number=True),
    Column("ONLINE", lambda group: plain(group["instances"]["online"]), is_number=True),
    Column("LISTED", lambda group: plain(group["instances"]["listed"]), is_number=True),
    Column("DRAINED", lambda group: plain(group["instances"]["drained"]), is_number=True),
)
INSTANCE_COLUMNS = (
    Column("GROUP", lambda instance: plain(instance["app_name"]), cut=True),
    Column("ADDRESS", lambda instance: plain(instance["address"]), cut=True),
    Column(
        "STATE",
        lambda instance: plain(instance["state"]),
        colours={"online": "green", "silent": "red", "offline": "red"},
    ),
    Column("DRAINED", lambda instance: plain(instance["is_drained"]), colours={"yes": "yellow"}),
    Column("RUNNING", lambda instance: plain(instance["load"]["running"]), is_number=True),
    Column("LAST SEEN", lambda instance: local_time(instance["last_heartbeat_at"])),
)
NODE_COLUMNS = (
    Column("NAME", lambda node: plain(node["name"]), cut=True),
    Column("KIND", lambda node: plain(node["kind"])),
    Column("VERSION", lambda node: plain(node["version"])),
    Column("LAST SEEN", lambda node: local_time(node["heartbeat_at"])),
    Column("ALIVE", lambda node: plain(node["alive"]), colours={"yes": "green", "no": "red"}),
)
group_ids_option = click.option(
    "--group", "groups", multiple=True, help="Only this executor group: id, AppName or title; repeatable."
)
group_option = click.option("--group", help="Executor group: id, AppName or title.")


@click.group("groups", short_help="Executor groups: list, show.")
def groups() -> None:
    """List and show executor groups."""


@groups.command("list")
@click.option("-q", "--quiet", is_flag=True, help="Print ids only.")
@api_command
def list_groups(invocation: Invocation, quiet: bool) -> None:
    """List the executor groups."""
    rows = invocation.client.groups()
    show_list(invocation, rows, GROUP_COLUMNS, only="id" if quiet else "")


@groups.command("show")
@click.argument("group")
@api_command
def show_group(invocation: Invocation, group: str) -> None:
    """Show a GROUP, named by id, AppName or title."""
    show_item(invocation, find_group(invocation.client, group))


@click.group("instances", short_help="Instances of executors: list, drain, undrain.")
def instances() -> None:
    """List, drain and undrain instances: the addresses of an executor group."""


@instances.command("list")
@group_option
@click.option("-q", "--quiet", is_flag=True, help="Print addresses only.")
@api_command
def list_instances(invocation: Invocation, group: str | None, quiet: bool) -> None:
    """List the instances of all groups, or of one."""
    client = invocation.client
    query = {"group_id": find_group(client, group)["id"]} if group is not None else None
    rows = client.items("/instances", query)
    show_list(invocation, rows, INSTANCE_COLUMNS, only="address" if quiet else "")


@instances.command("drain")
@click.argument("group")
@click.argument("address")
@api_command
def drain(invocation: Invocation, group: str, address: str) -> None:
    """Route no more runs to the instance of GROUP at ADDRESS; its runs end."""
    client = invocation.client
    result = client.post("/drains", {"group_id": find_group(client, group)["id"], "address": address})
    show_done(invocation, f"{address}: draining", result)


@instances.command("undrain")
@click.argument("group")
@click.argument("address")
@api_command
def undrain(invocation: Invocation, group: str, address: str) -> None:
    """Route runs to the instance of GROUP at ADDRESS again."""
    client = invocation.client
    group_id = find_group(client, group)["id"]
    drains = client.items("/drains", {"group_id": group_id})
    matches = [item for item in drains if item["address"].rstrip("/") == address.rstrip("/")]
    if not matches:
        raise Stop(f"{address} of group {group} is not being drained")
    client.write("DELETE", f"/drains/{matches[0]['id']}")
    show_done(invocation, f"{address}: gets runs again", matches[0])


@click.group("nodes", short_help="Nodes: list.")
def nodes() -> None:
    """List the nodes: consoles and workers."""


@nodes.command("list")
@api_command
def list_nodes(invocation: Invocation) -> None:
    """List the nodes with their last heartbeat."""
    show_list(invocation, invocation.client.get("/nodes")["items"], NODE_COLUMNS)
