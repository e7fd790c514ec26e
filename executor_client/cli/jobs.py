"""Commands ``jobs``: list, show, trigger, backfill, start, stop, export, previews; and ``next-times``."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import click

from executor_client.api.client import ApiClient
from executor_client.api.session import Item
from executor_client.api.transport import Query
from executor_client.cli.backfills.backfill import backfill
from executor_client.cli.groups import group_option
from executor_client.cli.invocation import Invocation, api_command
from executor_client.cli.job_completion import job_argument, jobs_argument
from executor_client.cli.lookup import find_group, find_job
from executor_client.cli.output.output import note, plain, show_document, show_item, show_list
from executor_client.cli.output.run_columns import COLOURS
from executor_client.cli.output.tables import Column
from executor_client.cli.output.times import Instant
from executor_client.cli.trigger import trigger


def schedule_text(job: Item) -> str:
    """Return type and text of a schedule: ``CRON 0 0 3 * * ?``; without one what the job runs after."""
    after = job.get("runs_after")
    if job["schedule_type"] == "NONE" and after:
        return f"after {', '.join(map(str, after['jobs']))}"
    return f"{job['schedule_type']} {job['schedule']}".strip()


#: lines about instants that do not run as their expression says
NOTES_MAX = 10
_PREVIEW = (
    Column("LOGICAL TIME", lambda run: plain(run["local"])),
    Column("PARAMETER", lambda run: plain(run["reason"] or run["param"]), cut=True),
)


def columns(client: ApiClient) -> tuple[Column, ...]:
    """Return the columns of a table of jobs."""
    names = {group["id"]: group["app_name"] for group in client.groups()}
    return (
        Column("ID", lambda job: plain(job["id"]), is_number=True),
        Column("DESCRIPTION", lambda job: plain(job["description"]), cut=True),
        Column("EXECUTOR", lambda job: plain(names.get(job["group_id"], job["group_id"])), cut=True),
        Column("HANDLER", lambda job: plain(job["handler"] or job["run_mode"]), cut=True),
        Column("SCHEDULE", schedule_text, cut=True),
        Column("ON", _is_on, colours={"yes": "green"}),
        Column("LAST RUN", last_state, colours=COLOURS),
    )


def _is_on(job: Item) -> str:
    """Return whether the schedule is on; a job without one has no switch."""
    return plain(job["enabled"]) if job["enabled"] or job["schedule_type"] != "NONE" else "-"


def last_state(job: Item) -> str:
    """Return the state of the newest run."""
    return plain((job["last_run"] or {}).get("state"))


@click.group("jobs", short_help="Jobs: list, show, trigger, backfill, start, stop, export.")
def jobs() -> None:
    """List, show, trigger, start and stop jobs. JOB is an id, or a description or handler that is unique."""


@jobs.command("list")
@click.argument("text", required=False)
@group_option
@click.option("--handler", help="Only jobs with this text in the handler.")
@click.option("--owner", help="Only jobs with this text in the owner.")
@click.option("--tag", help="Only jobs with this tag.")
@click.option("--on/--off", "enabled", default=None, help="Only jobs whose schedule is on, or off.")
@click.option("-q", "--quiet", is_flag=True, help="Print ids only.")
@api_command
def list_jobs(
    invocation: Invocation, text: str | None, group: str | None, quiet: bool, **filters: str | bool | None
) -> None:
    """List the jobs, the newest first, or those with TEXT in the description."""
    client = invocation.client
    group_id = find_group(client, group)["id"] if group is not None else None
    rows = client.jobs({"q": text, "group_id": group_id, **filters})
    show_list(
        invocation,
        rows,
        columns(client) if invocation.is_for_people and not quiet else (),
        only="id" if quiet else "",
    )


@jobs.command("show")
@job_argument
@api_command
def show_job(invocation: Invocation, job: str) -> None:
    """Show a JOB."""
    show_item(invocation, find_job(invocation.client, job))


@jobs.command("start")
@jobs_argument
@api_command
def start_jobs(invocation: Invocation, names: tuple[str, ...]) -> None:
    """Turn the schedules of jobs on."""
    _switch(invocation, names, "start", "on")


@jobs.command("stop")
@jobs_argument
@api_command
def stop_jobs(invocation: Invocation, names: tuple[str, ...]) -> None:
    """Turn the schedules of jobs off. Their runs go on."""
    _switch(invocation, names, "stop", "off")


def _switch(invocation: Invocation, names: tuple[str, ...], action: str, state: str) -> None:
    client = invocation.client
    targets = [find_job(client, name) for name in names]  # all of them, before the first is switched
    results = []
    for job in targets:
        results.append(client.post(f"/jobs/{job['id']}/{action}"))
        if invocation.is_for_people:
            click.echo(f"job {job['id']} {job['description']}: {state}")
    if not invocation.is_for_people:
        show_document(invocation, results)


@jobs.command("next-times")
@job_argument
@click.option("--count", type=click.IntRange(1, 100), default=5, show_default=True)
@api_command
def next_times_of_job(invocation: Invocation, job: str, count: int) -> None:
    """Print the next times at which the schedule of JOB fires."""
    client = invocation.client
    item = find_job(client, job)
    answer = client.get(f"/jobs/{item['id']}/next-times", {"count": count})
    rule = item.get("calendar") or {}
    show_times(invocation, answer, one_of_each_month=rule["on"] if rule.get("nth") else "")


@jobs.command("preview-parameter")
@job_argument
@click.option("--count", type=click.IntRange(1, 20), default=3, show_default=True)
@click.option("--logical-time", type=Instant(), help="One run that stands for this time, not the next ones.")
@api_command
def preview_parameter(invocation: Invocation, job: str, count: int, logical_time: str | None) -> None:
    """Print what the next runs of JOB would get as their parameter; secrets are only named."""
    client = invocation.client
    query: Query = {"count": count, "logical_time": logical_time}
    answer = client.get(f"/jobs/{find_job(client, job)['id']}/parameter-preview", query)
    if not invocation.is_for_people:
        show_document(invocation, answer)
        return
    show_list(invocation, answer["items"], _PREVIEW)
    if not answer["fill_parameter"]:
        note("placeholders of this job are not filled in")


def show_times(invocation: Invocation, answer: Item, *, one_of_each_month: str = "") -> None:
    """Print the times of a schedule, for people in its zone.

    ``one_of_each_month``: ``workdays`` or ``holidays`` if the rule chooses one of these in each month.
    """
    if not invocation.is_for_people:
        show_document(invocation, answer)
        return
    for fire_time in answer["items"]:
        click.echo(fire_time["local"])
    if not answer["items"]:
        note("none")
    instants = answer.get("instants", ())
    local = {instant["at"]: instant["local"] for instant in (*instants, *answer["items"])}
    notes = [*_fates(instants, local, one_of_each_month)]
    for text in notes[:NOTES_MAX]:
        note(text)
    if len(notes) > NOTES_MAX:
        note(f"and {len(notes) - NOTES_MAX} more that do not run as the expression says; all: -o json")
    for instant in instants:
        if not instant["is_known"]:
            note(f"the calendar does not know the days from {instant['local'][:10]} on yet")
            break


def _fates(instants: Sequence[Item], local: dict[str, str], one_of_each_month: str) -> Iterator[str]:
    """Yield what becomes of instants that do not run as their expression says, skipped days as one."""
    for fate, group in groupby(instants, lambda instant: instant["fate"]):
        if fate == "runs":
            continue
        first, *rest = group
        if fate == "skipped" and len(rest) > 1:
            names = ", ".join(
                dict.fromkeys(instant["day_name"] for instant in (first, *rest) if instant["day_name"])
            )
            yield f"{first['local']} to {rest[-1]['local']}: skipped" + (f": {names}" if names else "")
            continue
        for instant in (first, *rest):
            kind = f"{instant['day_kind']}s"
            day = "not the chosen day of the month" if kind == one_of_each_month else _day_text(instant)
            yield f"{instant['local']}: {_fate_text(instant, day, local)}"


def _day_text(instant: Item) -> str:
    """Return the name of a day, or why it has none."""
    kind: str = instant["day_kind"] or ""
    return instant["day_name"] or ("no workday" if kind == "holiday" else kind)


def _fate_text(instant: Item, day: str, local: dict[str, str]) -> str:
    """Return what becomes of an instant that does not run as its expression says.

    ``local`` has times of the answer in the zone of the schedule.
    """
    fate, more = instant["fate"], ", with others of the day" if instant["has_more"] else ""
    runs_at, merged_into = (local.get(at, at) for at in (instant["runs_at"], instant["merged_into"]))
    if fate == "skipped":
        return f"skipped: {day}{more}"
    if fate == "moved":
        return f"moved to {runs_at} ({day})"
    if fate == "merged":
        return f"merged into {merged_into}"
    end = f", runs at {runs_at}" if runs_at else ""
    return f"blackout: {instant['reason']}{end}{more}"


@click.command("next-times", short_help="Print the next times of a schedule.")
@click.argument("expression")
@click.option("--tz", "time_zone", default="", help="IANA time zone; default: the console's.")
@click.option("--count", type=click.IntRange(1, 100), default=5, show_default=True)
@api_command
def next_times(invocation: Invocation, expression: str, time_zone: str, count: int) -> None:
    """Print the next times of a cron EXPRESSION."""
    schedule = {"schedule_type": "CRON", "schedule": expression, "time_zone": time_zone, "count": count}
    show_times(invocation, invocation.client.post("/schedules/next-times", schedule))


@jobs.command("export", short_help="Print jobs as a file that duetime apply takes.")
@jobs_argument
@click.option("--whole", is_flag=True, help="Include members that have the default value of a new job.")
@api_command
def export_jobs(invocation: Invocation, names: tuple[str, ...], whole: bool) -> None:
    """Print jobs and their executor groups as a YAML file, which duetime plan and duetime apply take.

    Children of a job are named if they are among them or managed as code.
    """
    client = invocation.client
    job_ids = ",".join(str(find_job(client, name)["id"]) for name in names)
    query: Query = {"jobs": job_ids, "whole": whole}
    answer = client.get("/code/export", query)
    if invocation.output == "json":
        show_document(invocation, answer["document"])
    else:
        from executor_client.code.writing import write_text  # imported here, because only this needs YAML

        click.echo(write_text(answer["document"], answer["variables"]), nl=False)
    for text in answer.get("notes", ()):
        note(text, fg="yellow")


jobs.add_command(trigger)
jobs.add_command(backfill)
