"""Output of the commands: tables for people, JSON or YAML for programs, notes on standard error."""

import json
import re
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Any

import click

from executor_client.api.session import Item
from executor_client.cli.invocation import Invocation
from executor_client.cli.output.tables import Column, header, line, widths
from executor_client.cli.output.times import local_time
from executor_client.config.terminal import printable

#: an instant of the API
_INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}T[\d:.]+Z")
#: number of rows that decide on the column widths
MEASURED_ROWS = 200


def show_list(
    invocation: Invocation, items: Iterable[Item], columns: Sequence[Column], *, only: str = ""
) -> None:
    """Print a list as it arrives: a table, or one array; ``only``: one member of each, for --quiet."""
    if only:
        for item in items:
            click.echo(item[only])
    elif invocation.output == "json":
        _json_array(items)
    elif invocation.output == "yaml":
        _yaml_sequence(items)
    else:
        _table(items, columns)


def show_done(invocation: Invocation, line: str, document: Any) -> None:
    """Print the result of a command: one line for people, or the changed object as a document."""
    if invocation.is_for_people:
        click.echo(line)
    else:
        show_document(invocation, document)


def show_item(invocation: Invocation, item: Item) -> None:
    """Print one object: its members one a line, or a document."""
    if not invocation.is_for_people:
        show_document(invocation, item)
        return
    members = _flat(item)
    width = max(map(len, members), default=0)
    for label, value in members.items():
        text = plain(value).replace("\n", f"\n{'':{width}}  ")
        click.echo(click.style(label, bold=True) + f"{'':{width - len(label)}}  {text}".rstrip())


def _flat(item: Item) -> Item:
    """Return an object with the members of its inner objects as its own: ``last_run.id``."""
    flat = {}
    for name, value in item.items():
        if isinstance(value, dict):
            flat.update({f"{name}.{inner}": inner_value for inner, inner_value in value.items()})
        else:
            flat[name] = value
    return flat


def show_document(invocation: Invocation, value: Any) -> None:
    """Print a value as JSON, or as YAML for ``-o yaml``."""
    if invocation.output == "yaml":
        click.echo(_as_yaml(value), nl=False)
    else:
        click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def note(text: str, **style: Any) -> None:
    """Print a line for people on standard error."""
    click.secho(printable(text, "\n\t"), err=True, **style)


def plain(value: Any) -> str:
    """Return a JSON value as a short text: nothing for null, yes or no, lists with commas, local times."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and not any(isinstance(item, dict) for item in value):
        return ", ".join(map(plain, value))
    if isinstance(value, list):
        return "\n".join(map(plain, value))
    if isinstance(value, dict):
        return "  ".join(f"{name}: {plain(member)}" for name, member in value.items())
    if _INSTANT.fullmatch(str(value)):
        return local_time(value)
    return printable(str(value), "\n\t")


def _json_array(items: Iterable[Item]) -> None:
    separator = "["
    for item in items:
        text = json.dumps(item, indent=2, ensure_ascii=False).replace("\n", "\n  ")
        click.echo(f"{separator}\n  {text}", nl=False)
        separator = ","
    click.echo("[]" if separator == "[" else "\n]")


def _yaml_sequence(items: Iterable[Item]) -> None:
    is_empty = True
    for item in items:
        click.echo(_as_yaml([item]), nl=False)
        is_empty = False
    if is_empty:
        click.echo("[]")


def _as_yaml(value: Any) -> str:
    from executor_client.code.yaml_writing import dump  # imported here, because only ``-o yaml`` needs it

    return dump(value)


def _table(items: Iterable[Item], columns: Sequence[Column]) -> None:
    rows = iter(items)
    first = list(islice(rows, MEASURED_ROWS))
    if not first:
        note("none")
        return
    column_widths = widths(columns, first)
    click.echo(header(columns, column_widths))
    for item in chain(first, rows):
        click.echo(line(columns, column_widths, item))
