"""Output of the commands: tables for people, JSON or YAML for programs, notes on standard error."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import click

from executor_client.api.session import Item
from executor_client.cli.invocation import Invocation
from executor_client.cli.tables import Column, header, line, widths

#: rows of a table that decide on the widths of its columns
MEASURED_ROWS = 200


def show_list(invocation: Invocation, items: Iterable[Item], columns: Sequence[Column]) -> None:
    """Print a list as it arrives: a table, or one array."""
    if invocation.output == "json":
        _json_array(items)
    elif invocation.output == "yaml":
        _yaml_sequence(items)
    else:
        _table(items, columns)


def show_item(
    invocation: Invocation, item: Item, fields: Mapping[str, str | Callable[[Item], str]] | None = None
) -> None:
    """Print one object: its fields one a line, or a document.

    ``fields``: label -> member or a function that makes the text; without it all members as they are.
    """
    if not invocation.is_for_people:
        show_document(invocation, item)
        return
    shown = fields or {name: name for name in item}
    width = max(map(len, shown), default=0)
    for label, value in shown.items():
        text = value(item) if callable(value) else plain(item.get(value))
        if text or fields is None:
            click.echo(click.style(f"{label:<{width}}", bold=True) + f"  {text}")


def show_document(invocation: Invocation, value: Any) -> None:
    """Print a value as JSON, or as YAML for ``-o yaml``."""
    if invocation.output == "yaml":
        click.echo(_yaml(value), nl=False)
    else:
        click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def note(text: str, **style: Any) -> None:
    """Print a line for people on standard error."""
    click.secho(text, err=True, **style)


def plain(value: Any) -> str:
    """Return a JSON value as a short text: nothing for null, yes or no, lists with commas."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(plain, value))
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


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
        click.echo(_yaml([item]), nl=False)
        is_empty = False
    if is_empty:
        click.echo("[]")


def _yaml(value: Any) -> str:
    import yaml  # here: only this form of output needs it

    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=110))


def _table(items: Iterable[Item], columns: Sequence[Column]) -> None:
    rest = iter(items)
    first = list(islice(rest, MEASURED_ROWS))
    if not first:
        note("none")
        return
    chosen = widths(columns, first)
    click.echo(header(columns, chosen))
    for item in chain(first, rest):
        click.echo(line(columns, chosen, item))
