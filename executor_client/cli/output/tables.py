"""Tables that fit the width of the terminal."""

import shutil
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from executor_client.api.session import Item
from executor_client.config.terminal import is_terminal, printable

GAP = "  "
CUT = "…"
#: characters to which a column may be cut
NARROWEST = 10


@dataclass(frozen=True)
class Column:
    """Column of a table; ``cut``: may lose its end on a narrow terminal."""

    title: str
    value: Callable[[Item], str]
    cut: bool = False
    is_number: bool = False
    #: text of a cell -> colour
    colours: Mapping[str, str] = field(default_factory=dict)


def width_of(text: str) -> int:
    """Return the width of a text in terminal columns: two for a wide character."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def cut_to(text: str, width: int) -> str:
    """Return a text that takes at most ``width`` columns, cut with an ellipsis."""
    if width_of(text) <= width:
        return text
    prefix, prefix_width = "", 0
    for character in text:
        prefix_width += width_of(character)
        if prefix_width > width - 1:
            break
        prefix += character
    return prefix + CUT


def widths(columns: Sequence[Column], items: Sequence[Item]) -> list[int]:
    """Return the column widths for these rows; on a narrow terminal the widest ``cut`` columns shrink."""
    column_widths = [
        max(width_of(column.title), *(width_of(_cell(column, item)) for item in items)) for column in columns
    ]
    if not is_terminal(sys.stdout):
        return column_widths
    available = shutil.get_terminal_size().columns - len(GAP) * (len(columns) - 1)
    while sum(column_widths) > available:
        cuttable = [
            number
            for number, column in enumerate(columns)
            if column.cut and column_widths[number] > NARROWEST
        ]
        if not cuttable:
            break
        column_widths[max(cuttable, key=column_widths.__getitem__)] -= 1
    return column_widths


def header(columns: Sequence[Column], column_widths: Sequence[int]) -> str:
    """Return the line of the titles."""
    cells = [_pad(column.title, width, column) for column, width in zip(columns, column_widths, strict=True)]
    return click.style(GAP.join(cells).rstrip(), bold=True)


def line(columns: Sequence[Column], column_widths: Sequence[int], item: Item) -> str:
    """Return the line of an item."""
    cells = []
    for column, width in zip(columns, column_widths, strict=True):
        text = _cell(column, item)
        if is_terminal(sys.stdout):
            text = cut_to(text, width)
        cells.append(_pad(text, width, column, column.colours.get(text, "")))
    return GAP.join(cells).rstrip()


def _cell(column: Column, item: Any) -> str:
    """Return the text of a cell on one line, without control characters of a terminal."""
    return printable(column.value(item))


def _pad(text: str, width: int, column: Column, colour: str = "") -> str:
    spaces = " " * (width - width_of(text))
    text = click.style(text, fg=colour) if colour else text
    return spaces + text if column.is_number else text + spaces
