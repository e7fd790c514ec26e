"""Commands ``blackouts``: times in which nothing starts."""

from collections.abc import Callable
from typing import Any

import click

from executor_client.api.session import Item
from executor_client.cli.groups import group_option
from executor_client.cli.invocation import Invocation, api_command
from executor_client.cli.job_completion import complete_job
from executor_client.cli.lookup import explain_missing, find_group, find_job
from executor_client.cli.output.output import plain, show_done, show_list
from executor_client.cli.output.tables import Column
from executor_client.cli.output.times import UNITS_S, Duration, Instant, local_time

COLOURS = {"on": "red", "coming": "yellow", "over": ""}
DEFAULT_LIMIT = 50


@click.group("blackouts", short_help="Blackouts, in which nothing starts: list, add, end.")
def blackouts() -> None:
    """List, add and end blackouts: times in which some jobs, or all of them, do not start."""


@blackouts.command("list")
@click.option("--state", type=click.Choice([*COLOURS]), help="Only blackouts in this state.")
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=DEFAULT_LIMIT,
    show_default=True,
    help="Maximum number of blackouts; 0: all.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print ids only.")
@api_command
def list_blackouts(invocation: Invocation, state: str | None, limit: int, quiet: bool) -> None:
    """List the blackouts, the newest first."""
    rows = invocation.client.items("/blackouts", {"state": state}, limit=limit or None)
    show_list(invocation, rows, COLUMNS, only="id" if quiet else "")


@blackouts.command("add")
@click.option("--from", "from_", type=Instant(), help="When it begins, '2026-12-24 18:00', or RFC 3339; now.")
@click.option("--to", type=Instant(), help="When it ends, as --from; without, when it is ended.")
@click.option("--cron", help="Begins again and again, by this cron expression: '0 0 2 ? * SUN'.")
@click.option("--duration", type=Duration(), help="How long each time, 90s, 10m or 1h30m; with --cron.")
@click.option("--time-zone", help="Of --cron, Asia/Shanghai; that of the console.")
@group_option
@click.option("--job", shell_complete=complete_job, help="Only this job: id, description, handler.")
@click.option("--tag", help="Only jobs with this tag.")
@click.option("--reason", required=True, help="Why; runs that are refused show it.")
@click.option(
    "--run-once", is_flag=True, help="At the end the latest instant of each job runs that it has covered."
)
@click.option("-q", "--quiet", is_flag=True, help="Print the id only.")
@api_command
def add_blackout(
    invocation: Invocation, group: str | None, job: str | None, quiet: bool, **options: Any
) -> None:
    """Add a blackout, of all jobs without --group, --job and --tag.

    Without --to it lasts until it is ended: with --group this switches an executor group off, and the
    switches of its jobs stay as they are.
    """
    if bool(options["cron"]) != bool(options["duration"]):
        raise click.UsageError("--cron and --duration go together")
    client = invocation.client
    body: dict[str, Any] = {
        "from": options["from_"],
        "to": options["to"],
        "cron": options["cron"],
        "duration_s": options["duration"],
        "time_zone": options["time_zone"],
        "group_id": find_group(client, group)["id"] if group is not None else None,
        "job_id": find_job(client, job)["id"] if job is not None else None,
        "tag": options["tag"],
        "afterwards": "run_once" if options["run_once"] else "skip",
        "reason": options["reason"],
    }
    result = client.post("/blackouts", {name: value for name, value in body.items() if value is not None})
    if quiet:
        click.echo(result["id"])
        return
    show_done(invocation, f"blackout {result['id']}: {_when(result)}", result)


@blackouts.command("end")
@click.argument("blackout_id", metavar="BLACKOUT", type=click.IntRange(1))
@api_command
def end_blackout(invocation: Invocation, blackout_id: int) -> None:
    """End a BLACKOUT now; one that is to come never begins."""
    with explain_missing("blackout", str(blackout_id)):
        result = invocation.client.post(f"/blackouts/{blackout_id}/end")
    show_done(invocation, f"blackout {blackout_id}: ended", result)


def _when(item: Item) -> str:
    """Return the time in which it is on, or will be: "on until 2026-12-24 18:00:00"."""
    window = item["window"]
    if window is None:
        return "over"
    end = f"until {local_time(window['to'])}" if window["to"] else "until it is ended"
    begin = "on" if item["state"] == "on" else f"from {local_time(window['from'])}"
    return f"{begin} {end}"


def _of(item: Item) -> str:
    """Return which jobs it concerns."""
    if item["tag"]:
        return f"tag {plain(item['tag'])}"
    for kind in ("group", "job"):
        if item[f"{kind}_id"]:
            return f"{kind} {item[f'{kind}_id']} {plain(item['name'])}".rstrip()
    return "(all)"


def _every(item: Item) -> str:
    if not item["cron"]:
        return ""
    unit = next(name for name in ("d", "h", "m", "s") if item["duration_s"] % UNITS_S[name] == 0)
    every = f"{plain(item['cron'])} for {item['duration_s'] // UNITS_S[unit]}{unit}"
    return f"{every}, {plain(item['time_zone'])}"


def _edge(name: str) -> Callable[[Item], str]:
    """Return the cell of an end of the time in which it is on, or, of one that is over, was."""
    return lambda item: local_time((item["window"] or item)[name])


COLUMNS = (
    Column("ID", lambda item: plain(item["id"]), is_number=True),
    Column("STATE", lambda item: plain(item["state"]), colours=COLOURS),
    Column("FROM", _edge("from")),
    Column("TO", _edge("to")),
    Column("RECURS", _every),
    Column("FOR", _of, cut=True),
    Column("REASON", lambda item: plain(item["reason"]), cut=True),
)
