"""Two texts side by side, line by line."""

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
    """A line of the old text beside one of the new; number 0: there is none on that side. ``gap``: equal lines are left out here."""

    old_number: int = 0
    old: str = ""
    new_number: int = 0
    new: str = ""
    #: ``equal``, ``replace``, ``delete``, ``insert`` or ``gap``
    kind: str = "equal"


def diff_rows(old: str, new: str) -> list[DiffRow] | None:
    """Return the rows of the comparison, none where the texts are equal; None where a text is too long to compare."""
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
