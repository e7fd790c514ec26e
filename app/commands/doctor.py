"""Command ``doctor``: problems of an installation, and their remedies."""

import json
import sys
from dataclasses import asdict

import click

from app.commands.context import EXIT_FAILED, EXIT_NOT_CONFIGURED, configuration, one_line_errors
from app.commands.invocation import Settings
from app.domain.text.texts import counted
from app.services.doctor.examination import Examination, examine
from app.services.doctor.findings import Finding, Level

#: sign and colour of each level
SIGNS = {Level.OK: ("ok", "green"), Level.WARNING: ("!", "yellow"), Level.PROBLEM: ("X", "red")}
#: columns of the text before the finding
INDENT = 16


@click.command("doctor", short_help="Examine the installation.")
@click.option("--probe", is_flag=True, help="Call up to 200 executors too, each for 3 s at most.")
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@one_line_errors
def doctor(probe: bool, output: str) -> None:
    """Examine the installation: settings, files, database, nodes, executors, jobs, alarms, runs, passwords.

    Writes nothing, and works with the services down. Exit code 0: nothing found; 1: findings; 2: the
    database could not be examined.
    """
    settings = click.get_current_context().find_object(Settings)
    examination = examine(configuration(), env_file=settings.env_file if settings else None, probe=probe)
    if output == "json":
        click.echo(json.dumps(_as_json(examination), indent=2))
    else:
        _print(examination)
    if not examination.is_fine:
        sys.exit(EXIT_FAILED if examination.is_complete else EXIT_NOT_CONFIGURED)


def _as_json(examination: Examination) -> dict[str, object]:
    return {
        "fine": examination.is_fine,
        "complete": examination.is_complete,
        "findings": [asdict(finding) for finding in examination.findings],
    }


def _print(examination: Examination) -> None:
    """Print the findings, what needs something last, where an operator's eyes are."""
    order = list(Level)
    for finding in sorted(examination.findings, key=lambda finding: order.index(finding.level)):
        _print_finding(finding)
    count = sum(finding.level is not Level.OK for finding in examination.findings)
    click.echo()
    if not count:
        click.secho("Nothing found.", fg="green")
        return
    more = "" if examination.is_complete else "; the database could not be examined"
    click.secho(f"{counted(count, 'finding')}{more}.", bold=True)


def _print_finding(finding: Finding) -> None:
    sign, colour = SIGNS[finding.level]
    head = click.style(f"{sign:>2}", fg=colour, bold=finding.level is not Level.OK)
    click.echo(f"{head}  {finding.check:<{INDENT - 4}}{finding.text}")
    if finding.advice:
        click.echo(f"{'':{INDENT}}-> {finding.advice}")
