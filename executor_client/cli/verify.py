"""Command ``verify``: proof that everything ran that was due."""

from datetime import date, timedelta

import click

from executor_client.cli.invocation import Invocation, api_command
from executor_client.cli.lookup import find_job
from executor_client.cli.output.output import plain, show_list
from executor_client.cli.output.tables import Column

#: seconds for a day: its instants are counted anew
ANSWER_S = 600.0
_DAY = click.DateTime(["%Y-%m-%d"])
_COLUMNS = (
    Column("DAY", lambda day: plain(day["day"])),
    Column("SEALED", lambda day: plain(day["sealed"])),
    Column("INTACT", lambda day: plain(day["intact"]), colours={"no": "red"}),
    Column("UNEXPLAINED", lambda day: plain(day["unexplained"]), is_number=True),
    Column("UNEXPECTED", lambda day: plain(day["unexpected"]), is_number=True),
    Column("DIFFERENT", lambda day: plain(len(day["different"])), is_number=True),
)


@click.command("verify", short_help="Prove that everything ran that was due.")
@click.option("--from", "first", type=_DAY, required=True, metavar="DAY", help="First day: 2026-11-01.")
@click.option("--to", "last", type=_DAY, required=True, metavar="DAY", help="Last day.")
@click.option("--job", help="Only this job: id, or a description or handler that is unique.")
@api_command
def verify(invocation: Invocation, first: object, last: object, job: str | None) -> None:
    """Verify days: each instant of each schedule has a run, a skip or a fire, and no seal was changed.

    Exit status: 0 if nothing is unexplained or unexpected and all seals are intact, else 1.
    """
    client = invocation.client
    days = _days(first, last)
    job_id = find_job(client, job)["id"] if job is not None else 0
    path = "/report/completeness/verification"
    results = [
        client.get(path, {"day": day.isoformat(), "job_id": job_id}, timeout_s=ANSWER_S) for day in days
    ]
    show_list(invocation, results, _COLUMNS)
    if not all(map(_is_complete, results)):
        raise click.exceptions.Exit(1)


def _days(first: object, last: object) -> list[date]:
    from_day, to_day = (value.date() for value in (first, last))  # type: ignore[attr-defined]
    if from_day > to_day:
        raise click.UsageError("--from must not be after --to")
    return [from_day + timedelta(days=number) for number in range((to_day - from_day).days + 1)]


def _is_complete(day: dict[str, object]) -> bool:
    return bool(day["intact"]) and not (day["unexplained"] or day["unexpected"] or day["different"])
