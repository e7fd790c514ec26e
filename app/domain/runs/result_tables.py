"""Result tables: a result message that is a JSON object, or a list of objects, as rows and columns."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

#: rows and columns that a page shows, and characters of a cell; the message itself has the rest
ROWS_MAX, COLUMNS_MAX, CELL_MAX = 100, 20, 300

Cells = Sequence[str]


class ResultTable(NamedTuple):
    """Table of a message; an object has a row for each of its members and no headings."""

    headings: Cells
    rows: Sequence[Cells]
    #: number of rows and columns that are left out
    more_rows: int
    more_columns: int
    #: what the message has after the JSON, such as lines about child jobs
    rest: str


def table_of(message: str | None) -> ResultTable | None:
    """Return the table of a message; None if it is something else, or cut off."""
    text = (message or "").lstrip()
    if not text.startswith(("{", "[")):
        return None
    try:
        value, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None
    rest = text[end:]
    if rest.strip() and not rest.startswith("\n"):
        return None
    if isinstance(value, dict) and value:
        rows = [(_cut(name), _cell(member)) for name, member in list(value.items())[:ROWS_MAX]]
        return ResultTable((), rows, max(len(value) - ROWS_MAX, 0), 0, rest.strip())
    if isinstance(value, list) and value and all(isinstance(item, dict) and item for item in value):
        return _of_list(value, rest.strip())
    return None


def _of_list(value: list[dict[str, Any]], rest: str) -> ResultTable:
    names = list(dict.fromkeys(name for item in value for name in item))
    columns = names[:COLUMNS_MAX]
    rows = [[_cell(item[name]) if name in item else "" for name in columns] for item in value[:ROWS_MAX]]
    headings = [_cut(name) for name in columns]
    return ResultTable(headings, rows, max(len(value) - ROWS_MAX, 0), len(names) - len(columns), rest)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return _cut(value)
    try:
        return _cut(json.dumps(value, ensure_ascii=False, separators=(", ", ": ")))
    except RecursionError:
        return "…"


def _cut(text: str) -> str:
    """Return the beginning of a text; lone surrogates, which no page can hold, become "?"."""
    beginning = text if len(text) <= CELL_MAX else text[:CELL_MAX] + "…"
    return beginning.encode("utf-8", "replace").decode("utf-8")
