"""Side by side comparison of two texts."""

from app.domain.line_diff import LINES_MAX, diff_rows


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
    ]


def test_a_long_text_is_not_compared() -> None:
    assert diff_rows("a\n" * (LINES_MAX + 1), "b") is None
