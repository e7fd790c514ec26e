"""Line diff: comparison of two texts side by side."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import Match, SequenceMatcher
from itertools import accumulate, zip_longest
from os.path import commonprefix

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
    #: of a gap: how many lines it leaves out
    left_out: int = 0

    @property
    def old_parts(self) -> tuple[str, str, str]:
        """The old line as what stays before the change, the change, and what stays after it."""
        return changed_part(self.old, self.new)

    @property
    def new_parts(self) -> tuple[str, str, str]:
        """The new line in the same three parts."""
        return changed_part(self.new, self.old)

    @property
    def is_partly_changed(self) -> bool:
        """True for a line beside its successor that keeps at least a third of the longer one."""
        before, _change, after = self.old_parts
        longer = max(len(self.old), len(self.new))
        return self.kind == "replace" and bool(self.old and self.new) and 3 * len(before + after) >= longer


@dataclass(frozen=True, slots=True)
class DiffCount:
    """Lines of a diff that are only in the new text, and only in the old one."""

    new_lines: int
    old_lines: int


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


def diff_rows(old: str, new: str, *, context: int = CONTEXT) -> list[DiffRow] | None:
    """Return the rows of the diff, empty for equal lines; None if a text is too long to compare."""
    before, after = _lines(old), _lines(new)
    if max(len(before), len(after)) > LINES_MAX:
        return None
    rows: list[DiffRow] = []
    end = 0
    for group in LineMatcher(before, after).get_grouped_opcodes(context):
        rows.extend(_gap(group[0][1] - end))
        for kind, old_from, old_to, new_from, new_to in group:
            rows.extend(
                _rows(kind, _number_lines(before, old_from, old_to), _number_lines(after, new_from, new_to))
            )
            end = old_to
    return rows + _gap(len(before) - end) if rows else rows


def diff_count(rows: Iterable[DiffRow]) -> DiffCount:
    """Count the lines that differ; a replaced line is one removed and one added."""
    changes = [row for row in rows if row.kind not in ("equal", "gap")]
    return DiffCount(sum(row.new_number > 0 for row in changes), sum(row.old_number > 0 for row in changes))


def changed_part(line: str, other: str) -> tuple[str, str, str]:
    """Split a line into what it begins with as the other, what differs, and what both end with."""
    begin = len(commonprefix((line, other)))
    end = len(commonprefix((line[begin:][::-1], other[begin:][::-1])))
    return line[:begin], line[begin : len(line) - end], line[len(line) - end :]


def _gap(lines: int) -> list[DiffRow]:
    return [DiffRow(kind="gap", left_out=lines)] if lines else []


def _lines(text: str) -> list[str]:
    lines = _LINE_END.split(text)
    return lines if lines[-1] else lines[:-1]


def _number_lines(lines: list[str], first: int, end: int) -> list[tuple[int, str]]:
    return [(number + 1, lines[number]) for number in range(first, end)]


def _rows(kind: str, old: list[tuple[int, str]], new: list[tuple[int, str]]) -> Iterator[DiffRow]:
    for old_line, new_line in zip_longest(old, new, fillvalue=(0, "")):
        yield DiffRow(old_line[0], old_line[1], new_line[0], new_line[1], kind)
