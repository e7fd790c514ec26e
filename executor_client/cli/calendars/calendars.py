"""Commands ``calendars``: on which days jobs run: list, show, import days, delete."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from executor_client.api.session import Item
from executor_client.cli.invocation import Invocation, api_command
from executor_client.cli.lookup import explain_missing
from executor_client.cli.output.output import (
    note,
    plain,
    show_document,
    show_done,
    show_item,
    show_list,
)
from executor_client.cli.output.tables import Column

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group("calendars", short_help="Calendars of jobs: list, show, import, delete.")
def calendars() -> None:
    """List, show, fill and delete calendars: which days are workdays and which are holidays."""


@calendars.command("list")
@click.option("-q", "--quiet", is_flag=True, help="Print names only.")
@api_command
def list_calendars(invocation: Invocation, quiet: bool) -> None:
    """List the calendars, with the last day that each knows."""
    show_list(invocation, invocation.client.items("/calendars"), _COLUMNS, only="name" if quiet else "")


@calendars.command("show")
@click.argument("name")
@click.option("--year", type=click.IntRange(1970, 2100), help="Its days of a year that are listed.")
@api_command
def show_calendar(invocation: Invocation, name: str, year: int | None) -> None:
    """Show the calendar NAME, or its days of a year."""
    client = invocation.client
    with explain_missing("calendar", name):
        if year is None:
            _show(invocation, client.get(_path(name)))
            return
        days = client.get(f"{_path(name)}/days", {"year": year})["items"]
    if not invocation.is_for_people:
        show_document(invocation, days)
        return
    own = [day for day in days if not day["by_rule"]]
    show_list(invocation, own, _DAYS)
    workdays = sum(day["kind"] == "workday" for day in days)
    unknown = sum(not day["is_known"] for day in days)
    note(f"{workdays} workdays" + (f"; {unknown} days are not known yet" if unknown else ""))


@calendars.command("import")
@click.argument("name")
@click.option("--country", default="", help="ISO code, such as CN or DE-BY.")
@click.option("--years", default="", help="Years of the country: 2026,2027.")
@click.option("--ics", type=FILE, help="iCalendar file.")
@click.option("--csv", type=FILE, help="File of lines such as 2026-10-01,holiday,National Day.")
@click.option("--replace", is_flag=True, help="Without the days so far; otherwise those of other years stay.")
@api_command
def import_days(
    invocation: Invocation,
    name: str,
    country: str,
    years: str,
    ics: Path | None,
    csv: Path | None,
    replace: bool,
) -> None:
    """Take the holidays of a country or a file into the calendar NAME, which is made if there is none."""
    if sum((bool(country), ics is not None, csv is not None)) != 1:
        raise click.UsageError("give one of --country, --ics and --csv")
    if bool(country) != bool(years):
        raise click.UsageError("--country goes with --years")
    body: dict[str, Any] = {"replace": replace}
    if country:
        body |= {"country": country, "years": _years(years)}
    for member, file in (("ics", ics), ("csv", csv)):
        if file is not None:
            body[member] = _text(file)
    result = invocation.client.write("POST", f"{_path(name)}/import", body)
    counts = f"{result['holidays']} holidays, {result['workdays']} make-up workdays"
    until = result["valid_until"]
    ends = f", valid until {until}" if until else ""
    show_done(invocation, f"calendar {result['name']}: {counts}{ends}", result)


@calendars.command("delete")
@click.argument("name")
@api_command
def delete_calendar(invocation: Invocation, name: str) -> None:
    """Delete the calendar NAME, which no job uses."""
    client = invocation.client
    with explain_missing("calendar", name):
        result = client.get(_path(name))
        client.write("DELETE", _path(name))
    show_done(invocation, f"calendar {result['name']}: deleted", result)


def _show(invocation: Invocation, calendar: Item) -> None:
    """Show a calendar, for people without its days."""
    if not invocation.is_for_people:
        show_document(invocation, calendar)
        return
    left_out = ("days", "names", "versions")
    show_item(invocation, {name: value for name, value in calendar.items() if name not in left_out})


def _path(name: str) -> str:
    if "/" in name:  # which paths of the API take for their own
        raise click.UsageError("the name of a calendar has no /")
    return f"/calendars/{quote(name.strip(), safe='')}"


def _years(text: str) -> list[int]:
    try:
        return [int(year) for year in text.split(",")]
    except ValueError as exc:
        raise click.UsageError("--years takes years with commas: 2026,2027") from exc


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as exc:
        raise click.UsageError(f"{file} is not UTF-8") from exc


def _weekend(calendar: Item) -> str:
    return ", ".join(day[:3].capitalize() for day in calendar["weekend"]) or "-"


_COLUMNS = (
    Column("NAME", lambda calendar: plain(calendar["name"]), cut=True),
    Column("WEEKEND", _weekend),
    Column("HOLIDAYS", lambda calendar: plain(calendar["holidays"]), is_number=True),
    Column("MAKE-UP", lambda calendar: plain(calendar["workdays"]), is_number=True),
    Column("VALID UNTIL", lambda calendar: plain(calendar["valid_until"] or "-")),
    Column("JOBS", lambda calendar: plain(calendar["jobs"]), is_number=True),
)
_DAYS = (
    Column("DATE", lambda day: day["date"]),
    Column("KIND", lambda day: day["kind"]),
    Column("NAME", lambda day: plain(day["name"]), cut=True),
)
