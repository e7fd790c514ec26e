"""Result tables: a result message that is a JSON object, or a list of objects, as rows and columns."""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

#: rows and columns that a page shows, and characters of a cell; the message itself has the rest
ROWS_MAX, COLUMNS_MAX, CELL_MAX = 100, 20, 300

Cells = Sequence[str]

_PARTS = re.compile(r"(-?)(\d+)((?:\.\d+)?)", re.ASCII)


class NumberCell(str):
    """Cell that was a number, not a text of digits."""

    __slots__ = ()

    #: least digits of a number with separators: one of four may be a year
    grouped_from = 5

    @property
    def grouped(self) -> str:
        """The number with thousands separators."""
        match = _PARTS.fullmatch(self)
        if match is None or len(match[2]) < self.grouped_from:
            return str(self)
        return f"{match[1]}{int(match[2]):,}{match[3]}"


class ResultTable(NamedTuple):
    """Table of a message; an object has a row for each of its members and no headings."""

    headings: Cells
    rows: Sequence[Cells]
    #: number of rows and columns that are left out
    more_rows: int
    more_columns: int
    #: what the message has after the JSON, such as lines about child jobs
    rest: str


class LargeNumberCell(NumberCell):
    """The same in a column with larger numbers, where one of four digits is no year."""

    __slots__ = ()

    grouped_from = 4


def table_of(message: str | None) -> ResultTable | None:
    """Return the table of a message; None if it is something else, or cut off."""
    value, rest = _parse(message)
    if isinstance(value, dict) and value:
        rows = [(_cut(name), _cell(member)) for name, member in list(value.items())[:ROWS_MAX]]
        return ResultTable((), rows, max(len(value) - ROWS_MAX, 0), 0, rest)
    return _of_list(value, rest) if _is_list_of_objects(value) else None


def cells_of(message: str | None) -> list[list[str]] | None:
    """Return all cells of the table of a message, uncut, with a row of headings if it has them."""
    value, _ = _parse(message)
    if isinstance(value, dict) and value:
        return [[str(name), _text(member)] for name, member in value.items()]
    if not _is_list_of_objects(value):
        return None
    names = list(dict.fromkeys(name for item in value for name in item))
    return [names, *([_text(item[name]) if name in item else "" for name in names] for item in value)]


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) and item for item in value)


def _parse(message: str | None) -> tuple[Any, str]:
    """Return the JSON a message begins with, and the text behind it; None: it does not begin with any."""
    text = (message or "").lstrip()
    if not text.startswith(("{", "[")):
        return None, ""
    try:
        value, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None, ""
    rest = text[end:]
    if rest.strip() and not rest.startswith("\n"):
        return None, ""
    return value, rest.strip()


def _of_list(value: list[dict[str, Any]], rest: str) -> ResultTable:
    names = list(dict.fromkeys(name for item in value for name in item))
    columns = names[:COLUMNS_MAX]
    rows = [[_cell(item[name]) if name in item else "" for name in columns] for item in value[:ROWS_MAX]]
    for index in range(len(columns)):
        cells = [row[index] for row in rows]
        if any(isinstance(cell, NumberCell) and cell.grouped != cell for cell in cells):
            for row in rows:
                row[index] = LargeNumberCell(row[index]) if isinstance(row[index], NumberCell) else row[index]
    headings = [_cut(name) for name in columns]
    return ResultTable(headings, rows, max(len(value) - ROWS_MAX, 0), len(names) - len(columns), rest)


def _cell(value: Any) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return NumberCell(_cut(_text(value))) if is_number else _cut(_text(value))


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
    except RecursionError:
        return "…"


def _cut(text: str) -> str:
    """Return the beginning of a text; lone surrogates, which no page can hold, become "?"."""
    beginning = text if len(text) <= CELL_MAX else text[:CELL_MAX] + "…"
    return beginning.encode("utf-8", "replace").decode("utf-8")
