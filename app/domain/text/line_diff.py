"""Line diff: comparison of two texts side by side."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import Match, SequenceMatcher
from itertools import accumulate, zip_longest

#: longer texts are not shown side by side
LINES_MAX = 5_000
#: steps of a comparison, about a second: with many repeated lines their number grows with the cube of the
#: length
STEPS_MAX = 10_000_000
#: equal lines shown around a change
CONTEXT = 3
#: what ends a line; ``splitlines`` also ends one at a form feed and other characters of a line
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class DiffRow:
    """Row of a diff: a line of the old text beside one of the new; number 0: no line on that side."""

    old_number: int = 0
    old: str = ""
    new_number: int = 0
    new: str = ""
    #: ``equal``, ``replace``, ``delete``, ``insert``, or ``gap`` where equal lines are left out
    kind: str = "equal"


class LineMatcher(SequenceMatcher[str]):
    """Compares lines in at most STEPS_MAX steps; what is left then counts as replaced."""

    def __init__(self, before: Sequence[str], after: Sequence[str]) -> None:
        super().__init__(None, before, after, autojunk=True)
        self._lines, self._other = len(before), len(after)
        places: dict[str, list[int]] = self.b2j  # type: ignore[attr-defined, unused-ignore]
        #: for each line, the steps that a search up to it takes
        self._steps = [0, *accumulate(1 + len(places.get(line, ())) for line in before)]
        self._steps_left = STEPS_MAX

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        """Find the longest equal block; none once the steps are used up."""
        ahi, bhi = self._lines if ahi is None else ahi, self._other if bhi is None else bhi
        self._steps_left -= self._steps[ahi] - self._steps[alo]
        return Match(alo, blo, 0) if self._steps_left < 0 else super().find_longest_match(alo, ahi, blo, bhi)


def diff_rows(old: str, new: str) -> list[DiffRow] | None:
    """Return the rows of the diff, empty for equal lines; None if a text is too long to compare."""
    before, after = _lines(old), _lines(new)
    if max(len(before), len(after)) > LINES_MAX:
        return None
    rows: list[DiffRow] = []
    for group in LineMatcher(before, after).get_grouped_opcodes(CONTEXT):
        if rows or group[0][1] > 0:
            rows.append(DiffRow(kind="gap"))
        for kind, old_from, old_to, new_from, new_to in group:
            rows.extend(_rows(kind, _numbered(before, old_from, old_to), _numbered(after, new_from, new_to)))
    return rows


def _lines(text: str) -> list[str]:
    lines = _LINE_END.split(text)
    return lines if lines[-1] else lines[:-1]


def _numbered(lines: list[str], first: int, end: int) -> list[tuple[int, str]]:
    return [(number + 1, lines[number]) for number in range(first, end)]


def _rows(kind: str, old: list[tuple[int, str]], new: list[tuple[int, str]]) -> Iterator[DiffRow]:
    for old_line, new_line in zip_longest(old, new, fillvalue=(0, "")):
        yield DiffRow(old_line[0], old_line[1], new_line[0], new_line[1], kind)
