"""Side by side comparison of two texts."""

from difflib import Match, SequenceMatcher

import pytest

from app.domain.text.line_diff import LINES_MAX, DiffCount, DiffRow, changed_part, diff_count, diff_rows
from tests.support.truth_table import truth_table


def kinds(old: str, new: str) -> list[str]:
    rows = diff_rows(old, new)
    assert rows is not None
    return [row.kind for row in rows]


def test_equal_texts_have_no_rows() -> None:
    assert diff_rows("a\nb\n", "a\nb") == diff_rows("", "") == []


def test_a_changed_line_is_beside_its_successor() -> None:
    rows = diff_rows("a\nb\nc", "a\nB\nc")
    assert rows is not None
    assert [(row.old_number, row.old, row.new_number, row.new, row.kind) for row in rows] == [
        (1, "a", 1, "a", "equal"),
        (2, "b", 2, "B", "replace"),
        (3, "c", 3, "c", "equal"),
    ]


def test_added_and_removed_lines_have_nothing_beside_them() -> None:
    assert kinds("a", "a\nb") == ["equal", "insert"]
    rows = diff_rows("a\nb\nc\nd", "x\nd")
    assert rows is not None
    assert [(row.old_number, row.new_number) for row in rows] == [(1, 1), (2, 0), (3, 0), (4, 2)]


def test_equal_lines_far_from_a_change_are_left_out() -> None:
    old = [f"line {number}" for number in range(40)]
    new = [*old]
    new[10], new[30] = "changed", "changed"
    assert kinds("\n".join(old), "\n".join(new)) == [
        *("gap", "equal", "equal", "equal", "replace", "equal", "equal", "equal"),
        *("gap", "equal", "equal", "equal", "replace", "equal", "equal", "equal"),
        "gap",
    ]
    rows = diff_rows("\n".join(old), "\n".join(new))
    assert [row.left_out for row in rows or () if row.kind == "gap"] == [7, 13, 6]


def test_with_enough_context_nothing_is_left_out() -> None:
    old = [f"line {number}" for number in range(40)]
    rows = diff_rows("\n".join(old), "\n".join([*old, "new"]), context=LINES_MAX)
    assert [row.kind for row in rows or ()] == ["equal"] * 40 + ["insert"]


def test_changed_lines_are_counted_on_both_sides() -> None:
    assert diff_count(diff_rows("a\nb\nc\nd", "a\nB\nd\ne") or ()) == DiffCount(new_lines=2, old_lines=2)
    assert diff_count(()) == DiffCount(0, 0)


@truth_table(
    "line, other, parts",
    [
        ("retries = 3", "retries = 12", ("retries = ", "3", "")),
        ("f(a)", "f(a, b)", ("f(a", "", ")")),
        ("f(a, b)", "f(a)", ("f(a", ", b", ")")),
        ("aa", "aaa", ("aa", "", "")),
        ("left", "right", ("", "lef", "t")),
        ("", "new", ("", "", "")),
    ],
)
def test_the_part_of_a_line_that_changed(line: str, other: str, parts: tuple[str, str, str]) -> None:
    assert changed_part(line, other) == parts


@truth_table(
    "old, new, is_partly_changed",
    [("retries = 3", "retries = 12", True), ("left", "right", False), ("", "new", False), ("a", "", False)],
)
def test_the_part_is_marked_if_enough_of_the_line_stays(old: str, new: str, is_partly_changed: bool) -> None:
    assert DiffRow(1, old, 1, new, "replace").is_partly_changed == is_partly_changed
    assert not DiffRow(1, old, 0, "", "delete").is_partly_changed


@truth_table("character", ["\f", "\v", "\x1c", "\x85", "\u2028"])
def test_only_line_ends_end_a_line(character: str) -> None:
    rows = diff_rows(f"a{character}b\rc\r\n\n", f"a{character}b\nd\n\n")
    assert rows is not None
    assert [(row.old, row.new) for row in rows] == [(f"a{character}b",) * 2, ("c", "d"), ("", "")]


def test_a_long_text_is_not_compared() -> None:
    assert diff_rows("a\n" * (LINES_MAX + 1), "b") is None


def test_a_comparison_ends_once_its_steps_are_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every search finds one line only and looks at 50 places of every second line: 130,000 steps first."""

    def text(mark: str) -> str:
        return "\n".join(f"c{number % 50}\n{mark}{number}" for number in range(LINES_MAX // 2))

    def search(matcher: SequenceMatcher[str], *bounds: int) -> Match:
        searches.append(bounds)
        return find(matcher, *bounds)

    searches, find = list[tuple[int, ...]](), SequenceMatcher.find_longest_match
    monkeypatch.setattr(SequenceMatcher, "find_longest_match", search)
    monkeypatch.setattr("app.domain.text.line_diff.STEPS_MAX", 500_000)
    rows = diff_rows(text("u"), text("v"))
    assert len(searches) < 100, "of 2,500"
    assert rows is not None
    assert len({row.old_number for row in rows if row.kind != "gap"} - {0}) >= LINES_MAX - 3
    assert "equal" in {row.kind for row in rows}, "the steps suffice for a part"
