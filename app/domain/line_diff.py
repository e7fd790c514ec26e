"""Line diff: compare two texts side by side."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

#: longer texts are not compared: the time grows with the square of the length
LINES_MAX = 5_000
#: equal lines shown around a change
CONTEXT = 3


@dataclass(frozen=True, slots=True)
class DiffRow:
    """Row of a diff: a line of the old text beside one of the new; number 0: no line on that side."""

    old_number: int = 0
    old: str = ""
    new_number: int = 0
    new: str = ""
    #: ``equal``, ``replace``, ``delete``, ``insert``, or ``gap`` where equal lines are left out
    kind: str = "equal"


def diff_rows(old: str, new: str) -> list[DiffRow] | None:
    """Return the rows of the diff, empty for equal texts; None if a text is too long to compare."""
    before, after = old.splitlines(), new.splitlines()
    if max(len(before), len(after)) > LINES_MAX:
        return None
    rows: list[DiffRow] = []
    for group in SequenceMatcher(None, before, after, autojunk=True).get_grouped_opcodes(CONTEXT):
        if rows or group[0][1] > 0:
            rows.append(DiffRow(kind="gap"))
        for kind, old_from, old_to, new_from, new_to in group:
            rows.extend(_rows(kind, _numbered(before, old_from, old_to), _numbered(after, new_from, new_to)))
    return rows


def _numbered(lines: list[str], first: int, end: int) -> list[tuple[int, str]]:
    return [(number + 1, lines[number]) for number in range(first, end)]


def _rows(kind: str, old: list[tuple[int, str]], new: list[tuple[int, str]]) -> Iterator[DiffRow]:
    for left, right in zip_longest(old, new, fillvalue=(0, "")):
        yield DiffRow(left[0], left[1], right[0], right[1], kind)
