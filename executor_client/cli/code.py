"""Commands of jobs as code: plan, apply, drift, export, undo."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from executor_client.api.error_messages import EXIT_FAILED, EXIT_USAGE
from executor_client.api.errors import InvalidRequest
from executor_client.api.session import Item
from executor_client.api.transport import BASE_PATH, Query
from executor_client.cli.invocation import Invocation, Stop, api_command
from executor_client.cli.output.output import note, plain, show_document, show_done, show_list
from executor_client.cli.output.prompts import may_prompt
from executor_client.cli.output.tables import Column
from executor_client.code.git_source import source_of
from executor_client.code.loading import Folder, LoadedFolder, load
from executor_client.code.plan_text import drift_lines, plan_lines, summary_line
from executor_client.code.source_locations import CodeError, InvalidCode
from executor_client.code.writing import write_files, write_text
from executor_client.config.program_name import program_name
from executor_client.config.terminal import is_terminal

#: timeout of the answer in seconds: the console checks thousands of jobs in one request
ANSWER_S = 300.0
#: number of applies that ``undo`` lists
LIST_MAX = 20
#: path of the JSON Schema, below the address of the console
SCHEMA_PATH = f"{BASE_PATH}/code/schema.json"
APPLIES = (
    Column("ID", lambda entry: plain(entry["id"]), is_number=True),
    Column("AT", lambda entry: plain(entry["at"])),
    Column("BY", lambda entry: entry["username"], cut=True),
    Column("SOURCE", lambda entry: entry["source"], cut=True),
    Column("CHANGES", lambda entry: str(sum(entry["summary"].values()) - entry["summary"]["unchanged"])),
    Column("UNDONE", lambda entry: plain(entry["undone_at"])),
)


def _variables(_context: click.Context, _parameter: click.Parameter, texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for name, equals, _value in pairs:
        if not equals or not name.isidentifier():
            raise click.BadParameter(f"{name}: write NAME=VALUE")
    return {name: value for name, _equals, value in pairs}


def _folder_options(command: Any) -> Any:
    for option in (
        click.option(
            "--prune",
            multiple=True,
            metavar="KEY",
            help="Delete this managed object: KEY of a job, group:APPNAME, channel:NAME or calendar:NAME.",
        ),
        click.option(
            "--var",
            "variables",
            multiple=True,
            metavar="NAME=VALUE",
            callback=_variables,
            help="Value of ${NAME}; wins over vars.yaml.",
        ),
        click.option(
            "--overlay", "overlays", multiple=True, metavar="NAME", help="Folder of DIR laid over DIR/base."
        ),
        click.argument("folder", metavar="DIR", type=click.Path(path_type=Path)),
    ):
        command = option(command)
    return command


@click.command("plan", short_help="Show what applying a folder of files would change.")
@_folder_options
@click.option("--exit-code", is_flag=True, help="End with 1 if there is something to do.")
@api_command
def plan(
    invocation: Invocation,
    folder: Path,
    overlays: Sequence[str],
    variables: Mapping[str, str],
    prune: Sequence[str],
    exit_code: bool,
) -> None:
    """Show what applying the YAML files below DIR would change, field by field; changes nothing."""
    content = _load(folder, overlays, variables)
    code_plan = _post(invocation, content, "/code/plan", {"prune": list(prune)})
    _show_plan(invocation, code_plan)
    if exit_code and code_plan["objects"]:
        raise click.exceptions.Exit(EXIT_FAILED)


@click.command("apply", short_help="Make groups, jobs, calendars and channels match a folder of files.")
@_folder_options
@click.option("--yes", is_flag=True, help="Apply without asking.")
@click.option(
    "--source", metavar="TEXT", default="", help="Where the files come from; default: their commit."
)
@api_command
def apply(
    invocation: Invocation,
    folder: Path,
    overlays: Sequence[str],
    variables: Mapping[str, str],
    prune: Sequence[str],
    yes: bool,
    source: str,
) -> None:
    """Make everything match the YAML files below DIR: all of it, or nothing."""
    content = _load(folder, overlays, variables)
    code_plan = _post(invocation, content, "/code/plan", {"prune": list(prune)})
    if invocation.is_for_people:
        _show_plan(invocation, code_plan)
    if code_plan["objects"] and not yes:
        _confirm(summary_line(code_plan))
    result: Item = {"apply_id": None, "plan": code_plan}
    if code_plan["objects"]:  # otherwise no schedule has to wait for another plan
        body = {
            "prune": list(prune),
            "source": source or source_of(folder),
            "plan_hash": code_plan["plan_hash"],
        }
        result = _post(invocation, content, "/code/apply", body)
    if not invocation.is_for_people:
        show_document(invocation, result)
    elif result["apply_id"] is not None:
        click.echo(f"Applied. To take it back: {program_name()} undo {result['apply_id']}")


@click.command("drift", short_help="Show what was changed in the console since it was applied.")
@api_command
def drift(invocation: Invocation) -> None:
    """Show what differs from the code because it was changed elsewhere; ends with 1 if anything does."""
    items = invocation.client.get("/code/drift", timeout_s=ANSWER_S)["items"]
    if invocation.is_for_people:
        for line in drift_lines(items):
            click.echo(line)
    else:
        show_document(invocation, items)
    if items:
        raise click.exceptions.Exit(EXIT_FAILED)


@click.command("export", short_help="Write groups, jobs, calendars and channels as files.")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.option("--group", "groups", multiple=True, metavar="APPNAME", help="Only this group.")
@click.option("--whole", is_flag=True, help="Include members that have the default value of a new job.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
@api_command
def export(
    invocation: Invocation, folder: Path | None, groups: Sequence[str], whole: bool, force: bool
) -> None:
    """Write what the console has as YAML files below DIR, or to standard output."""
    query: Query = {"groups": ",".join(groups), "whole": whole}
    answer = invocation.client.get("/code/export", query, timeout_s=ANSWER_S)
    if folder is None and invocation.output == "json":
        show_document(invocation, answer["document"])
    elif folder is None:
        click.echo(write_text(answer["document"], answer["variables"]), nl=False)
    else:
        schema_url = "" if invocation.is_local else f"{invocation.client.address}{SCHEMA_PATH}"
        files = write_files(answer["document"], answer["variables"], schema_url=schema_url)
        _write(folder, files, force=force)
        jobs = len(answer["document"]["jobs"])
        summary = f"{jobs} {'job' if jobs == 1 else 'jobs'} written to"
        note(f"{summary} {len(files)} {'file' if len(files) == 1 else 'files'} below {folder}")
    for remark in answer.get("notes", ()):
        note(remark, fg="yellow")
    for location, name in answer["variables"].items():
        note(f"{location} is a secret: give it by --var {name}=…, or write ${{env:{name}}} in the file")


@click.command("undo", short_help="Put back what an apply changed.")
@click.argument("apply_id", metavar="[APPLY]", required=False, type=int)
@click.option("--force", is_flag=True, help="Also where fields were changed again since.")
@click.option("--yes", is_flag=True, help="Undo without asking.")
@api_command
def undo(invocation: Invocation, apply_id: int | None, force: bool, yes: bool) -> None:
    """Put back what the apply with this id changed; without an id list the last applies."""
    if apply_id is None:
        show_list(invocation, invocation.client.items("/code/applies", limit=LIST_MAX), APPLIES)
        return
    path, body = f"/code/applies/{apply_id}/undo", {"force": force}
    if not yes:
        _show_plan(invocation, invocation.client.post(path, body, dry_run=True, timeout_s=ANSWER_S))
        _confirm(f"Apply {apply_id} is undone.")
    result = invocation.client.post(path, body, timeout_s=ANSWER_S)
    show_done(invocation, f"Apply {apply_id} is undone.", result)


def _load(folder: Path, overlays: Sequence[str], variables: Mapping[str, str]) -> LoadedFolder:
    try:
        return load(Folder(folder, overlays, variables, os.environ))
    except InvalidCode as exc:
        raise _stop_with(exc.errors) from exc


def _post(invocation: Invocation, content: LoadedFolder, path: str, body: Item) -> Item:
    """Send the document; errors of its values name their locations in the files."""
    try:
        return invocation.client.post(path, {"document": content.document, **body}, timeout_s=ANSWER_S)
    except InvalidRequest as exc:
        if not exc.fields:
            raise
        errors = [content.error(field.field, field.reason) for field in exc.fields]
        raise _stop_with(InvalidCode(errors).errors) from exc


def _stop_with(errors: Sequence[CodeError]) -> Stop:
    *earlier_errors, last = errors
    for error in earlier_errors:
        note(f"Error: {error}")
    return Stop(str(last), EXIT_USAGE)


def _show_plan(invocation: Invocation, code_plan: Item) -> None:
    if not invocation.is_for_people:
        show_document(invocation, code_plan)
        return
    for line in plan_lines(code_plan):
        click.echo(line)


def _confirm(question: str) -> None:
    if not is_terminal(sys.stdin) or not may_prompt():
        raise Stop("nothing was changed: add --yes to continue without confirmation", EXIT_USAGE)
    click.confirm(f"{question} Continue?", abort=True, err=True)


def _write(folder: Path, files: Mapping[str, str], *, force: bool) -> None:
    existing = [name for name in files if (folder / name).exists()]
    if existing and not force:
        raise Stop(f"{folder / existing[0]} exists: choose another folder, or add --force")
    for name, content in files.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8", newline="")
        except OSError as exc:
            raise Stop(f"{path} cannot be written: {exc.strerror}") from exc
